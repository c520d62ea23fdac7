//! [`LiveSettings`]: what can change while a limiter is in use, apart from the quotas of single keys
//! and of tiers.

use core::fmt;
use core::hash::Hash;

use crate::caps::AtKeyCap;
use crate::clock::Clock;
use crate::dimensions::Dimensions;
use crate::engine::Engine;
use crate::error::BuildError;
use crate::fingerprint::Fingerprinter;
use crate::joint::JointLimiter;
use crate::keys::Tier;
use crate::limiter::Limiter;
use crate::modes::Modes;
use crate::penalty::{Penalties, Penalty};
use crate::quota::{Algorithm, Quota};
use crate::quotas::ChangeError;
use crate::state::table::Scope;
use crate::sync::plain::Ordering;
use crate::texts::error_if;

/// The settings of a limiter in use, by [`Limiter::settings`] and [`JointLimiter::settings`]: reads
/// and changes them while requests come.
///
/// A [`Limiter`] has one dimension, with the number 0. The dimensions of a [`JointLimiter`] have
/// those of its builder.
///
/// Each method changes one setting, for all requests that begin after it returns. A request that is
/// under way is decided by the old setting or by the new one. Nothing that a key has been granted
/// is lost.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AtKeyCap, Limiter, Penalty, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
/// let settings = limiter.settings();
/// settings.set_quotas(0, &[Quota::per_minute(3)])?;
/// settings.set_penalty(0, Some(Penalty::new(9, Duration::from_secs(60), Duration::from_secs(600))))?;
/// settings.set_enforced_percent(25)?;
/// settings.set_at_key_cap(AtKeyCap::Admit);
/// assert_eq!((limiter.peek("alice").limit(), settings.enforced_percent()), (3, 25));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LiveSettings<'a, C, F> {
    engine: &'a Engine<C, F>,
}

