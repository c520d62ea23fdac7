//! [`Policy::apply`]: a changed policy for limiters that are in use.

use crate::apply_error::ApplyError;
use crate::model::Policy;
use crate::target::Target;

impl Policy {
    /// Sets all that this policy says on limiters in use: quotas, shadow mode, penalties and the
    /// answer at the key cap. All of it, or nothing.
    ///
    /// Requests may arrive at the same time. What each key has been granted stays, as
    /// [`Limiter::set_quotas`](tollgate::Limiter::set_quotas) says. Dimensions are matched by name, in
    /// any order.
    ///
    /// Everything is checked first, in all limiters. Then it changes dimension by dimension. A
    /// request in between may be decided by new quotas of one dimension and old quotas of another.
    /// Those of one dimension change at once. Shadow mode begins before the quotas change, and ends
    /// after they have.
    ///
    /// What the policy does not say is as in a new limiter of it: no shadow mode, no penalty, and
    /// new keys are denied at the cap. Only a `key_cap` that it does not say is left to the program,
    /// and so are keys with quotas of their own.
    ///
    /// - A penalty with other numbers: denials and blocks count on. A block keeps its number, and lasts
    ///   as long as the new penalty says, from the time at which it began. One that is over does not
    ///   come back.
    /// - A penalty that is gone: no key is blocked from now on. If it comes back, keys are blocked
    ///   for what is left of their blocks.
    ///
    /// ```
    /// use tollgate::JointLimiter;
    /// use tollgate_policy::Policy;
    ///
    /// let policy = |head: &str, limit: u32| {
    ///     let quota = format!("quota = [{{ limit = {limit}, per = \"1m\" }}]");
    ///     Policy::from_toml(&format!("{head}\n[[dimension]]\nname = \"user\"\n{quota}"))
    /// };
    /// let limiter: JointLimiter<(String,)> = policy("shadow = true", 1)?.builder()?.build()?;
    /// let admits_alice = || limiter.try_acquire(("alice",)).map(|decision| decision.is_admitted());
    /// assert!(admits_alice()? && admits_alice()?, "shadow mode denies nothing");
    ///
    /// // The file has changed.
    /// policy("", 2)?.apply(&limiter)?;
    /// assert!(admits_alice()?);
    /// assert!(!admits_alice()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ApplyError`] when the dimensions of the policy are not those of the limiters, it has another
    /// key cap, or quotas that a limiter can't change to. Nothing has changed then.
    pub fn apply(&self, target: &(impl Target + ?Sized)) -> Result<(), ApplyError> {
        if let Some(other) = self.dimensions.iter().find(|it| !target.takes(&it.name)) {
            return Err(ApplyError::NotInLimiter { dimension: other.name.to_string() });
        }
        target.check(self)?;
        target.set(self)
    }
}
