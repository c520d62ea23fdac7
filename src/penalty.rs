//! Penalties: a key with too many denials is blocked for a time.
//!
//! # How
//! Each denied key has two words, in a table of their own. One is a sliding window log of *denials*,
//! with a limit of one less than begins a block. A denial that fits is counted. A denial that does
//! not fit requests the one permit of the other word, which has the *blocks* ([`Blocks`]): when the
//! last one began, and its number. If the permit is granted, the next block begins.
//!
//! # Threads
//! Both steps are requests of one permit, so they are exact and lock-free. Of concurrent denials, as
//! many are counted as fit. Exactly one of the others begins the block (INV-PENALTY), and the swap
//! that begins it counts it, so its number is right. The denial that begins a block is not counted in
//! the log of denials. So if a thread stalls between the two steps, the log is as full as before. The
//! next denial does not fit either, and begins the block.

#[cfg(all(test, tollgate_loom))]
mod loom_tests;

use core::cell::Cell;
use core::time::Duration;

use crate::caps::{MAX_DENIALS, MAX_KEY_CAP};
use crate::clock::{Clock, nanos};
use crate::error::PenaltyError;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::state::account::blocks::Blocks;
use crate::state::table::{Scope, Table};
use crate::sync::plain::{AtomicU64, Ordering};
use crate::texts::error_if;

/// A table of penalties starts small. In models it is large enough: those of rebuilds are others.
const EXPECTED_KEYS: usize = if cfg!(tollgate_loom) { 8 } else { 0 };

/// Blocks a key for a while after a number of denials within a while.
///
/// - **Which denials count**: those by the key's own quota
///   ([`DenialReason::Quota`](crate::DenialReason::Quota)), one for each request, whatever its
///   cost. Denials by the block itself, by a list, at the key cap, or by the quota that keys
///   without a place share do not count. Peeks and requests of cost zero do not count either.
/// - **When a block begins**: with the last of `denials` denials within `within`. That last denial
///   has the reason [`DenialReason::Penalty`](crate::DenialReason::Penalty), and its wait is that
///   of the block. A denial at `s` counts until just before `s + within`.
/// - **How long it lasts**: exactly `blocked_for`, unless blocks [grow](Self::growing). Requests do
///   not prolong it. Until then all requests of the key are denied. Their
///   [`retry_after`](crate::Denial::retry_after) is the rest of the block, or the wait of the quota
///   if that is longer. If the wait for a place at the key cap is as long, that is the reason.
/// - **Afterwards**: the denial that began the block does not count towards the next block. The
///   denials before it do, until they are `within` old. With `blocked_for` at least as long as
///   `within`, none counts any more when the block ends. With a shorter block, one more denial can
///   block the key again.
///
/// A peek shows a block, and never begins one. [`forget`](crate::Limiter::forget) and
/// [`clear`](crate::Limiter::clear) end blocks, and forget their number.
///
/// A snapshot has the blocks with their numbers, and the denials that count. The restored limiter may
/// have a penalty with other numbers. A block then lasts as long as the new penalty says, from the
/// time at which it began. A limiter without a penalty restores none.
///
/// A request that was under way when the block began may still be admitted by its quota. If a
/// thread stops between a denial and its count, the denial counts when the thread goes on.
///
/// # Cost
/// Each decision takes one more look-up and one more clock reading. A denial by the quota takes one
/// or two writes. Memory follows the denied keys: up to two cells of 32 bytes and `denials - 1`
/// stamps for each, which are freed when they have expired: the cell of the blocks when the last one
/// is over or, if they grow, when the key has been quiet. The limiter has room for twice as
/// many such cells as its key cap allows keys. A denial that finds no room does not count towards a
/// penalty, and [`Counts::penalties_refused`](crate::Counts::penalties_refused) counts it.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Decision, DenialReason, Limiter, MockClock, Penalty, Quota};
///
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let clock = MockClock::new();
/// // One per second. Two denials within a minute block the key for ten minutes.
/// let limiter = Limiter::<String>::builder(Quota::per_second(1))
///     .penalty(Penalty::new(2, minute, 10 * minute))
///     .clock(clock.clone())
///     .build()?;
///
/// assert!(limiter.try_acquire("mallory").is_admitted());
/// assert_eq!(limiter.try_acquire("mallory").retry_after(), Some(second));
/// match limiter.try_acquire("mallory") {
///     Decision::Denied(denial) => {
///         assert_eq!(denial.reason(), DenialReason::Penalty);
///         assert_eq!(denial.retry_after(), 10 * minute);
///     }
///     Decision::Admitted(_) => unreachable!(),
/// }
/// clock.advance(10 * minute);
/// assert!(limiter.try_acquire("mallory").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Penalty {
    denials: u32,
    within: Duration,
    blocked_for: Duration,
    growth: Option<Growth>,
}

