//! A thread that stops for ever at a cell with an account, at each step at which it has left
//! something unfinished.
//!
//! The steps are taken by hand, as far as the stalled thread got.

use core::time::Duration;

use super::layout::EraKind;
use crate::cell::kit::*;
use crate::quota::Quota;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);
const OPENS: EraKind = EraKind::Opens;
const ADVANCES: EraKind = EraKind::Advances;
const CLOSES: EraKind = EraKind::Closes;
const REPLACES: EraKind = EraKind::Replaces;

struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A cell that was granted `cost` permits at time zero.
struct One(Cells);

impl One {
    fn new(quota: Quota, cost: u32) -> Self {
        let cells = Cells::new([Versions::new(&[quota])].into(), 4);
        assert_eq!(cells.create(KEY, cost), Some((0, 0)));
        cells.grant(0, 0, &At(0));
        Self(cells)
    }

    fn cell(&self) -> &Cell {
        self.0.store.cells.element(0)
    }

    /// Claims the next era and stalls.
    fn claim_and_stall(&self, kind: EraKind, used: u64) {
        let Plan::Counter(plan) = &self.0.versions(0).current().plan else { panic!("a log") };
        let head = self.cell().head();
        self.cell().head.store(plan.layout.next(head, plan.layout.version(head), kind, used).0, Ordering::Release);
    }

    /// Publishes the end of a closed account and stalls.
    fn publish_closed_and_stall(&self, at: u64, era: u64) {
        self.cell().ring.store(Slot::over(time_of(at), era).0, Ordering::Release);
    }

    fn change(&self, quota: Quota, at: u64) {
        self.0.versions(0).change(Scope::All, &[quota], || time_of(at)).unwrap();
    }

    fn ask(&self, ask: Ask, cost: u32, at: u64) -> Status {
        let seat = self.0.seat_for(0, 0, KEY).unwrap();
        let fast = (ask == Ask::Acquire).then(|| self.0.fast_if_open(seat, cost, at)).flatten();
        let status = self.0.decide(if fast.is_some() { Ask::Peek } else { ask }, seat, cost, &At(at)).unwrap();
        fast.map_or(status, |decision| Status { decision, ..status })
    }

    fn admits(&self, cost: u32, at: u64) -> bool {
        self.ask(Ask::Acquire, cost, at).is_admitted()
    }

    fn remaining(&self, at: u64) -> u32 {
        self.ask(Ask::Peek, 0, at).remaining()
    }
}

/// Holds two permits; one every ten nanoseconds.
fn bucket() -> Quota {
    Quota::token_bucket(2, 1, nanos(10))
}

#[test]
fn after_claiming_the_close() {
    // All of two permits at zero are there again at 20.
    for helper in [0, 19, 20, 500] {
        let one = One::new(bucket(), 2);
        one.claim_and_stall(CLOSES, 2);
        // The first thread computes the end of the account, by any clock.
        assert_eq!(one.ask(Ask::Peek, 0, helper).reset_after(), nanos(20_u64.saturating_sub(helper)));
        assert!(one.admits(2, 20));
        assert_eq!((one.remaining(20), one.remaining(39), one.remaining(40)), (0, 1, 2));
    }
}

#[test]
fn between_closing_and_opening() {
    let one = One::new(bucket(), 2);
    one.claim_and_stall(CLOSES, 2);
    one.publish_closed_and_stall(20, 2);
    // By a clock that lags the account opens when the one before it was over, and no earlier.
    assert!(one.admits(2, 5));
    assert!(!one.admits(1, 29));
    assert!(one.admits(1, 30));
}

#[test]
fn between_closing_and_opening_a_cell_is_freed() {
    let one = One::new(bucket(), 2);
    one.claim_and_stall(CLOSES, 2);
    one.publish_closed_and_stall(20, 2);
    assert_eq!(one.0.free(0, 0, time_of(19), &At(19)), Freed::Live(time_of(20)));
    assert_eq!(one.0.free(0, 0, time_of(20), &At(20)), Freed::Gone);
    // And so is one whose account was closed by a thread that got no further than the claim, or
    // whose key was forgotten.
    let one = One::new(bucket(), 2);
    one.claim_and_stall(CLOSES, 2);
    assert_eq!(one.0.free(0, 0, time_of(20), &At(20)), Freed::Gone);
    let one = One::new(bucket(), 2);
    one.claim_and_stall(CLOSES, 2);
    assert!(one.0.forget(0, 0, &At(5)));
    assert_eq!(one.0.free(0, 0, time_of(5), &At(5)), Freed::Gone);
    // The cell's next key begins no earlier than the last one could have.
    assert_eq!(one.0.create(KEY, 2), Some((0, 1)));
    one.0.grant(0, 1, &At(5));
    let seat = one.0.seat_for(0, 1, KEY).unwrap();
    assert_eq!(one.0.decide(Ask::Peek, seat, 0, &At(20)).unwrap().remaining(), 0);
}

