//! [`TopDenied`]: the keys that are denied most.

use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::{Observation, ObservedKey, Observer};

use crate::space_saving::SpaceSaving;
use crate::text::key_text;

/// The keys that are denied most, in bounded memory: who is hitting the limit?
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Limiter, Quota};
/// use tollgate_observe::TopDenied;
///
/// // Room for 1,000 keys.
/// let denied = Arc::new(TopDenied::new(1_000));
/// let builder = Limiter::<String>::builder(Quota::per_minute(5)).observer(Arc::clone(&denied));
/// let limiter = builder.build()?;
/// let _ = limiter.try_acquire_many(["bob"; 9]);
/// let _ = limiter.try_acquire_many(["mallory"; 50]);
///
/// let top = denied.top(10);
/// assert_eq!((top[0].key(), top[0].count(), top[0].error()), ("mallory", 45, 0));
/// assert_eq!(top[1].to_string(), "4 bob");
/// assert_eq!(denied.denials(), 49);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// # What is counted
/// Each denial, for the key whose quota, penalty or list decides the wait; of a
/// [`JointLimiter`](tollgate::JointLimiter) that is the key of one dimension. In shadow mode the
/// denials count that were replaced by admissions. Not counted: requests without a key there, and
/// of a cost above the limit.
///
/// Give each limiter a list of its own. In a list of several limiters, a key has an entry for each.
///
/// # How exact it is
/// As long as no more keys were denied than there is room for, counts are exact. With room for m
/// keys and N denials, no count is too high by more than its [`error`](DeniedKey::error), none is
/// too low, no error is above N / m, and each key with more than N / m denials is listed. The
/// algorithm is Space-Saving (A. Metwally, D. Agrawal and A. El Abbadi, "Efficient computation of
/// frequent and top-k elements in data streams", 2005).
///
/// # Cost
/// Admitted requests cost nothing here. A denial takes a lock for a look-up and a binary search, some
/// 350 instructions, so denied requests wait for each other meanwhile. The lock is held for no
/// decision. A key that gets a place is read as text, at most 128 bytes. A place takes
/// about 200 bytes for short keys, and 400 at most.
pub struct TopDenied {
    counters: Mutex<SpaceSaving<Id, Who>>,
    text: fn(&ObservedKey<'_>) -> String,
}

/// A key of a dimension.
type Id = (usize, u128);

/// How a key is shown.
#[derive(Clone)]
struct Who {
    key: Box<str>,
    dimension: Option<Box<str>>,
}

/// A key of [`TopDenied`] with its denials.
///
/// Its `Display` is a line of text: `45 user mallory`. The count is marked if it may be too high:
/// `45 (at least 40) user mallory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedKey {
    key: Box<str>,
    dimension: Option<Box<str>>,
    count: u64,
    error: u64,
}

impl TopDenied {
    /// A list with room for this many keys, at least one. Memory is taken as keys come.
    ///
    /// Keys are shown by their [text](key_text).
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { counters: Mutex::new(SpaceSaving::new(room)), text: key_text }
    }

    /// Shows keys by this function in place of [`key_text`]: to read a type of your own, or to show
    /// no text of a client. It is called for a key that gets a place, and must not ask the list. If
    /// it panics, the key is counted all the same, and shown as `(its text panicked)`.
    ///
    /// ```
    /// use tollgate_observe::TopDenied;
    ///
    /// let denied = TopDenied::new(100).text(|key| format!("{:032x}", key.id()));
    /// ```
    #[must_use]
    pub fn text(self, text: fn(&ObservedKey<'_>) -> String) -> Self {
        Self { text, ..self }
    }

    /// The keys with the most denials, at most so many, the most denied first.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<DeniedKey> {
        let counters = self.lock();
        let all = counters.counters().iter().take(most);
        let denied = all.map(|counter| {
            let Who { key, dimension } = counter.value.clone();
            DeniedKey { key, dimension, count: counter.count, error: counter.error }
        });
        denied.collect()
    }

    /// The denials counted so far.
    #[must_use]
    pub fn denials(&self) -> u64 {
        self.lock().counted()
    }

    /// Begins again with an empty list: call it each hour, and the list is that of the hour.
    ///
    /// ```
    /// use tollgate_observe::TopDenied;
    ///
    /// let denied = TopDenied::new(100);
    /// denied.clear();
    /// assert!(denied.top(10).is_empty());
    /// ```
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// A panic costs the text and not the count. The hook for panics has reported it.
    fn text_of(&self, key: &ObservedKey<'_>) -> String {
        catch_unwind(AssertUnwindSafe(|| (self.text)(key))).unwrap_or_else(|_| "(its text panicked)".to_owned())
    }

    /// The counters are whole after each change, so a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, SpaceSaving<Id, Who>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for TopDenied {
    fn observe(&self, seen: &Observation<'_>) {
        let Some(denial) = seen.denial() else { return };
        let dimension = denial.dimension();
        let Some(key) = seen.key(dimension) else { return };
        self.lock().count((dimension, key.id()), || Who {
            key: self.text_of(&key).into(),
            dimension: seen.dimension(dimension).map(Into::into),
        });
    }
}

impl DeniedKey {
    /// The text of the key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The name of its dimension; `None` for limiters of one dimension.
    #[must_use]
    pub fn dimension(&self) -> Option<&str> {
        self.dimension.as_deref()
    }

    /// The denials. The true number is this one, or less by at most the [`error`](Self::error).
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The most by which the count may be too high.
    #[must_use]
    pub const fn error(&self) -> u64 {
        self.error
    }
}

impl fmt::Display for DeniedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        if self.error > 0 {
            write!(f, " (at least {})", self.count - self.error)?;
        }
        if let Some(dimension) = self.dimension() {
            write!(f, " {dimension}")?;
        }
        write!(f, " {}", self.key)
    }
}

/// Shows no key.
impl fmt::Debug for TopDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopDenied").field("denials", &self.denials()).finish_non_exhaustive()
    }
}
