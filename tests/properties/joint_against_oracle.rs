//! Requests on several keys at once, one after the other on a mock clock, beside an oracle for each
//! quota.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, DenialReason, JointError, JointLimiter};
use tollgate_kit::key::{Key, Quotas};
use tollgate_kit::oracle::Rule;
use tollgate_kit::oracle::meter::Meter;

use tollgate_kit::clocks::CountedClock;

const DIMENSIONS: usize = 5;

type Keys = [Option<u32>; DIMENSIONS];

/// The second dimension has two quotas.
fn dimensions() -> [Quotas; DIMENSIONS] {
    let logs = [(2, 5), (6, 40)].map(|(limit, window)| Rule { limit, window });
    [
        Quotas::log(3, 10),
        Quotas::Logs(logs.into()),
        Quotas::log(9, 25),
        Quotas::Meter(Meter::TokenBucket { capacity: 5, refill: 2, per: 7, start: 5 }),
        Quotas::Meter(Meter::QuantisedLog { limit: 4, window: 21, resolution: 7 }),
    ]
}

/// The keys of all dimensions, by dimension.
struct Model {
    dimensions: [Quotas; DIMENSIONS],
    keys: HashMap<(usize, u32), Key>,
    now: u64,
}

/// The most that a request may ask for in each dimension.
const MOST: [u32; DIMENSIONS] = [3, 2, 9, 5, 4];

fn nanoseconds(count: u64) -> Duration {
    Duration::from_nanos(count)
}

fn limiter(cap: usize, at_cap: AtKeyCap) -> (JointLimiter<[u32], CountedClock>, CountedClock) {
    let clock = CountedClock::new();
    let builder = ["a", "b", "c", "d", "e"].into_iter().zip(dimensions());
    let builder = builder
        .fold(JointLimiter::<[u32]>::builder(), |builder, (name, quotas)| builder.dimension(name, quotas.quotas()));
    let builder = builder.key_cap(cap).at_key_cap(at_cap).clock(clock.clone());
    (builder.build().expect("good quotas"), clock)
}

impl Model {
    fn new() -> Self {
        Self { dimensions: dimensions(), keys: HashMap::new(), now: 0 }
    }

    fn key(&mut self, dimension: usize, number: u32) -> &mut Key {
        self.keys.entry((dimension, number)).or_insert_with(|| self.dimensions[dimension].key(0))
    }

    /// How long each of the dimensions would have the request wait.
    fn waits(&mut self, keys: Keys, cost: u32) -> [Option<u128>; DIMENSIONS] {
        let now = self.now;
        core::array::from_fn(|dimension| {
            let wait = self.key(dimension, keys[dimension]?).wait(now, cost);
            (wait > 0).then_some(wait.into())
        })
    }

    fn charge(&mut self, keys: Keys, cost: u32) {
        let now = self.now;
        for (dimension, number) in keys.into_iter().enumerate().filter_map(|(at, key)| Some((at, key?))) {
            self.key(dimension, number).grant(now, cost);
        }
    }

    fn forget(&mut self, keys: Keys) {
        for (dimension, number) in keys.into_iter().enumerate().filter_map(|(at, key)| Some((at, key?))) {
            self.keys.remove(&(dimension, number));
        }
    }

    fn clear(&mut self) {
        self.keys.clear();
    }

    /// Asks both, and charges if both say so.
    fn ask(&mut self, limiter: &JointLimiter<[u32], CountedClock>, keys: Keys, cost: u32) -> Result<(), TestCaseError> {
        let given = keys.each_ref().map(Option::as_ref);
        if keys.iter().all(Option::is_none) {
            prop_assert_eq!(limiter.try_acquire_n(given, cost), Err(JointError::NoKeys));
            prop_assert_eq!(limiter.peek_n(given, cost), Err(JointError::NoKeys));
            return Ok(());
        }
        let too_much = (0..DIMENSIONS).find(|&at| keys[at].is_some() && cost > MOST[at]);
        if let Some(dimension) = too_much {
            let told = limiter.try_acquire_n(given, cost);
            let right = matches!(told, Err(JointError::Cost(it)) if (it.cost(), it.limit()) == (cost, MOST[dimension]));
            prop_assert!(right && limiter.peek_n(given, cost).map(|it| it.decision()) == told, "{told:?}");
            return Ok(());
        }
        let waits = if cost == 0 { [None; DIMENSIONS] } else { self.waits(keys, cost) };
        let peeked = limiter.peek_n(given, cost).expect("as many keys as dimensions");
        let told = limiter.try_acquire_n(given, cost).expect("as many keys as dimensions");
        prop_assert_eq!(peeked.is_admitted(), told.is_admitted());
        let longest = waits.iter().copied().max().flatten();
        prop_assert_eq!(told.retry_after().map(|wait| wait.as_nanos()), longest, "{:?} at {}", keys, self.now);
        prop_assert_eq!(peeked.retry_after(), told.retry_after());
        match told.into_result() {
            Ok(_) if cost > 0 => self.charge(keys, cost),
            Ok(_) => {}
            Err(denial) => {
                let violated: Vec<usize> = (0..DIMENSIONS).filter(|&at| waits[at].is_some()).collect();
                prop_assert_eq!(denial.violated().collect::<Vec<_>>(), violated);
                prop_assert_eq!(waits[denial.dimension()], longest);
                prop_assert_eq!(denial.reason(), DenialReason::Quota);
            }
        }
        Ok(())
    }