#[test]
fn after_claiming_the_opening() {
    for (helper, opened) in [(5, 20), (20, 20), (26, 26)] {
        let one = One::new(bucket(), 2);
        one.claim_and_stall(CLOSES, 2);
        one.publish_closed_and_stall(20, 2);
        one.claim_and_stall(OPENS, 1);
        assert_eq!(one.remaining(helper), 1);
        assert!(one.admits(1, opened));
        assert!(!one.admits(1, opened + 9));
        assert!(one.admits(1, opened + 10));
    }
}

#[test]
fn after_claiming_what_replaces_an_account() {
    for (helper, opened) in [(0, 20), (19, 20), (20, 20), (26, 26)] {
        let one = One::new(bucket(), 2);
        // The head says how much the last account had used; this one has used one permit.
        one.claim_and_stall(REPLACES, 2);
        assert_eq!(one.remaining(helper), 1);
        assert!(one.admits(1, opened));
        assert!(!one.admits(1, opened + 9));
        assert!(one.admits(1, opened + 10));
    }
}

#[test]
fn after_claiming_what_replaces_an_account_a_cell_is_freed() {
    let one = One::new(bucket(), 2);
    one.claim_and_stall(REPLACES, 2);
    // The account opens at 20, whatever the clock, and is over at 30.
    assert_eq!(one.0.free(0, 0, time_of(29), &At(5)), Freed::Live(time_of(30)));
    assert_eq!(one.0.free(0, 0, time_of(30), &At(30)), Freed::Gone);
    let one = One::new(bucket(), 2);
    one.claim_and_stall(REPLACES, 2);
    assert!(one.0.forget(0, 0, &At(5)));
    assert_eq!(one.0.free(0, 0, time_of(5), &At(5)), Freed::Gone);
    assert_eq!(one.0.store.timestamp_floor(), time_of(20));
}

#[test]
fn after_claiming_what_replaces_an_account_the_quota_changes() {
    for helper in [0, 24, 500] {
        let one = One::new(bucket(), 2);
        one.claim_and_stall(REPLACES, 2);
        one.change(Quota::token_bucket(3, 1, nanos(100)), 25);
        // One has been used since 20 or later; half of it has come back at most.
        assert_eq!(one.remaining(helper.max(25)), 2);
        assert!(one.admits(2, helper.max(25)));
    }
}

#[test]
fn a_window_that_replaces_another_goes_on_when_its_quota_changes() {
    let one = One::new(Quota::fixed_window(3, nanos(10)), 3);
    assert!(one.admits(1, 10));
    one.change(Quota::fixed_window(4, nanos(20)), 15);
    assert!(one.admits(1, 16));
    assert_eq!([16, 29, 30].map(|at| one.remaining(at)), [2, 2, 4]);
}

/// A clock that has not got as far may decide by a quota that has been read since.
#[test]
fn no_account_opens_before_its_quota_began() {
    for (cost, left) in [(1, [100, 100]), (50, [60, 61])] {
        let many = || Quota::token_bucket(100, 1, nanos(10));
        let one = One::new(many(), 1);
        one.change(Quota::token_bucket(1, 1, nanos(10)), 50);
        one.change(many(), 100);
        assert!(one.admits(cost, 95));
        one.change(many(), 200);
        // Ten of them have come back since 100.
        assert_eq!([200, 210].map(|at| one.remaining(at)), left);
    }
}

