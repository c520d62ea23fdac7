//! [`Around`]: the limits around the work of this thread, as those inside see them.

use core::cell::Cell;

/// A limit around an inner service.
///
/// The limits inside know of those around them without a mark on the request: they run within
/// [`run`](Self::run), on the same thread.
///
/// ```
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use tollgate::{DirectLimiter, Quota};
/// use tollgate_http::middleware::{Limits, Options};
///
/// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
/// let limits = Limits::<_, Bytes>::new(limiter, Options::default());
/// // A middleware does so with each call and poll of the service that it is around.
/// limits.around::<()>(true).run(|| assert!(limits.notice().is_some(), "the same limit again"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Around {
    /// The address of its limiter; zero if that was not asked.
    limiter: usize,
    is_unnamed: bool,
}

/// The limits around the work of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Outer {
    limiters: [usize; MOST],
    count: usize,
    unnamed: usize,
}

/// The most limiters that are kept. Those further inside are not.
const MOST: usize = 4;

thread_local! {
    static OUTER: Cell<Outer> = const { Cell::new(Outer { limiters: [0; MOST], count: 0, unnamed: 0 }) };
}

impl Around {
    pub(crate) const fn new(limiter: usize, is_unnamed: bool) -> Self {
        Self { limiter, is_unnamed }
    }

    /// Does a part of the inner service's work, such as a poll of its future.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        /// Restores the limits, also after a panic.
        struct Restore(Outer);

        impl Drop for Restore {
            fn drop(&mut self) {
                OUTER.set(self.0);
            }
        }

        let outer = Outer::here();
        OUTER.set(outer.and(self));
        let _restore = Restore(outer);
        work()
    }
}

impl Outer {
    pub(crate) fn here() -> Self {
        OUTER.get()
    }

    fn and(mut self, inner: Around) -> Self {
        if let Some(place) = self.limiters.get_mut(self.count).filter(|_| inner.limiter != 0) {
            *place = inner.limiter;
            self.count += 1;
        }
        Self { unnamed: self.unnamed + usize::from(inner.is_unnamed), ..self }
    }

    /// How many of them have no name of their own.
    pub(crate) const fn unnamed(&self) -> usize {
        self.unnamed
    }

    /// Whether this limiter has been asked.
    pub(crate) fn has(&self, limiter: usize) -> bool {
        self.limiters[..self.count].contains(&limiter)
    }
}

#[cfg(test)]
mod tests {
    use super::{Around, MOST, Outer};

    #[test]
    fn the_limits_around_a_work_are_those_of_its_time() {
        let [outer, inner] = [Around::new(1, true), Around::new(2, false)];
        outer.run(|| {
            inner.run(|| assert!(Outer::here().has(1) && Outer::here().has(2) && Outer::here().unnamed() == 1));
            assert!(Outer::here().has(1) && !Outer::here().has(2));
        });
        let panicked = std::panic::catch_unwind(|| outer.run(|| panic!("in the inner service")));
        assert!(panicked.is_err() && !Outer::here().has(1) && Outer::here().unnamed() == 0);
        Around::new(0, false).run(|| assert!(!Outer::here().has(0), "it was not asked"));
    }

    #[test]
    fn limits_beyond_the_most_are_not_kept() {
        fn nest(limiter: usize) {
            Around::new(limiter, true).run(|| {
                assert_eq!((Outer::here().has(limiter), Outer::here().unnamed()), (limiter <= MOST, limiter));
                if limiter < 9 {
                    nest(limiter + 1);
                }
            });
        }
        nest(1);
    }
}