    /// What each of these keys has left, as far as a request can tell.
    fn compare(&mut self, limiter: &JointLimiter<[u32], CountedClock>, keys: Keys) -> Result<(), TestCaseError> {
        for dimension in 0..DIMENSIONS {
            let mut alone = [None; DIMENSIONS];
            alone[dimension] = keys[dimension];
            for cost in 1..=keys[dimension].map_or(0, |_| MOST[dimension]) {
                let told = limiter.peek_n(alone.each_ref().map(Option::as_ref), cost).expect("a good request");
                let wait = self.waits(alone, cost)[dimension];
                prop_assert_eq!(told.retry_after().map(|wait| wait.as_nanos()), wait, "{:?}, {}", alone, cost);
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Op {
    Ask(Keys, u32),
    Wait(u64),
    Forget(Keys),
    Clear,
}

/// Keys are numbers less than `end`, so two are often the same in two dimensions.
fn keys(end: u32) -> impl Strategy<Value = Keys> {
    prop::array::uniform5(prop::option::weighted(0.8, 0..end))
}

fn op(keys_end: u32) -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (keys(keys_end), 0..4_u32).prop_map(|(keys, cost)| Op::Ask(keys, cost)),
        1 => (keys(keys_end), 0..12_u32).prop_map(|(keys, cost)| Op::Ask(keys, cost)),
        6 => (0..12_u64).prop_map(Op::Wait),
        1 => keys(keys_end).prop_map(Op::Forget),
    ]
}

fn play(ops: &[Op]) -> Result<(), TestCaseError> {
    let (limiter, clock) = limiter(100_000, AtKeyCap::Deny);
    let mut model = Model::new();
    for op in ops {
        match *op {
            Op::Ask(keys, cost) => {
                model.ask(&limiter, keys, cost)?;
                model.compare(&limiter, keys)?;
            }
            Op::Wait(time) => {
                clock.advance(nanoseconds(time));
                model.now += time;
            }
            Op::Forget(keys) => {
                let known = limiter.forget(keys.each_ref().map(Option::as_ref));
                prop_assert_eq!(known.is_err(), keys.iter().all(Option::is_none));
                model.forget(keys);
            }
            Op::Clear => {
                limiter.clear();
                model.clear();
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn few_keys(ops in prop::collection::vec(prop_oneof![40 => op(3), 1 => Just(Op::Clear)], 1..200)) {
        play(&ops)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// So many that the index turns, and what has expired is taken back.
    #[test]
    fn many_keys(ops in prop::collection::vec(op(1500), 500..1500)) {
        play(&ops)?;
    }
}

#[test]
fn as_many_keys_as_dimensions_have_to_be_given() {
    let (limiter, _) = limiter(8, AtKeyCap::Deny);
    for given in [0, 1, 3, 6, 9] {
        let keys = vec![&7; given];
        let wrong = JointError::WrongNumberOfKeys { keys: given, dimensions: DIMENSIONS };
        assert_eq!(limiter.try_acquire(&keys[..]), Err(wrong));
        assert_eq!(limiter.peek_n(&keys[..], 1), Err(wrong));
        assert_eq!(limiter.forget(&keys[..]), Err(wrong));
    }
    assert_eq!(limiter.counts().cells, 0);
}

/// A request needs places for all of its new keys at once: the last may not have the place of the
/// first.
#[test]
fn a_request_that_needs_more_places_than_there_are_is_denied() {
    let (limiter, _) = limiter(3, AtKeyCap::Deny);
    let denial = limiter.try_acquire([Some(&1); DIMENSIONS]).unwrap().into_result().unwrap_err();
    assert_eq!(denial.reason(), DenialReason::KeyCap);
    // Nothing was charged, and what was made on the way is in nobody's way.
    assert_eq!(limiter.counts().live_keys, 0);
    assert!(limiter.try_acquire([Some(&2), Some(&2), Some(&2), None, None]).unwrap().is_admitted());
    let denial =
        limiter.try_acquire([Some(&2), Some(&2), Some(&2), Some(&2), None]).unwrap().into_result().unwrap_err();
    assert_eq!((denial.reason(), denial.dimension()), (DenialReason::KeyCap, 3));
}

#[test]
fn a_request_that_finds_places_for_some_of_its_keys_is_denied_until_there_are_more() {
    let (limiter, clock) = limiter(3, AtKeyCap::Deny);
    // Two are live and one place is left, for two new keys.
    assert!(limiter.try_acquire([Some(&1), None, Some(&1), None, None]).unwrap().is_admitted());
    let two = [Some(&2), Some(&2), None, None, None];
    let denial = limiter.try_acquire(two).unwrap().into_result().unwrap_err();
    assert_eq!(denial.reason(), DenialReason::KeyCap);
    clock.advance(nanoseconds(10));
    assert!(limiter.try_acquire(two).unwrap().is_admitted());
}

#[test]
fn keys_that_find_no_place_are_passed_over_if_they_may() {
    let (limiter, clock) = limiter(2, AtKeyCap::Admit);
    let all = [Some(&1); DIMENSIONS];
    for _ in 0..100 {
        // Some are charged, and the others can't be.
        let _ = limiter.try_acquire(all).unwrap();
        assert!(limiter.counts().cells <= 2);
        clock.advance(nanoseconds(1));
    }
    assert!(limiter.try_acquire([None, Some(&5), None, None, None]).unwrap().is_admitted());
}