/// How blocks grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Growth {
    factor: u32,
    longest: Duration,
    quiet_for: Duration,
}

impl Penalty {
    /// The largest number of denials: 1,048,576 (2^20), as the largest limit of a quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Penalty;
    ///
    /// let hour = Duration::from_secs(3600);
    /// assert!(Penalty::new(Penalty::MAX_DENIALS, hour, hour).validate().is_ok());
    /// assert!(Penalty::new(Penalty::MAX_DENIALS + 1, hour, hour).validate().is_err());
    /// ```
    pub const MAX_DENIALS: u32 = MAX_DENIALS;

    /// Blocks a key for `blocked_for`, with the last of `denials` denials within `within`.
    ///
    /// The limiter that is built with it checks it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Penalty;
    ///
    /// // Ten denials within a minute block the key for an hour.
    /// let penalty = Penalty::new(10, Duration::from_secs(60), Duration::from_secs(3600));
    /// assert_eq!(penalty.denials(), 10);
    /// assert_eq!(penalty.within(), Duration::from_secs(60));
    /// assert_eq!(penalty.blocked_for(), Duration::from_secs(3600));
    /// assert!(penalty.validate().is_ok());
    /// ```
    #[must_use]
    pub const fn new(denials: u32, within: Duration, blocked_for: Duration) -> Self {
        Self { denials, within, blocked_for, growth: None }
    }

