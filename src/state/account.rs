//! Accounts: the algorithms whose whole state fits in a key's word, as pure functions of
//! (state, now, cost).
//!
//! Nothing is rounded in a decision: integers, products of 128 bits, and divisions only for times
//! and numbers that are shown, and for aligned windows. A file that rounds says so in its head.
//!
//! # What an author shows
//!
//! For a validated quota, a state that the algorithm made, and times of at least 2^60 and below
//! 2^62:
//!
//! 1. **An earlier `now` admits no more**, so a clock that lags is granted nothing that a later one
//!    would be denied. `now` may be before the last decision.
//! 2. **The wait is exact**: without other traffic the request is admitted after it, and not one
//!    nanosecond sooner.
//! 3. **The state stays below 2^125**, and a decision that writes never writes zero.
//! 4. **The bound of the algorithm**, which the head of the file states, holds for any sequence of
//!    decisions. The head says what refunds do to it.
//!
//! For other numbers the answer is meaningless, but there is no panic.

pub(crate) mod blocks;
pub(super) mod bucket;
pub(super) mod calendar;
pub(super) mod line;
mod rate;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
mod warm_up;
pub(super) mod windows;

use crate::decision::Left;

/// The bits of a word that an account may use. Zero is a key that was never asked.
pub(crate) const STATE_BITS: u32 = 125;

/// The decision on a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Admitted: the state after it, and the wait before the request may go on (zero except for
    /// queues and reservations).
    Admit { state: u128, delay_ns: u64 },
    /// Denied. Without other traffic the same request passes after exactly `wait_ns`. `state` is to
    /// be written all the same, if the first request of a key starts its account.
    Deny { wait_ns: u64, state: Option<u128> },
}

/// An algorithm whose state is one number. Its functions are pure, and its decisions are exact.
pub(crate) trait Account: Copy + PartialEq + Send + Sync {
    /// Decides a request of `cost` permits, at least 1 and at most the limit. A reservation accepts
    /// a wait of `within` nanoseconds; where there is none to be had, it is decided as any other.
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict;

    /// The same of a key that has been asked, without a reservation: what a plain request needs.
    #[inline(always)]
    fn decide_open(&self, state: u128, now: u64, cost: u32) -> Verdict {
        self.decide(state, now, cost, None)
    }

    /// The state after a refund of all but `kept` permits of one request, and how many were
    /// refunded; `None` if none of them can be refunded. `after` is the state that the request left
    /// behind, and `cost` its permits, more than are kept. The caller refunds a request once, and
    /// only to its own key.
    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)>;

    /// The state after a charge of so many permits, whether they fit or not.
    fn owe(&self, state: u128, now: u64, cost: u32) -> u128;

    /// The state under this quota of a key that was under another one of the algorithm, and has been
    /// asked.
    fn converted(&self, from: &Self, state: u128, now: u64) -> u128;

    /// The state with all its times moved by so many nanoseconds, as far as such a state can be at
    /// `now`. For snapshots, under a clock with another origin.
    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128;

    /// The state as a snapshot has it, for this quota or another one of the algorithm.
    #[cfg(feature = "snapshot")]
    fn exported(&self, state: u128, _now: u64) -> u128 {
        state
    }

    /// The state of a key of which a snapshot has the newest stamp of a log. `None` if the key was never
    /// under a log.
    #[cfg(feature = "snapshot")]
    fn of_stamp(&self, _time: u64) -> Option<u128> {
        None
    }

    /// The permits left, or those left to reservations that accept such a wait.
    fn left(&self, state: u128, now: u64, within: Option<u64>) -> Left;

    /// The first time from which the state is no different from that of a new key; `u64::MAX` if
    /// there is none.
    fn over_at(&self, state: u128) -> u64;
}

/// The widths of a state's fields in bits, from the lowest.
#[derive(Clone, Copy)]
struct Widths<const N: usize>([u32; N]);

impl<const N: usize> Widths<N> {
    #[inline]
    fn unpack(self, state: u128) -> [u128; N] {
        let mut at = 0;
        self.0.map(|bits| {
            let field = state >> at & most(bits);
            at += bits;
            field
        })
    }

    /// A number that its field can't hold is put as the largest that it can.
    #[inline]
    fn pack(self, fields: [u128; N]) -> u128 {
        let (mut state, mut at) = (0, 0);
        for (bits, field) in self.0.into_iter().zip(fields) {
            state |= field.min(most(bits)) << at;
            at += bits;
        }
        debug_assert!(at <= STATE_BITS);
        state
    }
}

/// The largest number of so many bits.
const fn most(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// A count of permits, or the largest number of 32 bits.
fn count(permits: u64) -> u32 {
    u32::try_from(permits).unwrap_or(u32::MAX)
}
