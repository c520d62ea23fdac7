//! A change of quotas between a thread's load of them and its reading of the clock.
//!
//! Under the old quotas, permits have left their window by that reading. Under the new ones they
//! are live, so they must not be lost.

use core::time::Duration;

use super::kit::*;
use crate::quota::Quota;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn log(window: u64) -> Quota {
    Quota::new(8, nanos(window))
}

/// Two permits, and one more every so many nanoseconds.
fn bucket(every: u64) -> Quota {
    Quota::token_bucket(2, 1, nanos(every))
}

struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// A clock that shows one time after the other, and changes the quota before it shows the last.
struct Changes<'a> {
    cells: &'a Cells,
    scope: Scope,
    quota: Quota,
    shows: &'a [u64],
    read: AtomicU64,
}

/// The time of the change.
const CHANGED: u64 = 9;

impl Clock for Changes<'_> {
    fn now(&self) -> u64 {
        let read = usize::try_from(self.read.fetch_add(1, Ordering::Relaxed)).unwrap();
        if read + 1 == self.shows.len() {
            self.cells.versions(0).change(self.scope, &[self.quota], || time_of(CHANGED)).unwrap();
        }
        self.shows[read.min(self.shows.len() - 1)]
    }
}

/// A cell of a key that has been granted permits.
struct One {
    cells: Cells,
    scope: Scope,
}

impl One {
    /// With a cell for a key that may have quotas of its own, and was granted permits at these
    /// times.
    fn new(quota: Quota, scope: Scope, granted: &[(u32, u64)]) -> Self {
        let cells = Cells::new([Versions::with_own(&[quota], 1)].into(), 4);
        assert_eq!(cells.create(KEY, 0), Some((0, 0)));
        let one = Self { cells, scope };
        for &(cost, at) in granted {
            assert!(one.ask(Ask::Acquire, cost, &At(at)).0.is_admitted());
        }
        one
    }

    fn changes<'a>(&'a self, quota: Quota, shows: &'a [u64]) -> Changes<'a> {
        Changes { cells: &self.cells, scope: self.scope, quota, shows, read: AtomicU64::new(0) }
    }

    fn seat(&self) -> Seat<'_> {
        self.cells.seat_for(0, 0, KEY).unwrap()
    }

    fn ask(&self, ask: Ask, cost: u32, clock: &impl Clock) -> (Status, Charge) {
        self.cells.decide_refundable(ask, self.seat(), cost, clock).unwrap()
    }

    fn remaining(&self, at: u64) -> u32 {
        self.ask(Ask::Peek, 0, &At(at)).0.remaining()
    }
}

/// The quotas of all keys, or of the one, change.
const SCOPES: [Scope; 2] = [Scope::All, Scope::Key(KEY)];

/// Logs of eight permits in ten nanoseconds, which become a hundred.
fn logs(granted: &[(u32, u64)]) -> [One; 2] {
    SCOPES.map(|scope| One::new(log(10), scope, granted))
}

#[test]
fn a_claim_overwrites_no_stamp_that_counts_again() {
    for one in logs(&[(4, 0)]) {
        assert!(one.ask(Ask::Acquire, 1, &one.changes(log(100), &[13])).0.is_admitted());
        assert_eq!([13, 99, 100].map(|at| one.remaining(at)), [3, 3, 7]);
    }
}

#[test]
fn a_larger_ring_keeps_stamps_that_count_again() {
    for one in logs(&[(4, 0)]) {
        assert!(!one.ask(Ask::Acquire, 5, &one.changes(log(100), &[13])).0.is_admitted());
        assert_eq!(one.remaining(13), 4);
    }
    // The change comes while the ring is prepared, and the clock is read again for its stamp.
    for one in logs(&[(4, 0)]) {
        assert!(one.ask(Ask::Acquire, 3, &one.changes(log(100), &[9, 13])).0.is_admitted());
        assert_eq!([13, 99, 100].map(|at| one.remaining(at)), [1, 1, 5]);
    }
}

#[test]
fn a_joint_claim_is_not_prepared_by_outdated_quotas() {
    for one in logs(&[(4, 0)]) {
        let clock = one.changes(log(100), &[13]);
        assert!((0..3).all(|_| one.cells.prepare(one.seat(), 5, &clock, None).is_none()));
    }
    for scope in SCOPES {
        let one = One::new(bucket(10), scope, &[(2, 0)]);
        let clock = one.changes(bucket(1000), &[25]);
        assert!((0..3).all(|_| one.cells.prepare(one.seat(), 1, &clock, None).is_none()));
        assert_eq!(one.remaining(25), 0);
    }
}

#[test]
fn a_refund_keeps_other_stamps_that_count_again() {
    for one in logs(&[(3, 0)]) {
        let (_, charge) = one.ask(Ask::Reserve { within: 0 }, 1, &At(5));
        assert_eq!(one.cells.refund(one.seat(), charge, 1, &one.changes(log(100), &[13])), Some(1));
        assert_eq!(one.remaining(13), 5);
    }
}

#[test]
fn a_reservation_keeps_stamps_that_count_again() {
    for one in logs(&[(4, 0), (4, 5)]) {
        let (status, _) = one.ask(Ask::Reserve { within: 10 }, 5, &one.changes(log(100), &[13]));
        assert!(status.is_denied());
        assert_eq!([13, 100, 105].map(|at| one.remaining(at)), [0, 4, 8]);
    }
}