/// If nothing is used of an account and no time has passed, the next charge goes to the same
/// account, whose anchor stays (INV-RISE).
#[test]
fn an_account_that_was_given_everything_back_goes_on() {
    for cost in [1, 2] {
        let one = One::new(bucket(), 0);
        let seat = || one.0.seat_for(0, 0, KEY).unwrap();
        let (_, charge) = one.0.decide_refundable(Ask::Acquire, seat(), 2, &At(7)).unwrap();
        let opened = one.cell().slot();
        assert_eq!((one.0.refund(seat(), charge, 2, &At(7)), opened.time()), (Some(2), time_of(7)));
        assert!(one.admits(cost, 7));
        // Another account at the same time would, with the one after it, bring the word back that a
        // late publication expects.
        assert_eq!((one.cell().slot(), one.remaining(8)), (opened, 2 - cost));
    }
}

/// A fully refunded account is over as soon as it opened. The published end is later all the same
/// (INV-RISE).
#[test]
fn after_closing_an_account_that_was_given_everything_back() {
    let one = One::new(bucket(), 1);
    let opened = one.cell().slot().time();
    one.claim_and_stall(CLOSES, 0);
    assert_eq!(one.remaining(0), 2);
    assert_eq!(one.cell().slot().time(), opened + 1);
}

/// The next key's account opens no earlier than this one did, even if its clock lags: a late
/// publication might take it for its own.
#[test]
fn a_window_that_was_given_everything_back_is_taken_back_as_of_when_it_opened() {
    let one = One::new(Quota::fixed_window(2, nanos(100)).aligned(nanos(0)), 0);
    let seat = || one.0.seat_for(0, 0, KEY).unwrap();
    let (_, charge) = one.0.decide_refundable(Ask::Acquire, seat(), 1, &At(30)).unwrap();
    assert_eq!(one.0.refund(seat(), charge, 1, &At(31)), Some(1));
    assert_eq!(one.0.free(0, 0, time_of(31), &At(31)), Freed::Gone);
    assert_eq!(one.0.store.timestamp_floor(), time_of(30));
}

#[test]
fn after_claiming_the_advance() {
    // The longest stride there is for one permit every ten nanoseconds: 1024 permits in 10,240.
    for helper in [0, 10_250, 20_000] {
        let one = One::new(bucket(), 2);
        for at in 1..=1023 {
            assert!(one.admits(1, at * 10));
        }
        // The next would be the 1026th, which is the second after one stride.
        one.claim_and_stall(ADVANCES, 2);
        let _ = one.ask(Ask::Peek, 0, helper);
        assert_eq!([10_240, 10_249, 10_250, 10_260].map(|at| one.remaining(at)), [0, 0, 1, 2]);
    }
}

#[test]
fn before_granting_the_first_permits_of_a_new_key() {
    let cells = Cells::new([Versions::new(&[bucket()])].into(), 4);
    let (id, incarnation) = cells.create(KEY, 2).unwrap();
    let seat = cells.seat_for(id, incarnation, KEY).unwrap();
    assert!(cells.fast_if_open(seat, 1, 7).is_none());
    assert!(!cells.decide(Ask::Acquire, seat, 1, &At(7)).unwrap().is_admitted());
    // The first thread wakes up too late to say when it was.
    cells.grant(id, incarnation, &At(30));
    assert_eq!(cells.free(id, incarnation, time_of(26), &At(26)), Freed::Live(time_of(27)));
    assert_eq!(cells.free(id, incarnation, time_of(27), &At(27)), Freed::Gone);
    // Nor does it grant anything to the next key.
    assert_eq!(cells.create(KEY, 1), Some((id, incarnation + 1)));
    let slot = cells.store.cells.element(id).ring.load(Ordering::Acquire);
    cells.grant(id, incarnation, &At(30));
    assert_eq!(cells.store.cells.element(id).ring.load(Ordering::Acquire), slot);
}

#[test]
fn before_granting_the_first_permits_of_a_key_that_starts_with_few() {
    let cells = Cells::new([Versions::new(&[bucket().starting_with(0)])].into(), 4);
    let (id, incarnation) = cells.create(KEY, 1).unwrap();
    let seat = cells.seat_for(id, incarnation, KEY).unwrap();
    // Nothing was granted, and the first permit comes one interval after a peek.
    assert_eq!(cells.decide(Ask::Peek, seat, 1, &At(7)).unwrap().retry_after(), Some(nanos(10)));
    cells.grant(id, incarnation, &At(9));
    assert!(!cells.decide(Ask::Acquire, seat, 1, &At(16)).unwrap().is_admitted());
    assert!(
        cells.decide(Ask::Acquire, cells.seat_for(id, incarnation, KEY).unwrap(), 1, &At(17)).unwrap().is_admitted()
    );
    // A key that starts with few is not taken back, not even when its account is closed.
    assert_eq!(cells.free(id, incarnation, time_of(10_000), &At(10_000)), Freed::Live(MAX_TIME));
}

