//! The trait [`Clock`].

/// A source of time: nanoseconds since an origin that stays the same for as long as the clock is used.
///
/// Readings should not go backwards. When they do (between cores, or after a virtual machine was moved) a limiter never admits
/// more for it: it takes a reading that lies before a key's newest stamp for that stamp. Where it has lost stamps, because a
/// key had expired or was forgotten, or because a ring grew, it may stamp the next permit as late as the last of those, but
/// never later than the latest reading, and what was still live of the key's permits then stays live until then. (Of a log whose
/// quotas have [changed](crate::Limiter::set_quotas) a window may hold one more, by as much as the readings of two threads differ, where one
/// finishes what the other was stopped in.)
///
/// Readings are told apart for 109 years; after that a limiter denies too much, and never admits too much.
///
/// ```
/// use tollgate::Clock;
///
/// /// A clock for a simulation that counts in milliseconds.
/// struct Ticks(std::sync::atomic::AtomicU64);
///
/// impl Clock for Ticks {
///     fn now(&self) -> u64 {
///         self.0.load(std::sync::atomic::Ordering::Relaxed) * 1_000_000
///     }
/// }
/// ```
pub trait Clock {
    /// The time now, in nanoseconds since the clock's own origin.
    fn now(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }
}
