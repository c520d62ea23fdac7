//! [`Observer`]: code of the caller that sees each decision of a limiter. [`Observers`]: those of one
//! limiter.

mod observation;

use core::cell::Cell;
use core::fmt;
use core::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::panic::catch_unwind;
use std::sync::Arc;

use crate::decision::{Denial, Status};
use crate::error::CostExceedsLimit;
use crate::quota::Quota;

pub(crate) use observation::{Feed, ObservedRequest, feed_one};
pub use observation::{Observation, ObservedKey};

/// Sees each decision of a limiter: to count it, to log it, or to list the keys that were denied.
///
/// A builder takes observers: [`LimiterBuilder::observer`](crate::LimiterBuilder::observer),
/// [`DirectLimiterBuilder::observer`](crate::DirectLimiterBuilder::observer) and
/// [`JointLimiterBuilder::observer`](crate::JointLimiterBuilder::observer). Each closure over an
/// [`Observation`] is an observer. So is an `Arc` of an observer: keep a clone of it to ask it
/// later.
///
/// The crate [`tollgate-observe`](https://docs.rs/tollgate-observe) has observers for metrics, for
/// logs, and for a list of the keys that are denied most.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate::{Limiter, Observation, Observer, Quota};
///
/// #[derive(Default)]
/// struct Denials(AtomicU64);
///
/// impl Observer for Denials {
///     fn observe(&self, observation: &Observation<'_>) {
///         if observation.denial().is_some() {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let denials = Arc::new(Denials::default());
/// let builder = Limiter::<String>::builder(Quota::per_minute(1));
/// let limiter = builder.observer(Arc::clone(&denials)).build()?;
/// let _ = limiter.try_acquire_many(["alice", "alice", "bob"]);
/// assert_eq!(denials.0.load(Ordering::Relaxed), 1);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// # What is observed
/// Each call that may charge permits, after it was decided: `try_acquire` in all its forms and
/// `reserve`. One call is one observation, and so is each request of `try_acquire_many`. A request
/// that waits in turn is decided more than once, and each of its decisions is observed.
///
/// Requests that the layers for HTTP answer without the limiter are told to
/// [`unasked`](Self::unasked).
///
/// Peeks, refunds, settled costs and requests of cost zero are not observed. Nor is a request whose
/// keys are missing ([`JointError::NoKeys`](crate::JointError::NoKeys),
/// [`WrongNumberOfKeys`](crate::JointError::WrongNumberOfKeys)).
///
/// # Cost
/// A limiter without observers checks one field for each decision. A limiter with observers calls
/// them one after the other, on the thread of the request, before the answer is returned. An
/// observer that blocks delays that request and no other: the limiter holds nothing while it calls.
///
/// # Panics
/// A panic of an observer ends with the observer. The request gets its answer, the other observers
/// are called, and permits are charged once.
pub trait Observer: Send + Sync {
    /// Sees a decision. It may be called from several threads at the same time.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Observation, Observer, Quota};
    ///
    /// struct Print;
    ///
    /// impl Observer for Print {
    ///     fn observe(&self, observation: &Observation<'_>) {
    ///         println!("{:?}", observation.result());
    ///     }
    /// }
    ///
    /// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(Print).build()?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    fn observe(&self, observation: &Observation<'_>);

    /// Sees a request that middleware has answered without the limiter. Does nothing by default. It
    /// may be called from several threads at the same time.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tollgate::{DirectLimiter, Observation, Observer, Quota, Unasked};
    ///
    /// #[derive(Default)]
    /// struct Skipped(AtomicU64);
    ///
    /// impl Observer for Skipped {
    ///     fn observe(&self, _: &Observation<'_>) {}
    ///
    ///     fn unasked(&self, request: Unasked) {
    ///         if request == Unasked::Skipped {
    ///             self.0.fetch_add(1, Ordering::Relaxed);
    ///         }
    ///     }
    /// }
    ///
    /// let skipped = Arc::new(Skipped::default());
    /// let builder = DirectLimiter::builder(Quota::per_minute(1)).observer(Arc::clone(&skipped));
    /// builder.build()?.observe_unasked(Unasked::Skipped);
    /// assert_eq!(skipped.0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    fn unasked(&self, request: Unasked) {
        let _ = request;
    }
}

/// A request that middleware has answered without the limiter.
///
/// The layers for HTTP tell it to the [observers](Observer::unasked) of their limiter.
///
/// ```
/// use tollgate::{DirectLimiter, Quota, Unasked};
///
/// let limiter = DirectLimiter::new(Quota::per_minute(1))?;
/// limiter.observe_unasked(Unasked::MissingKey);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unasked {
    /// The request is not limited, or costs nothing.
    Skipped,
    /// The request has no key, or one that is never accepted.
    MissingKey,
    /// A rule of a policy file denies the request.
    Rule,
}

thread_local! {
    /// Whether denials on this thread are overruled.
    static OVERRULES: Cell<bool> = const { Cell::new(false) };
}

/// Calls `ask`, which asks limiters on this thread, and tells their observers that each denial is
/// [overruled](Observation::is_overruled): the caller admits the request in its place, as a limiter
/// in shadow mode does. The limiter answers and charges as usual.
///
/// ```
/// use tollgate::{DirectLimiter, Observation, Quota, observe_overruled};
///
/// let check = |seen: &Observation<'_>| assert!(seen.is_overruled() || seen.denial().is_none());
/// let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(check).build()?;
/// assert!(observe_overruled(|| limiter.try_acquire()).is_admitted());
/// assert!(observe_overruled(|| limiter.try_acquire()).is_denied());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub fn observe_overruled<R>(ask: impl FnOnce() -> R) -> R {
    /// Restores the state, also after a panic.
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            OVERRULES.set(self.0);
        }
    }

    let _restore = Restore(OVERRULES.replace(true));
    ask()
}

/// Whether denials on this thread are overruled.
pub(crate) fn overrules() -> bool {
    OVERRULES.get()
}

impl<F: Fn(&Observation<'_>) + Send + Sync> Observer for F {
    fn observe(&self, observation: &Observation<'_>) {
        self(observation);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn observe(&self, observation: &Observation<'_>) {
        O::observe(self, observation);
    }

    fn unasked(&self, request: Unasked) {
        O::unasked(self, request);
    }
}

/// The observers of one limiter, in the order in which they are called.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

// No panic of an observer leaves `call`.
impl UnwindSafe for Observers {}
impl RefUnwindSafe for Observers {}

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer + 'static) {
        self.0.push(Arc::new(observer));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells each observer of the request and its answer. `quotas` has those of the key in a
    /// dimension.
    ///
    /// The answer and the permits of the request survive a panic: the hook for panics has reported
    /// it.
    pub(crate) fn tell(
        &self,
        request: &ObservedRequest<'_>,
        answer: Result<&Status, CostExceedsLimit>,
        quota: impl FnOnce(Denial) -> Option<Quota>,
    ) {
        let observation = Observation::new(request, answer, quota);
        for observer in &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(&observation)));
        }
    }

    /// Tells each observer of a request that was answered without the limiter. A panic of an observer
    /// ends with the observer.
    pub(crate) fn tell_unasked(&self, request: Unasked) {
        for observer in &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.unasked(request)));
        }
    }

    /// Bytes on the heap, without what the observers hold.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Arc<dyn Observer>>()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}
