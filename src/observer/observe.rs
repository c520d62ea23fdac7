//! [`Observer`]: the trait.

use std::sync::Arc;

use super::observation::Observation;

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
/// Peeks, refunds and requests of cost zero are not observed. Nor is a request whose keys are
/// missing ([`JointError::NoKeys`](crate::JointError::NoKeys),
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
}
