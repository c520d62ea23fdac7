//! Rebuilds with a thread that stops, step by step.

use core::cell::Cell as Counter;
use core::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::decision::Shadowed;
use crate::fingerprint::Fingerprint;
use crate::state::joint::KeyedRequest;
use crate::state::request::Request;
use crate::state::shard::kit::{Answer, At, World, key, log};
use crate::state::table::Table;

const QUOTA: (u32, u64) = (5, 100);
/// More keys than any test has.
const CAP: usize = 99;

/// It does not wait until the sweep comes to it.
#[test]
fn a_request_that_meets_a_frozen_word_moves_its_key_first() {
    const KEYS: u64 = 60;
    let world = World::new(&[log(QUOTA.0, QUOTA.1)], CAP, 64);
    let (shard, clock) = (world.shard(), At(0));
    assert!((0..KEYS).all(|number| world.ask(number, 1, &clock) == Answer::Admitted { stamp: 0 }));
    let root = shard.root.load().to_arc();
    assert!(root.link(|| Arena::new(1, Arc::clone(&root.plans), root.len(), 16)));
    let index_of = |number| if let Found::Cell(index, _) = root.find(key(number)) { index } else { unreachable!() };
    let last = (0..KEYS).max_by_key(|&number| index_of(number)).unwrap();
    let _ = world.with(&clock).freeze(&root, root.cell(index_of(last)), key(last), world.with(&clock).now());
    assert_eq!(world.ask(last, 1, &clock), Answer::Admitted { stamp: 0 });
    let frozen = root.cells().filter(|cell| cell.word.load().is_frozen()).count();
    assert!(frozen <= 1 + 2 * PAGE, "{frozen} of {KEYS} keys");
}

/// A clock that panics after so many readings.
struct Patience(Counter<u32>);

impl Clock for Patience {
    fn now(&self) -> u64 {
        let left = self.0.get().checked_sub(1).expect("the request ends");
        self.0.set(left);
        5
    }
}

/// The thread that changes the quotas has moved the key, and stops before it marks the page. The cost
/// is above the limit of the root, and within that of the successor.
#[test]
fn a_request_above_the_limit_before_a_change_waits_for_no_thread() {
    let table = Table::new(&[&[log(2, 100)]], 0, CAP, 4);
    let print = Fingerprint::new(7 << 40, 9 << 40);
    let ask = |cost| {
        let asked = KeyedRequest {
            keys: &[Some(print)],
            request: Request::acquire(cost),
            admits_without_place: false,
            shadowed: Shadowed::default(),
        };
        table.acquire(asked, &Patience(Counter::new(10_000)), None, None)
    };
    assert!(ask(1).is_admitted());
    let (clock, key) = (At(5), Key::of(print));
    let shard = table.shard(key);
    let root = shard.root().to_arc();
    let more = root.plans.version(&[log(5, 100)]);
    assert!(root.link(|| Arena::new(1, Arc::new(root.plans.with(0, &more)), root.len(), 16)));
    let (Found::Cell(_, cell), Next::Arena(successor)) = (root.find(key), root.next()) else { unreachable!() };
    let with = table.with(key, &clock);
    with.move_cell(&root, cell, key, &successor, with.now());
    assert!(ask(3).is_admitted());
}

/// A thread reads the clock, and stops. Meanwhile a bucket is emptied. Then the thread moves its key to a
/// faster one, which is empty, too.
#[test]
fn other_quotas_count_from_the_time_at_which_the_key_moves() {
    let bucket = |refill| Quota::token_bucket(10, refill, Duration::from_nanos(100));
    let world = World::new(&[bucket(1)], CAP, 4);
    let (before, clock) = (At(0), At(1000));
    assert!(world.decide(0, 10, &clock).unwrap().is_admitted());
    let root = world.shard().root.load().to_arc();
    let faster = root.plans.version(&[bucket(10)]);
    assert!(root.link(|| Arena::new(1, Arc::new(root.plans.with(0, &faster)), root.len(), 16)));
    let (Found::Cell(_, cell), Next::Arena(successor)) = (root.find(key(0)), root.next()) else { unreachable!() };
    world.with(&clock).move_cell(&root, cell, key(0), &successor, world.with(&before).now());
    assert_eq!(world.left(0, &clock), Some(0));
    assert_eq!(world.left(0, &At(1010)), Some(1));
}

/// A clock that reads 200 up to its n-th reading, before which something happens, and then 201.
struct Stalls<'a>(Counter<u32>, &'a dyn Fn());

impl Clock for Stalls<'_> {
    fn now(&self) -> u64 {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        if left == 1 {
            (self.1)();
        }
        if left > 0 { 200 } else { 201 }
    }
}