#[test]
fn a_refused_request_that_counts_keeps_stamps_that_count_again() {
    let log = |limit, window| Quota::new(limit, nanos(window)).counting_refused();
    for scope in SCOPES {
        let one = One::new(log(2, 10), scope, &[(1, 0), (1, 5)]);
        assert!(one.ask(Ask::Acquire, 2, &one.changes(log(4, 100), &[13])).0.is_admitted());
        assert_eq!(one.remaining(13), 0);
    }
}

#[test]
fn a_sweep_frees_no_cell_whose_stamps_count_again() {
    let long = [(log(10), log(100), 100), (bucket(10), bucket(1000), 2009)];
    for (short, long, end) in long {
        for scope in SCOPES {
            let one = One::new(short, scope, &[(2, 0)]);
            // The clock was set back after the sweep had read it for this chunk.
            let freed = one.cells.free(0, 0, time_of(3000), &one.changes(long, &[25]));
            assert_eq!(freed, Freed::Live(time_of(end)));
            assert_eq!(one.cells.free(0, 0, time_of(3000), &At(end)), Freed::Gone);
        }
    }
}

#[test]
fn an_account_that_goes_on_is_not_closed() {
    for (cost, scope) in [(1, SCOPES[0]), (1, SCOPES[1]), (2, SCOPES[0]), (2, SCOPES[1])] {
        let one = One::new(bucket(10), scope, &[(2, 0)]);
        // Full at 20 under the first quota. At the change one permit and a tenth are missing, which
        // count as two.
        assert!(one.ask(Ask::Acquire, cost, &one.changes(bucket(1000), &[25])).0.is_denied());
        assert_eq!([25, 1008, 1009, 2009].map(|at| one.remaining(at)), [0, 0, 1, 2]);
    }
}

/// A change reads the clock and stalls, and permits are granted before its quotas are current.
#[test]
fn permits_of_later_than_the_change_are_charged_to_it() {
    // Two places, and one leaves every ten nanoseconds.
    let queue = Quota::leaky_queue(1, nanos(10), nanos(10));
    let faster = Quota::leaky_queue(1, nanos(5), nanos(5));
    let smaller = Quota::token_bucket(1, 1, nanos(10));
    for (before, after) in [
        (bucket(10), bucket(10)),
        (bucket(10), bucket(20)),
        (bucket(10), bucket(1)),
        (bucket(10), smaller),
        (queue, queue),
        (queue, faster),
    ] {
        for scope in SCOPES {
            // Two, and one more every ten nanoseconds.
            let granted: Vec<_> = [0].into_iter().chain((0..10).map(|nth| nth * 10)).map(|at| (1, at)).collect();
            let one = One::new(before, scope, &granted);
            one.cells.versions(0).change(scope, &[after], || time_of(9)).unwrap();
            assert_eq!(one.remaining(90), 0, "{before:?} {after:?}");
            assert!(one.ask(Ask::Acquire, 1, &At(90)).0.is_denied());
            // They are paid back at the rate at which they were granted, but for the last few.
            assert!(one.ask(Ask::Acquire, 1, &At(150)).0.is_admitted(), "{before:?} {after:?}");
        }
    }
}

/// The stamps of a key had expired before its quotas changed, and its cell is freed by the new ones.
#[test]
fn the_timestamp_floor_rises_to_a_change_after_which_no_stamp_counts() {
    for scope in SCOPES {
        let one = One::new(log(10), scope, &[(1, 5)]);
        one.cells.versions(0).change(scope, &[log(100)], || time_of(CHANGED + 10)).unwrap();
        assert_eq!(one.cells.free(0, 0, time_of(CHANGED + 10), &At(CHANGED + 10)), Freed::Gone);
        assert!(one.cells.store.timestamp_floor() >= time_of(15), "a clock that is set back to 5 repeats the stamp");
    }
}

/// A request's cost was checked before the limit became smaller.
#[test]
fn a_cell_of_a_new_key_is_made_by_the_quotas_of_that_moment() {
    let kinds: [fn(u32) -> Quota; 3] = [
        |limit| Quota::new(limit, nanos(10)),
        |limit| Quota::fixed_window(limit, nanos(10)),
        |limit| Quota::quantised_log(limit, nanos(10), nanos(1)),
    ];
    for quota in kinds {
        let cells = Cells::together([3, 3].map(|limit| Versions::new(&[quota(limit)])).into(), 4);
        cells.versions(0).change(Scope::All, &[quota(2)], || time_of(0)).unwrap();
        let (id, incarnation) = cells.create(KEY, 3).unwrap();
        cells.grant(id, incarnation, &At(1));
        let seat = || cells.seat_for(id, incarnation, KEY).unwrap();
        let ask = |ask, cost| cells.decide(ask, seat(), cost, &At(1)).unwrap();
        assert_eq!(ask(Ask::Peek, 0).remaining(), 2, "{:?}", quota(2));
        assert!(cells.prepare(seat(), 3, &At(1), None).is_none() && ask(Ask::Acquire, 3).is_denied());
        assert!(ask(Ask::Acquire, 2).is_admitted());
    }
}
