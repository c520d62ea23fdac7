//! [`InFlight`]: a request in flight, until it leaves.

use core::fmt;
use core::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::asked::Asked;
use crate::digest::KeyDigest;
use crate::error::StoreError;
use crate::task::in_task;

/// An admitted request, which is in flight until this is dropped.
///
/// [`RedisLimiter::try_enter`](crate::RedisLimiter::try_enter) makes it. While it lasts, the request
/// counts in each [concurrency limit](tollgate::Quota::concurrent) that it was asked of, on all nodes.
/// When it is dropped, a task tells the store; [`leave`](Self::leave) waits for that.
///
/// If its process dies, the request counts until the quota's
/// [`max_hold`](tollgate::Quota::held_at_most) is over. A request that takes longer counts no more, so
/// set it above the longest. A request whose answer was lost leaves by itself.
///
/// ```
/// use tollgate_redis::{RedisLimiter, StoreError};
///
/// async fn export(limiter: &RedisLimiter, user: &str) -> Result<&'static str, StoreError> {
///     let decided = limiter.try_enter(user).await?;
///     if decided.is_denied() {
///         return Ok("429: too many exports at a time");
///     }
///     let (_in_flight, _) = decided.enter();
///     // Work that takes a while.
///     Ok("200")
/// }
/// ```
#[must_use = "a request is over as soon as this is dropped"]
pub struct InFlight {
    counted: Counted,
}

enum Counted {
    /// No concurrency limit counts the request.
    Nowhere,
    OnStore(Entered),
    /// In the local limiter, as long as its guard.
    Local {
        _guard: Box<dyn Send + Sync>,
    },
}

impl InFlight {
    pub(crate) const fn nowhere() -> Self {
        Self { counted: Counted::Nowhere }
    }

    pub(crate) const fn on_store(entered: Entered) -> Self {
        Self { counted: Counted::OnStore(entered) }
    }

    /// The guard of a local limiter.
    pub(crate) fn local(guard: impl Send + Sync + 'static) -> Self {
        Self { counted: Counted::Local { _guard: Box::new(guard) } }
    }

    /// Whether the request counts in a concurrency limit: on the store, or in the local limiter while
    /// the store is away ([`OnFailure::Local`](crate::OnFailure::Local)).
    ///
    /// ```
    /// use tollgate_redis::InFlight;
    ///
    /// fn is_counted(in_flight: &InFlight) -> bool {
    ///     in_flight.counts()
    /// }
    /// ```
    #[must_use]
    pub const fn counts(&self) -> bool {
        !matches!(self.counted, Counted::Nowhere)
    }

    /// Ends the request, and waits until the store knows. To drop the guard does the same in a task,
    /// which a service that stops may not see to its end.
    ///
    /// ```
    /// use tollgate_redis::{InFlight, StoreError};
    ///
    /// async fn stop(jobs: Vec<InFlight>) -> Result<(), StoreError> {
    ///     for job in jobs {
    ///         job.leave().await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not answer. The request may count until its time is over.
    pub async fn leave(self) -> Result<(), StoreError> {
        let Counted::OnStore(entered) = self.counted else { return Ok(()) };
        entered.leave().await
    }

    /// Keeps the request in flight after this guard, until
    /// [`release`](crate::RedisLimiter::release) is told the token, by any process. `None` if the
    /// request does not count on the store; then it is over now.
    ///
    /// A token is text of letters, digits and hyphens. Without the limiter's secret it cannot be
    /// guessed.
    ///
    /// ```
    /// use tollgate_redis::{RedisLimiter, StoreError};
    ///
    /// async fn enqueue(limiter: &RedisLimiter, tenant: &str) -> Result<Option<String>, StoreError> {
    ///     // A worker releases it when the job is done.
    ///     let (in_flight, _) = limiter.try_enter(tenant).await?.enter();
    ///     Ok(in_flight.into_token())
    /// }
    /// ```
    #[must_use = "the request leaves by the token alone"]
    pub fn into_token(self) -> Option<String> {
        let Counted::OnStore(mut entered) = self.counted else { return None };
        entered.entry.take().map(|entry| entry.to_string())
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// What tells a store that a request is over.
pub(crate) trait Leave: Send + Sync {
    /// Whether it was in flight.
    fn leave(self: Arc<Self>, entry: Entry) -> Pin<Box<dyn Future<Output = Result<bool, StoreError>> + Send>>;
}

/// A request that may be in flight on the store. It leaves when this is dropped.
pub(crate) struct Entered {
    by: Arc<dyn Leave>,
    /// Guards may be dropped outside of it.
    runtime: Handle,
    /// `None` if it does not leave by this.
    entry: Option<Entry>,
}

impl Entered {
    pub(crate) fn new(by: Arc<dyn Leave>, entry: Entry) -> Self {
        Self { by, runtime: Handle::current(), entry: Some(entry) }
    }

    /// It is not in flight.
    pub(crate) fn never_entered(mut self) {
        self.entry = None;
    }

    async fn leave(mut self) -> Result<(), StoreError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        in_task(Arc::clone(&self.by).leave(entry)).await?;
        Ok(())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.runtime.spawn(Arc::clone(&self.by).leave(entry));
        }
    }
}

/// A request on the store: its number, and the keys that count it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: u128,
    pub(crate) keys: Vec<Asked>,
}

/// The text of a token: the number, and for each key its place and its digest.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.number)?;
        self.keys.iter().try_for_each(|(place, key)| write!(f, "-{place}-{key}"))
    }
}

impl Entry {
    /// The longest token: a request asks eight keys.
    const LONGEST: usize = 32 + 8 * 40;

    pub(crate) fn from_token(token: &str) -> Option<Self> {
        if token.len() > Self::LONGEST {
            return None;
        }
        let number = |text: &str| u128::from_str_radix(text, 16).ok();
        let mut parts = token.split('-');
        let mut entry = Self { number: number(parts.next()?)?, keys: vec![] };
        while let Some(place) = parts.next() {
            entry.keys.push((place.parse().ok()?, KeyDigest(number(parts.next()?)?)));
        }
        // In no other way than it was written.
        (entry.to_string() == token).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_in_no_other_way() {
        let entry = Entry { number: 7, keys: vec![(0, KeyDigest(1 << 127)), (15, KeyDigest(9))] };
        let token = entry.to_string();
        assert_eq!(Entry::from_token(&token), Some(entry));
        let longer = format!("{token}{}", token[32..].repeat(9));
        for wrong in ["", "7", &token[1..], &format!("{token}-"), &format!("+{}", &token[1..]), &longer] {
            assert_eq!(Entry::from_token(wrong), None, "{wrong}");
        }
    }
}