#[test]
fn with_a_head_that_is_out_of_date() {
    let one = One::new(bucket(), 1);
    let seat = one.0.seat_for(0, 0, KEY).unwrap();
    assert!(one.admits(1, 1));
    // One permit was there, and has been taken since.
    assert!(one.0.fast_if_open(seat, 1, 2).is_none());
    assert!(!one.0.decide(Ask::Acquire, seat, 1, &At(2)).unwrap().is_admitted());
    // Nothing was used, and another account is open since.
    let seat = one.0.seat_for(0, 0, KEY).unwrap();
    assert!(one.admits(2, 100));
    assert!(one.0.fast_if_open(seat, 1, 100).is_none());
    assert!(!one.0.decide(Ask::Acquire, seat, 1, &At(109)).unwrap().is_admitted());
}

#[test]
fn an_aligned_window_that_was_closed_opens_at_a_boundary() {
    let one = One::new(Quota::fixed_window(1, nanos(10)).aligned(nanos(3)), 1);
    // The first window is the rest of one that began before time did, and ends at 3.
    one.claim_and_stall(CLOSES, 1);
    // By a clock that lags, in the window from 3 to 13.
    assert!(one.admits(1, 2));
    assert_eq!((one.admits(1, 12), one.admits(1, 13)), (false, true));
    // Closed at 23 and opened by a clock at 37: in the window from 33 to 43.
    one.claim_and_stall(CLOSES, 1);
    one.publish_closed_and_stall(23, 5);
    one.claim_and_stall(OPENS, 1);
    assert_eq!(one.remaining(37), 0);
    assert_eq!((one.admits(1, 42), one.admits(1, 43)), (false, true));
}

#[test]
fn an_aligned_window_that_replaces_another_opens_at_a_boundary() {
    for (helper, ends) in [(0, 13), (3, 13), (14, 23)] {
        let one = One::new(Quota::fixed_window(1, nanos(10)).aligned(nanos(3)), 1);
        one.claim_and_stall(REPLACES, 1);
        assert_eq!(one.remaining(helper), 0);
        assert_eq!([ends - 1, ends].map(|at| one.admits(1, at)), [false, true]);
    }
}

#[test]
fn a_counter_goes_on_in_the_next_window() {
    let counter = Quota::sliding_counter(10, nanos(100));
    for helper in [0, 100, 150, 900] {
        let one = One::new(counter, 8);
        // Claimed at 150 or later: half of eight is left, and three more.
        one.claim_and_stall(ADVANCES, 8 << 16 | 3);
        let _ = one.ask(Ask::Peek, 0, helper);
        assert_eq!([100, 150, 175, 200].map(|at| one.remaining(at)), [0, 3, 5, 7]);
    }
}

/// A clock lags behind the end of a queue by more than its places may wait.
#[test]
fn a_queue_that_was_over_later_tells_no_longer_delay_than_its_maximum() {
    // One place every hundred nanoseconds, and waits of up to 500.
    let queue = Quota::leaky_queue(1, nanos(100), nanos(500));
    // Over since 2000, and running until then.
    for is_closed in [true, false] {
        let one = One::new(queue, 1);
        assert!(one.admits(1, 1900));
        if is_closed {
            one.claim_and_stall(CLOSES, 1);
            assert_eq!(one.remaining(2000), 6);
        }
        for (at, wait) in [(0, 1500), (1499, 1)] {
            for ask in [Ask::Peek, Ask::Acquire, Ask::Reserve { within: 1000 }] {
                assert_eq!(one.ask(ask, 1, at).retry_after(), Some(nanos(wait)), "{is_closed} {ask:?} at {at}");
            }
        }
        assert_eq!(one.ask(Ask::Reserve { within: 400 }, 1, 1500).retry_after(), Some(nanos(100)));
        let seat = one.0.seat_for(0, 0, KEY).unwrap();
        assert!(one.0.prepare(seat, 1, &At(1499), None).is_none());
        let Decision::Admitted(admission) = one.ask(Ask::Acquire, 1, 1500).decision() else { panic!("{is_closed}") };
        assert_eq!(admission.delay(), nanos(500));
    }
}