    /// This penalty, with each block of a key `factor` times as long as its last one, and at most
    /// `longest`, until the key has been quiet.
    ///
    /// The k-th block lasts `blocked_for * factor^(k - 1)`, to the nanosecond, or `longest` if that is
    /// less. A block that begins `quiet_for` or more after the end of the last one is the first again.
    /// Denials that begin no block do not count for this. So a key that keeps asking is blocked for
    /// longer and longer, and one that made a mistake pays for it once.
    /// [`Denial::block`](crate::Denial::block) tells the number of a block.
    ///
    /// With a factor of one, blocks are numbered and do not grow. Choose a `quiet_for` that is much
    /// longer than `within`: a key has to be denied often enough in that time to be blocked for longer.
    ///
    /// Source: fail2ban's incremental ban time. With `bantime.increment`, a ban takes `bantime` times
    /// 1, 2, 4, 8 and so on, at most `bantime.maxtime` ([jail.conf]), and the database forgets an
    /// address some time after its last ban (`dbpurgeage`). There `bantime.factor` is a multiplier of
    /// that formula; here the factor is the growth itself. Rack::Attack comes near to it with several
    /// throttles, each with a longer period ([exponential backoff]).
    ///
    /// [jail.conf]: https://github.com/fail2ban/fail2ban/blob/master/config/jail.conf
    /// [exponential backoff]: https://github.com/rack/rack-attack/blob/main/docs/advanced_configuration.md#exponential-backoff
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Penalty, Quota};
    ///
    /// let minute = Duration::from_secs(60);
    /// let (hour, day) = (60 * minute, 24 * 60 * minute);
    /// // 10 minutes, then 20, 40, and so on up to a day, until a key has not been blocked for a week.
    /// let penalty = Penalty::new(1, minute, 10 * minute).growing(2, day, 7 * day);
    /// let clock = MockClock::new();
    /// let builder = Limiter::<String>::builder(Quota::per_minute(1)).penalty(penalty);
    /// let limiter = builder.clock(clock.clone()).build()?;
    ///
    /// for (number, minutes) in [(1, 10), (2, 20), (3, 40)] {
    ///     assert!(limiter.try_acquire("mallory").is_admitted());
    ///     let denial = limiter.try_acquire("mallory").into_result().unwrap_err();
    ///     assert_eq!((denial.block(), denial.retry_after()), (Some(number), minutes * minute));
    ///     clock.advance(minutes * minute + hour);
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn growing(self, factor: u32, longest: Duration, quiet_for: Duration) -> Self {
        Self { growth: Some(Growth { factor, longest, quiet_for }), ..self }
    }

    /// The number of denials that block a key.
    #[must_use]
    pub const fn denials(&self) -> u32 {
        self.denials
    }

    /// The window in which these denials count.
    #[must_use]
    pub const fn within(&self) -> Duration {
        self.within
    }

    /// The duration of a block; of the first, if they grow.
    #[must_use]
    pub const fn blocked_for(&self) -> Duration {
        self.blocked_for
    }

    /// The numbers given to [`growing`](Self::growing): the factor, the longest block and the quiet
    /// time. `None` for a penalty whose blocks are all alike.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Penalty;
    ///
    /// let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
    /// let penalty = Penalty::new(10, minute, 10 * minute);
    /// assert_eq!(penalty.growth(), None);
    /// assert_eq!(penalty.growing(2, day, 7 * day).growth(), Some((2, day, 7 * day)));
    /// ```
    #[must_use]
    pub const fn growth(&self) -> Option<(u32, Duration, Duration)> {
        match self.growth {
            Some(Growth { factor, longest, quiet_for }) => Some((factor, longest, quiet_for)),
            None => None,
        }
    }

    /// Checks that a limiter can be built with this penalty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Penalty, PenaltyError};
    ///
    /// let penalty = Penalty::new(10, Duration::from_secs(60), Duration::ZERO);
    /// assert_eq!(penalty.validate(), Err(PenaltyError::ZeroBlock));
    /// ```
    ///
    /// # Errors
    ///
    /// [`PenaltyError`] when a number or a duration is zero or too large:
    /// [`MAX_DENIALS`](Self::MAX_DENIALS), [`Quota::MAX_WINDOW`]. Of a [growing](Self::growing) one
    /// also when the longest block is shorter than the first.
    pub const fn validate(&self) -> Result<(), PenaltyError> {
        let &Self { denials, within, blocked_for, growth } = self;
        let most = Quota::MAX_WINDOW.as_nanos();
        error_if! {
            denials == 0 => PenaltyError::ZeroDenials;
            denials > Self::MAX_DENIALS => PenaltyError::TooManyDenials { denials };
            within.is_zero() => PenaltyError::ZeroWithin;
            blocked_for.is_zero() => PenaltyError::ZeroBlock;
            within.as_nanos() > most => PenaltyError::WithinTooLong { within };
            blocked_for.as_nanos() > most => PenaltyError::BlockTooLong { blocked_for };
        }
        let Some(Growth { factor, longest, quiet_for }) = growth else { return Ok(()) };
        error_if! {
            factor == 0 => PenaltyError::ZeroFactor;
            longest.as_nanos() < blocked_for.as_nanos() => PenaltyError::LongestTooShort { blocked_for };
            longest.as_nanos() > most => PenaltyError::LongestTooLong { longest };
            quiet_for.is_zero() => PenaltyError::ZeroQuiet;
            quiet_for.as_nanos() > most => PenaltyError::QuietTooLong { quiet_for };
        }
        Ok(())
    }

    /// The quota of the denials that begin no block. With one denial it is not asked.
    fn counted(self) -> Quota {
        Quota::new(self.denials.saturating_sub(1).max(1), self.within)
    }

    /// The lengths of blocks.
    fn blocks(self) -> Blocks {
        let first = nanos(self.blocked_for);
        match self.growth {
            Some(Growth { factor, longest, quiet_for }) => {
                Blocks { first, factor: factor.into(), longest: nanos(longest), quiet: nanos(quiet_for) }
            }
            None => Blocks { first, factor: 1, longest: first, quiet: 0 },
        }
    }
}