impl<C: Clock, F> LiveSettings<'_, C, F> {
    /// The most keys that the limiter holds at once, of all dimensions together. It can't change.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(2)).key_cap(500).build()?;
    /// assert_eq!(limiter.settings().key_cap(), 500);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn key_cap(&self) -> usize {
        self.engine.table.key_cap()
    }

    /// Checks that [`set_quotas`](Self::set_quotas) can set these quotas. Changes nothing.
    ///
    /// What it says stays true: a program checks several limiters, and then changes all of them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ChangeError, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
    /// assert!(limiter.settings().check_quotas(0, &[Quota::per_minute(3)]).is_ok());
    /// let bucket = Quota::token_bucket(10, 1, Duration::from_secs(1));
    /// let error = limiter.settings().check_quotas(0, &[bucket]).unwrap_err();
    /// assert!(matches!(error, ChangeError::OtherAlgorithm { .. }));
    /// assert_eq!(*limiter.quotas(), [Quota::per_minute(2)]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`], as [`Limiter::set_quotas`] and [`JointLimiter::set_quotas`].
    pub fn check_quotas(&self, dimension: usize, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.check_dimension(dimension)?;
        self.engine.can_change(dimension, Scope::All, quotas)
    }

    /// Changes the quotas of all keys of a dimension, as [`Limiter::set_quotas`] does.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder().dimension("user", [Quota::per_minute(2)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_minute(9)]).build()?;
    /// limiter.settings().set_quotas(1, &[Quota::per_minute(8)])?;
    /// assert_eq!(limiter.quotas_of(("alice", 7))?[1], Some([Quota::per_minute(8)].into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`], as [`Limiter::set_quotas`], and when there is no such dimension.
    pub fn set_quotas(&self, dimension: usize, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.check_dimension(dimension)?;
        self.engine.set_quotas(dimension, Scope::All, quotas)
    }

    /// The tier with this name in a dimension; `None` if there is none.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// assert_eq!(limiter.settings().tier(0, "premium"), limiter.tier("premium"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn tier(&self, dimension: usize, name: &str) -> Option<Tier> {
        self.engine.tiers.named(dimension, name)
    }

    /// Checks that [`set_quotas_of_tier`](Self::set_quotas_of_tier) can set these quotas. Changes
    /// nothing.
    ///
    /// ```
    /// # use tollgate::{Limiter, Quota};
    /// let builder = Limiter::<String>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier("premium").expect("the builder has it");
    /// limiter.settings().check_quotas_of_tier(premium, &[Quota::per_minute(900)])?;
    /// assert_eq!(limiter.peek(premium.key("alice")).limit(), 600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check_quotas`](Self::check_quotas).
    ///
    /// # Panics
    ///
    /// If the limiter has no such tier, or it is `Tier::default()`.
    pub fn check_quotas_of_tier(&self, tier: Tier, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.tiers.check(tier.group(), None);
        self.engine.can_change(tier.group(), Scope::All, quotas)
    }

    /// Changes the quotas of a tier, as [`JointLimiter::set_quotas_of_tier`] does.
    ///
    /// ```
    /// # use tollgate::{Limiter, Quota};
    /// let builder = Limiter::<String>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier("premium").expect("the builder has it");
    /// limiter.settings().set_quotas_of_tier(premium, &[Quota::per_minute(900)])?;
    /// assert_eq!(limiter.peek(premium.key("alice")).limit(), 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set_quotas`](Self::set_quotas).
    ///
    /// # Panics
    ///
    /// If the limiter has no such tier, or it is `Tier::default()`.
    pub fn set_quotas_of_tier(&self, tier: Tier, quotas: &[Quota]) -> Result<(), ChangeError> {
        self.engine.set_quotas_of_tier(tier, quotas)
    }

    /// Changes the penalty of a dimension, or takes it away.
    ///
    /// - A first penalty: denials count from now on.
    /// - A penalty with other numbers: denials and blocks count on. A block keeps its number, and lasts
    ///   as long as the new penalty says, from the time at which it began. One that is over does not
    ///   come back: its quiet time, if the old penalty was [growing](Penalty::growing) and it still
    ///   counted, goes on as long as the new one says.
    /// - No penalty: no key is blocked from now on. If a penalty comes back, keys are blocked for
    ///   what is left of their blocks.
    ///
    /// Its time grows with the number of keys that have been denied.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DenialReason, Limiter, MockClock, Penalty, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_hour(1)).clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire("mallory").is_admitted());
    /// let hour = Duration::from_secs(3600);
    /// limiter.settings().set_penalty(0, Some(Penalty::new(1, hour, 24 * hour)))?;
    /// assert_eq!(limiter.try_acquire("mallory").retry_after(), Some(24 * hour));
    ///
    /// limiter.settings().set_penalty(0, None)?;
    /// let denial = limiter.try_acquire("mallory").into_result().unwrap_err();
    /// assert_eq!(denial.reason(), DenialReason::Quota);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when the penalty can't be used, or there is no such dimension. Nothing has
    /// changed then.
    pub fn set_penalty(&self, dimension: usize, penalty: Option<Penalty>) -> Result<(), ChangeError> {
        self.check_dimension(dimension)?;
        let penalties = match penalty {
            Some(to) => {
                to.validate().map_err(|error| ChangeError::Unusable(error.into()))?;
                Some(self.modes().penalties_or(dimension, || Penalties::new(to, self.key_cap())))
            }
            None => self.engine.modes.get().and_then(|modes| modes.penalties_of(dimension)),
        };
        if let Some(penalties) = penalties {
            penalties.change(penalty, &self.engine.clock);
        }
        Ok(())
    }

    /// Whether an admission may have a [delay](crate::Admission::delay): the quota of a dimension or of a
    /// tier is a leaky queue.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let second = Duration::from_secs(1);
    /// let builder = || Limiter::<str>::builder(Quota::per_minute(60));
    /// assert!(!builder().build()?.settings().may_delay());
    /// let limiter = builder().tier("batch", [Quota::leaky_queue(10, second, second)]).build()?;
    /// assert!(limiter.settings().may_delay());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn may_delay(&self) -> bool {
        self.any_quota(|quota| quota.algorithm() == Algorithm::LeakyQueue)
    }

    /// Whether one of the quotas of a dimension or of a tier is such a quota. Those that keys have of
    /// their own are not asked; their algorithm is that of their dimension. It allocates nothing.
    ///
    /// ```
    /// use tollgate::{Algorithm, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, String)>::builder()
    ///     .dimension("tokens", [Quota::per_minute(1000)])
    ///     .dimension("streams", [Quota::concurrent(4)])
    ///     .build()?;
    /// assert!(limiter.settings().any_quota(|quota| quota.algorithm() == Algorithm::Concurrency));
    /// assert!(!limiter.settings().any_quota(|quota| quota.algorithm() == Algorithm::LeakyQueue));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn any_quota(&self, is: impl Fn(&Quota) -> bool) -> bool {
        (0..self.engine.tiers.groups()).any(|group| self.engine.quotas(group).iter().any(&is))
    }

    /// The percentage of keys for which the limits are enforced: 100 without shadow mode, and 0 in
    /// shadow mode.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = || Limiter::<String>::builder(Quota::per_minute(2));
    /// assert_eq!(builder().build()?.settings().enforced_percent(), 100);
    /// assert_eq!(builder().shadow(true).build()?.settings().enforced_percent(), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn enforced_percent(&self) -> u8 {
        self.engine.modes.get().map_or(100, Modes::enforced_percent)
    }

    /// Enforces the limits for this percentage of the keys, as
    /// [`LimiterBuilder::enforced_percent`](crate::LimiterBuilder::enforced_percent) says: 0 begins
    /// shadow mode, and 100 ends it.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// limiter.settings().set_enforced_percent(0)?;
    /// assert!((0..5).all(|_| limiter.try_acquire("alice").is_admitted()));
    /// limiter.settings().set_enforced_percent(100)?;
    /// assert!(limiter.try_acquire("alice").is_denied());
    /// assert!(limiter.settings().set_enforced_percent(101).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when it is more than 100.
    pub fn set_enforced_percent(&self, percent: u8) -> Result<(), ChangeError> {
        error_if! { percent > 100 => ChangeError::Unusable(BuildError::NoPercentage { percent: percent.into() }); }
        // A limiter without modes enforces all.
        if percent < 100 || self.engine.modes.get().is_some() {
            self.modes().enforce(percent);
        }
        Ok(())
    }

    /// Whether a dimension is in [shadow mode](crate::JointLimiterBuilder::shadow_dimension) by itself.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(u64,)>::builder().dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.shadow_dimension(0).build()?;
    /// assert!(limiter.settings().is_shadow_dimension(0));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_shadow_dimension(&self, dimension: usize) -> bool {
        self.check_dimension(dimension).is_ok() && self.engine.modes.get().is_some_and(|it| it.has_shadow(dimension))
    }

    /// Puts a dimension in [shadow mode](crate::JointLimiterBuilder::shadow_dimension), or ends that.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(u64,)>::builder().dimension("user", [Quota::per_minute(1)]);
    /// let limiter = builder.build()?;
    /// limiter.settings().set_shadow_dimension(0, true)?;
    /// assert!((0..3).all(|_| limiter.try_acquire((7,)).is_ok_and(|decision| decision.is_admitted())));
    /// limiter.settings().set_shadow_dimension(0, false)?;
    /// assert!(limiter.try_acquire((7,))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when there is no such dimension.
    pub fn set_shadow_dimension(&self, dimension: usize, is_on: bool) -> Result<(), ChangeError> {
        self.check_dimension(dimension)?;
        // A limiter without modes has none in shadow mode.
        if is_on || self.engine.modes.get().is_some() {
            self.modes().set_shadow(dimension, is_on);
        }
        Ok(())
    }

    /// Changes the answer to new keys at the key cap.
    ///
    /// ```
    /// use tollgate::{AtKeyCap, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_hour(1)).key_cap(1).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(limiter.try_acquire("bob").is_denied());
    /// limiter.settings().set_at_key_cap(AtKeyCap::Admit);
    /// assert!(limiter.try_acquire("bob").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn set_at_key_cap(&self, answer: AtKeyCap) {
        self.engine.set_at_key_cap(answer);
    }

    fn check_dimension(&self, dimension: usize) -> Result<(), ChangeError> {
        let dimensions = self.engine.tiers.dimensions;
        if dimension < dimensions { Ok(()) } else { Err(ChangeError::NoSuchDimension { dimension, dimensions }) }
    }

    fn modes(&self) -> &Modes {
        let modes = self.engine.modes.get_or_init(|| Box::new(Modes::none(self.engine.tiers.dimensions)));
        // Before they are changed, so that each request that begins afterwards asks them.
        self.engine.is_plain.store(false, Ordering::Relaxed);
        modes
    }
}

impl<C, F> Clone for LiveSettings<'_, C, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, F> Copy for LiveSettings<'_, C, F> {}

impl<C: Clock, F> fmt::Debug for LiveSettings<'_, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LiveSettings");
        shown.field("key_cap", &self.key_cap()).field("enforced_percent", &self.enforced_percent());
        shown.field("at_key_cap", &self.engine.at_key_cap()).finish_non_exhaustive()
    }
}

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// The settings, to read and to change while requests come: quotas, penalty, shadow mode and the
    /// answer at the key cap.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// // On trial: nothing is denied.
    /// limiter.settings().set_enforced_percent(0)?;
    /// assert!((0..5).all(|_| limiter.try_acquire("alice").is_admitted()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn settings(&self) -> LiveSettings<'_, C, F> {
        LiveSettings { engine: &self.engine }
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// The settings, as [`Limiter::settings`].
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(1)]);
    /// let limiter = builder.shadow(true).build()?;
    /// for _ in 0..5 {
    ///     assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// }
    /// limiter.settings().set_enforced_percent(100)?;
    /// assert!(limiter.try_acquire(("alice",))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn settings(&self) -> LiveSettings<'_, C, F> {
        LiveSettings { engine: &self.engine }
    }
}
