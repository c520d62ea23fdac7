//! Requests on several keys at once, one after the other on a mock clock, beside an oracle for each
//! quota.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{AtKeyCap, DenialReason, JointError, JointLimiter, Quota};
use tollgate_kit::oracle::meter::{Meter, Naive};
use tollgate_kit::oracle::{Oracle, Rule, Seen};

use tollgate_kit::counted_clock::CountedClock;

const DIMENSIONS: usize = 5;

type Keys = [Option<u32>; DIMENSIONS];

/// A token bucket, worked out the naive way: what is in it, in parts of a permit.
#[derive(Debug, Clone)]
struct Bucket {
    level: u64,
    at: u64,
}

/// Capacity, and permits a period of so many nanoseconds.
const BUCKET: (u32, u32, u64) = (5, 2, 7);

impl Bucket {
    fn full() -> Self {
        Self { level: u64::from(BUCKET.0) * BUCKET.2, at: 0 }
    }

    /// How long until `cost` permits are in it.
    fn wait(&mut self, now: u64, cost: u32) -> Option<u128> {
        let (capacity, refill, period) = (u64::from(BUCKET.0), u64::from(BUCKET.1), BUCKET.2);
        self.level = (self.level + (now - self.at) * refill).min(capacity * period);
        self.at = now;
        let lacks = (u64::from(cost) * period).saturating_sub(self.level);
        (lacks > 0).then(|| u128::from(lacks.div_ceil(refill)))
    }
}

/// All the dimensions: those with logs by dimension, and one of buckets.
struct Model {
    logs: Vec<(usize, Oracle<u32>)>,
    buckets: HashMap<u32, Bucket>,
    steps: HashMap<u32, Naive>,
    now: u64,
}

/// The dimension of the token bucket.
const BUCKETS: usize = 3;

/// Limits and windows by dimension: the second has two quotas.
const LOGS: [(usize, u32, u64); 4] = [(0, 3, 10), (1, 2, 5), (1, 6, 40), (2, 9, 25)];

/// The most that a request may ask for in each dimension.
const MOST: [u32; DIMENSIONS] = [3, 2, 9, 5, 4];

/// The dimension of the quantised log, and its window and resolution.
const STEPS: usize = 4;
const STEPPED: (u64, u64) = (21, 7);

fn nanoseconds(count: u64) -> Duration {
    Duration::from_nanos(count)
}

fn limiter(cap: usize, at_cap: AtKeyCap) -> (JointLimiter<[u32], CountedClock>, CountedClock) {
    let clock = CountedClock::new();
    let quotas = |dimension| LOGS.into_iter().filter(move |&(at, ..)| at == dimension);
    let logs = |dimension| quotas(dimension).map(|(_, limit, window)| Quota::new(limit, nanoseconds(window)));
    let bucket = Quota::token_bucket(BUCKET.0, BUCKET.1, nanoseconds(BUCKET.2));
    let builder =
        JointLimiter::<[u32]>::builder().dimension("a", logs(0)).dimension("b", logs(1)).dimension("c", logs(2));
    let stepped = Quota::quantised_log(MOST[STEPS], nanoseconds(STEPPED.0), nanoseconds(STEPPED.1));
    let builder =
        builder.dimension("d", [bucket]).dimension("e", [stepped]).key_cap(cap).at_key_cap(at_cap).clock(clock.clone());
    (builder.build().expect("good quotas"), clock)
}

impl Model {
    fn new() -> Self {
        let logs = LOGS.map(|(dimension, limit, window)| (dimension, Oracle::new(&[Rule { limit, window }])));
        Self { logs: logs.into(), buckets: HashMap::new(), steps: HashMap::new(), now: 0 }
    }

    /// How long each of the dimensions would have the request wait.
    fn waits(&mut self, keys: Keys, cost: u32) -> [Option<u128>; DIMENSIONS] {
        let mut waits = [None; DIMENSIONS];
        for (dimension, log) in &self.logs {
            if let Some(key) = keys[*dimension] {
                let answer = log.peek(&key, self.now, cost).expect("a cost up to the limit");
                waits[*dimension] = waits[*dimension].max(answer.retry_after);
            }
        }
        if let Some(key) = keys[BUCKETS] {
            waits[BUCKETS] = self.buckets.entry(key).or_insert_with(Bucket::full).wait(self.now, cost);
        }
        if let Some(key) = keys[STEPS] {
            let naive = self.stepped(key).clone();
            let wait = (0..).find(|wait| naive.admits_at(u128::from(self.now) + wait, cost));
            waits[STEPS] = wait.filter(|&wait| wait > 0);
        }
        waits
    }

    fn stepped(&mut self, key: u32) -> &mut Naive {
        let (window, resolution) = STEPPED;
        let meter = Meter::QuantisedLog { limit: MOST[STEPS], window, resolution };
        self.steps.entry(key).or_insert_with(|| Naive::new(meter, 0, 0))
    }

    fn charge(&mut self, keys: Keys, cost: u32) {
        for (dimension, log) in &mut self.logs {
            if let Some(key) = keys[*dimension] {
                let outcome = log.acquire(&key, self.now, cost, Seen { placed: true, granted: None });
                assert!(outcome.is_ok_and(|outcome| outcome.answer.admitted));
            }
        }
        if let Some(key) = keys[BUCKETS] {
            self.buckets.get_mut(&key).expect("the level was read").level -= u64::from(cost) * BUCKET.2;
        }
        if let Some(key) = keys[STEPS] {
            let now = self.now;
            self.stepped(key).grant(now, cost);
        }
    }

    fn forget(&mut self, keys: Keys) {
        for (dimension, log) in &mut self.logs {
            if let Some(key) = keys[*dimension] {
                log.forget(&key);
            }
        }
        if let Some(key) = keys[BUCKETS] {
            self.buckets.remove(&key);
        }
        if let Some(key) = keys[STEPS] {
            self.steps.remove(&key);
        }
    }

    fn clear(&mut self) {
        self.logs.iter_mut().for_each(|(_, log)| log.clear());
        self.buckets.clear();
        self.steps.clear();
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