/// The block of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// The reading at which it ends.
    pub(crate) until: u64,
    /// At least one.
    pub(crate) number: u8,
}

/// The groups of the table.
const DENIALS: usize = 0;
const BLOCK: usize = 1;

/// The denials and blocks of a limiter's keys.
pub(crate) struct Penalties {
    pub(crate) table: Table,
    /// The denials that begin a block; zero, if no key is blocked. With one they are not counted.
    denials: AtomicU64,
    begun: AtomicU64,
}

impl Penalties {
    /// Those of a valid penalty.
    pub(crate) fn new(penalty: Penalty, key_cap: usize) -> Self {
        let places = key_cap.saturating_mul(2).min(MAX_KEY_CAP);
        Self {
            table: Table::with_blocks(penalty.counted(), penalty.blocks(), places, EXPECTED_KEYS),
            denials: AtomicU64::new(penalty.denials.into()),
            begun: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.denials.load(Ordering::Acquire) > 0
    }

    /// Changes to a valid penalty, or to none. Denials and blocks stay, and count on under it.
    pub(crate) fn change(&self, to: Option<Penalty>, clock: &impl Clock) {
        if let Some(to) = to {
            self.table.change(DENIALS, Scope::All, &[to.counted()], clock);
            self.table.change_blocks(BLOCK, to.blocks(), clock);
        }
        self.denials.store(to.map_or(0, |to| to.denials.into()), Ordering::Release);
    }

    /// The block of the key, if it is blocked.
    #[inline]
    pub(crate) fn block_of(&self, key: Fingerprint, clock: &Noted<'_>) -> Option<Block> {
        if !self.is_on() {
            return None;
        }
        let (rest, number) = self.table.block_of(key.in_dimension(BLOCK), clock)?;
        Some(Block { until: clock.last().saturating_add(rest), number })
    }

    /// Counts a denial by the key's quota. Returns the block of the key, if it is blocked now.
    #[cold]
    pub(crate) fn note_denial(&self, key: Fingerprint, clock: &Noted<'_>) -> Option<Block> {
        let denials = self.denials.load(Ordering::Acquire);
        if denials == 0 || denials > 1 && self.table.takes_one(key.in_dimension(DENIALS), clock)? {
            return None;
        }
        if self.table.takes_one(key.in_dimension(BLOCK), clock)? {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        // A helper may have chosen the stamp, so the thread that began the block reads it.
        self.block_of(key, clock)
    }

    /// Forgets the denials and the block of a key. Returns whether it had either.
    pub(crate) fn forget(&self, key: Fingerprint, clock: &impl Clock) -> bool {
        let [denials, block] = [DENIALS, BLOCK].map(|group| self.table.forget(key.in_dimension(group), clock));
        denials | block
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// A clock that stores its last reading. Waits from different readings are compared as absolute
/// times.
pub(crate) struct Noted<'a> {
    clock: &'a dyn Clock,
    last: Cell<u64>,
}

impl<'a> Noted<'a> {
    pub(crate) fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, last: Cell::new(0) }
    }

    /// The last reading.
    pub(crate) fn last(&self) -> u64 {
        self.last.get()
    }
}

impl Clock for Noted<'_> {
    #[inline]
    fn now(&self) -> u64 {
        let now = self.clock.now();
        self.last.set(now);
        now
    }
}
