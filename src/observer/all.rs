//! [`Observers`]: the observers of one limiter.

use core::fmt;
use core::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::panic::catch_unwind;
use std::sync::Arc;

use super::observation::{Observation, Request};
use super::observe::Observer;
use super::told::Told;
use crate::quota::Quota;

/// The observers of one limiter, in the order in which they are called.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Box<AtLeastOne>>);

/// At least one observer. In a box, because most limiters have none.
#[derive(Clone, Default)]
struct AtLeastOne(Vec<Arc<dyn Observer>>);

// No panic of an observer leaves `call`.
impl UnwindSafe for Observers {}
impl RefUnwindSafe for Observers {}

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer + 'static) {
        self.0.get_or_insert_default().0.push(Arc::new(observer));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Tells each observer of the request and its answer. `quotas` has those of the key in a
    /// dimension.
    ///
    /// The answer and the permits of the request survive a panic: the hook for panics has reported
    /// it.
    pub(crate) fn tell<'a>(
        &self,
        request: &'a Request<'a>,
        answer: &'a impl Told,
        quotas: impl FnOnce(usize) -> Arc<[Quota]>,
    ) {
        let Some(observation) = Observation::new(request, answer, quotas) else { return };
        for observer in self.all() {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(&observation)));
        }
    }

    /// Bytes on the heap, without what the observers hold.
    pub(crate) fn bytes(&self) -> usize {
        let of = |all: &AtLeastOne| size_of_val(all) + all.0.capacity() * size_of::<Arc<dyn Observer>>();
        self.0.as_deref().map_or(0, of)
    }

    fn all(&self) -> &[Arc<dyn Observer>] {
        self.0.as_deref().map_or(&[], |all| &all.0)
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.all().len())
    }
}