/// A thread sweeps a page with two keys, and stops. Meanwhile another ends the rebuild. It leaves the
/// second behind, which was forgotten at 0. Then that gets a permit in its new cell.
#[test]
fn a_sweep_that_comes_late_leaves_the_receipts_of_a_later_cell() {
    for reading in 1..6 {
        let world = World::new(&[log(1, 100)], CAP, 4);
        let root = world.shard().root.load().to_arc();
        let [one, two] = [0, 1].map(|index| (0..).find(|&number| root.home(key(number)) == index).unwrap());
        assert!(matches!(world.ask(two, 1, &At(0)), Answer::Admitted { .. }));
        assert!(world.forget(two, &At(0)));
        assert!(matches!(world.ask(one, 1, &At(150)), Answer::Admitted { .. }));
        let other = root.plans.version(&[log(2, 100)]);
        assert!(root.link(|| Arena::new(1, Arc::new(root.plans.with(0, &other)), root.len(), 16)));
        let charged = Counter::new(None);
        let meanwhile = || {
            (0..10).for_each(|_| world.with(&At(201)).help(&root));
            charged.set(Some(world.charge(two, &At(201))));
        };
        let clock = Stalls(Counter::new(reading), &meanwhile);
        (0..4).for_each(|_| world.with(&clock).help(&root));
        let refunded = charged.take().map(|receipt| world.refund_charged(key(two), 1, receipt, &At(201)));
        assert!(refunded.is_none_or(|refunded| refunded == 1), "at reading {reading}");
    }
}

/// A clock at whose n-th reading another thread forgets the key.
struct Forgets<'a>(&'a World, Counter<u32>);

impl Clock for Forgets<'_> {
    fn now(&self) -> u64 {
        self.1.set(self.1.get().wrapping_sub(1));
        assert!(self.1.get() != 0 || self.0.forget(0, &At(5)));
        5
    }
}

#[test]
fn a_key_that_is_forgotten_beside_a_request_needs_a_place() {
    let mut forgotten = 0;
    for reading in 1..20 {
        let world = World::new(&[log(QUOTA.0, QUOTA.1)], CAP, 8);
        let (shard, clock) = (world.shard(), At(0));
        assert!((0..6).all(|number| world.ask(number, 1, &clock) == Answer::Admitted { stamp: 0 }));
        let root = shard.root.load().to_arc();
        assert!(root.link(|| Arena::new(1, Arc::clone(&root.plans), root.len(), 16)));
        let (Found::Cell(_, cell), Next::Arena(successor)) = (root.find(key(0)), root.next()) else { unreachable!() };
        let with = world.with(&clock);
        with.move_cell(&root, cell, key(0), &successor, with.now());
        let (clock, mut taken) = (Forgets(&world, Counter::new(reading)), None);
        let Ok(seat) = world.with(&clock).seat(key(0), &mut taken) else { panic!("there are places") };
        assert_eq!(seat.vacant_until.is_some(), taken.is_some(), "at reading {reading}");
        forgotten += u32::from(taken.is_some());
    }
    assert!(forgotten > 1);
}

/// The key's life goes on in its new cell, though it had no permits when it was moved.
#[test]
fn a_receipt_of_before_a_forget_is_worth_nothing_after_a_rebuild() {
    let second = std::time::Duration::from_secs(1);
    let quotas = [
        (Quota::new(1, second), Quota::new(2, second)),
        (Quota::token_bucket(1, 1, second), Quota::token_bucket(2, 1, second)),
        (Quota::fixed_window(1, second), Quota::fixed_window(2, second)),
        (Quota::sliding_counter(1, second), Quota::sliding_counter(2, second)),
        (Quota::quantised_log(1, second, second / 4), Quota::quantised_log(2, second, second / 4)),
    ];
    for (quota, other) in quotas {
        let limiter = crate::Limiter::<u32>::builder(quota).clock(crate::MockClock::new()).build().unwrap();
        let receipt = limiter.reserve(7, 1, std::time::Duration::ZERO).unwrap().commit();
        assert!(limiter.forget(7));
        limiter.set_quotas(&[other]).unwrap();
        assert!(limiter.try_acquire(7).is_admitted());
        assert_eq!(limiter.refund(receipt).unwrap(), 0, "{quota:?}");
        assert_eq!(limiter.peek(7).remaining(), 1, "{quota:?}");
    }
}

/// The key that is denied lies in the last page, so a sweep of the others is the work of decisions.
#[test]
fn decisions_by_a_hint_end_a_rebuild() {
    let world = World::new(&[log(1, 100)], CAP, 64);
    let clock = At(0);
    assert!((0..40).all(|number| world.ask(number, 1, &clock) == Answer::Admitted { stamp: 0 }));
    let root = world.shard().root.load().to_arc();
    let index_of = |number| if let Found::Cell(index, _) = root.find(key(number)) { index } else { unreachable!() };
    let last = (0..40).max_by_key(|&number| index_of(number)).unwrap();
    assert_eq!(world.ask(last, 1, &clock), Answer::Denied { wait_ns: 100 });
    assert!(root.link(|| Arena::new(1, Arc::clone(&root.plans), root.len(), 16)));
    for _ in 0..1000 {
        assert_eq!(world.ask(last, 1, &clock), Answer::Denied { wait_ns: 100 });
    }
    assert!(!core::ptr::eq(&*world.shard().root.load(), &*root), "a thousand decisions have swept nothing");
}
