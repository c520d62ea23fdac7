//! The paths that are counted: what is set up before, and the one decision that is repeated.
//!
//! Everything that could differ from run to run is fixed: the seed of the fingerprints, the time,
//! the keys. Limiters are in boxes, so that whatever a decision writes to them is told apart from
//! what it writes to its own stack.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use tollgate::{
    Clock, DefaultFingerprinter, DirectLimiter, JointLimiter, Limiter, LimiterBuilder, Observation, Observer, Quota,
};
use tollgate_observe::TopDenied;

use crate::repeat::Repeat;

/// A path, by name, and what must be true of it whatever the committed figures say.
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
    pub(crate) run: fn(&mut Repeat),
}

/// Paths that tell what is left, each with the bare decision, and how many times the instructions
/// of that it may take. (Of several quotas each is counted apart, where the bare decision looks at
/// one stamp of each.)
pub(crate) const STATUSES: &[(&str, &str, f64)] = &[
    ("status, denied, log", "denied, log", 1.95),
    ("status, denied, two logs", "denied, two logs", 5.9),
    ("status, denied, token bucket", "denied, token bucket", 2.6),
    ("status, admitted, log", "admitted, log", 2.2),
    ("status, admitted, token bucket", "admitted, token bucket", 2.6),
];

/// The most that a path may do, whatever figures have been accepted; `None` where it is not the
/// same for every decision.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    /// Locked instructions.
    pub(crate) locked: Option<u32>,
    /// Stores to memory that other threads can see.
    pub(crate) stores: Option<u32>,
}

/// The load of a shard's root: a thread enters the pointer in a record of its own and takes it out
/// again, by two stores to a cache line that others only read.
const LOOKS: Promise = and(0);

/// A look, and so many compare-and-swaps or, where the 128 bits of a word are loaded so, loads.
const fn and(count: u32) -> Promise {
    Promise { locked: Some(count), stores: Some(2 + count) }
}

const LIMIT: u32 = 100;
/// Between one reading of a clock that moves and the next.
const STEP: Duration = Duration::from_nanos(STEP_NS);
const STEP_NS: u64 = 1_000;
/// As many steps as the limit: a key that asks at every step finds that its oldest permit has just
/// expired.
const FULL_AFTER: Duration = Duration::from_nanos(STEP_NS * LIMIT as u64);
const NAME_OF_32_BYTES: &str = "customer:0123456789abcdef0123456";

pub(crate) const ALL: &[Path] = &[
    Path { name: "denied, log", promise: LOOKS, run: denied_log },
    Path { name: DEFAULT_CLOCK, promise: LOOKS, run: denied_log_default_clock },
    Path { name: "denied, log, cost 8", promise: LOOKS, run: denied_log_cost_8 },
    Path { name: "denied, log, key of 32 bytes", promise: LOOKS, run: denied_log_text },
    Path { name: "denied, two logs", promise: LOOKS, run: denied_two_logs },
    Path { name: "denied, token bucket", promise: LOOKS, run: denied_bucket },
    // The observer writes nothing. The status that it is told of is looked up, and so is the quota.
    Path {
        name: "denied, log, observed",
        promise: Promise { locked: Some(1), stores: Some(7) },
        run: denied_log_observed,
    },
    // The same; a lock and its release, and a count.
    Path {
        name: "denied, log, in the top list",
        promise: Promise { locked: Some(3), stores: None },
        run: denied_log_in_the_top_list,
    },
    Path {
        name: "denied, joint, 2 dimensions",
        // Behind the attempt the root of each key is loaded once more: a rebuild may be due.
        promise: Promise { locked: Some(8), stores: Some(30) },
        run: denied_joint,
    },
    Path { name: "peek, denied, log", promise: Promise { locked: Some(0), stores: Some(8) }, run: peek_denied },
    Path { name: "peek, has room, log", promise: Promise { locked: Some(0), stores: Some(8) }, run: peek_with_room },
    // The claim, and the stamp that it spills.
    Path { name: "admitted, log", promise: and(2), run: admitted_log },
    // One claim, and the stamps of the claim before.
    Path { name: "admitted, log, cost 8", promise: and(9), run: admitted_log_cost_8 },
    Path { name: "admitted, token bucket", promise: and(1), run: admitted_bucket },
    Path { name: "admitted, token bucket full again", promise: and(1), run: admitted_bucket_full_again },
    Path { name: "admitted, token bucket full again, cost 8", promise: and(1), run: admitted_bucket_full_again_cost_8 },
    Path { name: "one for all, denied, token bucket", promise: LOOKS, run: direct_denied_bucket },
    Path { name: "one for all, admitted, token bucket", promise: and(1), run: direct_admitted_bucket },
    Path { name: "admitted, fixed window", promise: and(1), run: admitted_fixed_window },
    Path { name: "admitted, sliding counter", promise: and(1), run: admitted_sliding_counter },
    Path { name: "admitted, leaky queue", promise: and(1), run: admitted_queue },
    Path { name: "admitted, warm-up", promise: and(1), run: admitted_warm_up },
    Path { name: "admitted, quantised log", promise: and(2), run: admitted_quantised_log },
    // Two looks; a description of the claim is taken, decided and given back, and each word is held
    // and let go.
    Path {
        name: "admitted, joint, 2 dimensions",
        promise: Promise { locked: Some(11), stores: None },
        run: admitted_joint,
    },
    Path { name: "status, denied, log", promise: and(1), run: status_denied_log },
    Path { name: "status, denied, two logs", promise: and(1), run: status_denied_two_logs },
    Path { name: "status, denied, token bucket", promise: LOOKS, run: status_denied_bucket },
    Path { name: "status, admitted, log", promise: and(2), run: status_admitted_log },
    Path { name: "status, admitted, token bucket", promise: and(1), run: status_admitted_bucket },
    // The list of charges is freed, too.
    Path {
        name: "settled for more, token bucket",
        promise: Promise { locked: Some(1), stores: None },
        run: settled_bucket_for_more,
    },
    // The claim, the stamp that it spills, and the hint, which is turned off.
    Path {
        name: "settled for more, log",
        promise: Promise { locked: Some(3), stores: None },
        run: settled_log_for_more,
    },
    // A claim of one key: its description is taken, decided and given back, and the word is held
    // and let go.
    Path {
        name: "settled for less, token bucket",
        promise: Promise { locked: Some(6), stores: None },
        run: settled_bucket_for_less,
    },
    // One swap each. The guard allocates nothing.
    Path {
        name: "in flight, entered and left",
        promise: Promise { locked: Some(2), stores: Some(6) },
        run: entered_and_left,
    },
    Path { name: "in flight, denied", promise: LOOKS, run: too_many_in_flight },
    // A place and a cell are taken; now and then a page is allocated, and each shard is rebuilt as
    // it grows.
    Path { name: "new key, log", promise: Promise { locked: Some(7), stores: None }, run: new_key },
];

/// What this clock reads, and how, is up to the machine: so there is a promise, and no figure to
/// compare with.
pub(crate) const DEFAULT_CLOCK: &str = "denied, log, default clock";

/// A time that stands still.
struct Still(u64);

impl Clock for Still {
    fn now(&self) -> u64 {
        self.0
    }
}

/// A time that moves on by one step with each reading.
struct Moving(Cell<u64>);

impl Moving {
    fn new() -> Self {
        Self(Cell::new(1))
    }
}

impl Clock for Moving {
    fn now(&self) -> u64 {
        self.0.replace(self.0.get() + STEP_NS)
    }
}

type Boxed<K, C> = Box<Limiter<K, C>>;

fn seeded() -> DefaultFingerprinter {
    DefaultFingerprinter::with_seed(1, 2)
}

fn limiter<K: std::hash::Hash + ?Sized, C: Clock>(builder: LimiterBuilder<K, C>) -> Boxed<K, C> {
    Box::new(builder.fingerprinter(seeded()).build().expect("a usable quota"))
}

/// A limiter on a time that stands still, in which all that the key may have is spent.
fn exhausted(builder: LimiterBuilder<u64>, key: u64) -> Boxed<u64, Still> {
    let limiter = limiter(builder.clock(Still(1)));
    let granted = (0..2 * LIMIT).filter(|_| limiter.try_acquire(key).is_admitted()).count();
    assert_eq!(granted, LIMIT as usize);
    limiter
}

fn log(limit: u32, window: Duration) -> LimiterBuilder<u64> {
    Limiter::builder(Quota::new(limit, window))
}

fn denied_log(repeat: &mut Repeat) {
    let key = 7;
    let limiter = exhausted(log(LIMIT, FULL_AFTER), key);
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_denied());
}

fn denied_log_default_clock(repeat: &mut Repeat) {
    let key = 7;
    // Longer than any run under valgrind.
    let limiter = limiter(log(LIMIT, Duration::from_secs(24 * 60 * 60)));
    (0..LIMIT).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_denied());
}

fn denied_log_cost_8(repeat: &mut Repeat) {
    let key = 7;
    let limiter = exhausted(log(LIMIT, FULL_AFTER), key);
    repeat.decide(|| limiter.try_acquire_n(black_box(&key), 8).expect("below the limit"), |it| it.is_denied());
}

fn denied_log_text(repeat: &mut Repeat) {
    assert_eq!(NAME_OF_32_BYTES.len(), 32);
    let limiter = limiter::<str, _>(Limiter::builder(Quota::new(1, FULL_AFTER)).clock(Still(1)));
    assert!(limiter.try_acquire(NAME_OF_32_BYTES).is_admitted());
    repeat.decide(|| limiter.try_acquire(black_box(NAME_OF_32_BYTES)), |it| it.is_denied());
}

fn denied_log_observed(repeat: &mut Repeat) {
    denied_before(repeat, |seen: &Observation<'_>| assert!(seen.admission().is_some() || seen.key(0).is_some()));
}

fn denied_log_in_the_top_list(repeat: &mut Repeat) {
    denied_before(repeat, TopDenied::new(100));
}

fn denied_before(repeat: &mut Repeat, observer: impl Observer + 'static) {
    let key = 7;
    let limiter = exhausted(log(LIMIT, FULL_AFTER).observer(observer), key);
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_denied());
}

fn denied_two_logs(repeat: &mut Repeat) {
    let key = 7;
    let limiter = exhausted(log(LIMIT, FULL_AFTER).and(Quota::new(10 * LIMIT, 10 * FULL_AFTER)), key);
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_denied());
}

fn denied_bucket(repeat: &mut Repeat) {
    let key = 7;
    let limiter = exhausted(Limiter::builder(Quota::token_bucket(LIMIT, 1, STEP)), key);
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_denied());
}

fn status_denied_log(repeat: &mut Repeat) {
    status_denied(repeat, log(LIMIT, FULL_AFTER), 1);
}

fn status_denied_two_logs(repeat: &mut Repeat) {
    status_denied(repeat, log(LIMIT, FULL_AFTER).and(Quota::new(10 * LIMIT, 10 * FULL_AFTER)), 2);
}

fn status_denied_bucket(repeat: &mut Repeat) {
    status_denied(repeat, Limiter::builder(Quota::token_bucket(LIMIT, 1, STEP)), 1);
}

fn status_denied(repeat: &mut Repeat, builder: LimiterBuilder<u64>, quotas: usize) {
    let key = 7;
    let limiter = exhausted(builder, key);
    let status = limiter.try_acquire_status(key);
    assert_eq!(
        (status.quotas().len(), status.remaining(), status.next_after()),
        (quotas, 0, status.retry_after().unwrap())
    );
    repeat.decide(|| limiter.try_acquire_status(black_box(&key)), |it| it.is_denied());
}

fn status_admitted_log(repeat: &mut Repeat) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(log(LIMIT, FULL_AFTER).clock(&clock));
    (0..10 * LIMIT).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.try_acquire_status(black_box(&key)), |it| it.is_admitted());
}

fn status_admitted_bucket(repeat: &mut Repeat) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(Limiter::<u64>::builder(Quota::token_bucket(1 << 20, 1, 2 * STEP)).clock(&clock));
    (0..LIMIT).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.try_acquire_status(black_box(&key)), |it| it.is_admitted());
}

fn peek_denied(repeat: &mut Repeat) {
    let key = 7;
    let limiter = exhausted(log(LIMIT, FULL_AFTER), key);
    repeat.decide(|| limiter.peek(black_box(&key)), |it| it.decision().is_denied());
}

fn peek_with_room(repeat: &mut Repeat) {
    let key = 7;
    let limiter = limiter(log(LIMIT, FULL_AFTER).clock(Still(1)));
    (0..LIMIT / 2).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.peek(black_box(&key)), |it| it.remaining() == LIMIT / 2);
}

fn entered_and_left(repeat: &mut Repeat) {
    let key = 7;
    let limiter = limiter(Limiter::<u64>::builder(Quota::concurrent(LIMIT)).clock(Still(1)));
    assert!(limiter.try_enter(key).is_ok());
    let enter = || limiter.try_enter(black_box(&key)).map(|guard| guard.admission().is_counted());
    repeat.decide(enter, |it| it.is_ok_and(|is_counted| is_counted));
}

fn too_many_in_flight(repeat: &mut Repeat) {
    let key = 7;
    let limiter = limiter(Limiter::<u64>::builder(Quota::concurrent(1)).clock(Still(1)));
    let _guard = limiter.try_enter(key).expect("none is in flight");
    repeat.decide(|| limiter.try_enter(black_box(&key)).map(drop), |it| it.is_err());
}

fn admitted_log(repeat: &mut Repeat) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(log(LIMIT, FULL_AFTER).clock(&clock));
    // Until the ring is as long as the limit.
    (0..10 * LIMIT).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_admitted());
}

fn admitted_log_cost_8(repeat: &mut Repeat) {
    let (key, clock) = (7, Moving::new());
    // Eight permits at every step.
    let limiter = limiter(log(8 * LIMIT, FULL_AFTER).clock(&clock));
    let eight = || limiter.try_acquire_n(black_box(&key), 8).expect("below the limit");
    (0..10 * LIMIT).for_each(|_| assert!(eight().is_admitted()));
    repeat.decide(eight, |it| it.is_admitted());
}

fn direct_denied_bucket(repeat: &mut Repeat) {
    let builder = DirectLimiter::builder(Quota::token_bucket(LIMIT, 1, STEP));
    let limiter = Box::new(builder.clock(Still(1)).build().expect("a valid quota"));
    (0..LIMIT).for_each(|_| assert!(limiter.try_acquire().is_admitted()));
    repeat.decide(|| black_box(&limiter).try_acquire(), |it| it.is_denied());
}

fn direct_admitted_bucket(repeat: &mut Repeat) {
    let (builder, clock) = (DirectLimiter::builder(Quota::token_bucket(1 << 20, 1, 2 * STEP)), Moving::new());
    let limiter = Box::new(builder.clock(&clock).build().expect("a valid quota"));
    (0..LIMIT).for_each(|_| assert!(limiter.try_acquire().is_admitted()));
    repeat.decide(|| black_box(&limiter).try_acquire(), |it| it.is_admitted());
}

fn admitted_bucket(repeat: &mut Repeat) {
    // Half of what is taken comes back: neither full nor empty for as long as this takes.
    admitted_by(repeat, Quota::token_bucket(1 << 20, 1, 2 * STEP));
}

fn admitted_bucket_full_again(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::token_bucket(LIMIT, 1, STEP / 2));
}

fn admitted_bucket_full_again_cost_8(repeat: &mut Repeat) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(Limiter::<u64>::builder(Quota::token_bucket(LIMIT, 8, STEP / 2)).clock(&clock));
    let eight = || limiter.try_acquire_n(black_box(&key), 8).expect("below the limit");
    (0..LIMIT).for_each(|_| assert!(eight().is_admitted()));
    repeat.decide(eight, |it| it.is_admitted());
}

fn admitted_fixed_window(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::fixed_window(1 << 20, FULL_AFTER));
}

fn admitted_sliding_counter(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::sliding_counter(1 << 15, FULL_AFTER));
}

fn admitted_queue(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::leaky_queue(2, STEP, FULL_AFTER));
}

fn admitted_warm_up(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::warm_up(LIMIT, 8, STEP, FULL_AFTER));
}

fn admitted_quantised_log(repeat: &mut Repeat) {
    admitted_by(repeat, Quota::quantised_log(2 * LIMIT, FULL_AFTER, STEP));
}

fn admitted_by(repeat: &mut Repeat, quota: Quota) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(Limiter::<u64>::builder(quota).clock(&clock));
    (0..LIMIT).for_each(|_| assert!(limiter.try_acquire(key).is_admitted()));
    repeat.decide(|| limiter.try_acquire(black_box(&key)), |it| it.is_admitted());
}

fn settled_bucket_for_more(repeat: &mut Repeat) {
    settled(repeat, Quota::token_bucket(1 << 20, 1, 2 * STEP), 3);
}

fn settled_log_for_more(repeat: &mut Repeat) {
    settled(repeat, Quota::new(2 * LIMIT, FULL_AFTER), 3);
}

fn settled_bucket_for_less(repeat: &mut Repeat) {
    settled(repeat, Quota::token_bucket(1 << 20, 1, 2 * STEP), 1);
}

/// Requests that were charged two permits each cost so many.
fn settled(repeat: &mut Repeat, quota: Quota, actual: u32) {
    let (key, clock) = (7, Moving::new());
    let limiter = limiter(Limiter::<u64>::builder(quota).clock(&clock));
    let reserve = || limiter.reserve(key, 2, Duration::ZERO).expect("there are permits").commit();
    (0..LIMIT).for_each(|_| drop(reserve()));
    let mut receipts: Vec<_> = (0..repeat.times()).map(|_| reserve()).collect();
    let settle = || limiter.settle(receipts.pop().expect("one for each"), black_box(actual));
    repeat.decide(settle, |it| it.as_ref().is_ok_and(|charged| *charged == actual));
}

fn joint<C: Clock>(clock: C) -> Box<JointLimiter<(u64, u64), C>> {
    let dimension = || [Quota::new(LIMIT, FULL_AFTER)];
    let builder =
        JointLimiter::<(u64, u64)>::builder().dimension("user", dimension()).dimension("address", dimension());
    Box::new(builder.clock(clock).fingerprinter(seeded()).build().expect("usable quotas"))
}

fn denied_joint(repeat: &mut Repeat) {
    let (user, address) = (7_u64, 8_u64);
    let limiter = joint(Still(1));
    let ask = || limiter.try_acquire((black_box(&user), black_box(&address))).expect("as many keys as dimensions");
    (0..LIMIT).for_each(|_| assert!(ask().is_admitted()));
    repeat.decide(ask, |it| it.is_denied());
}

fn admitted_joint(repeat: &mut Repeat) {
    let (user, address, clock) = (7_u64, 8_u64, Moving::new());
    let limiter = joint(&clock);
    let ask = || limiter.try_acquire((black_box(&user), black_box(&address))).expect("as many keys as dimensions");
    (0..10 * LIMIT).for_each(|_| assert!(ask().is_admitted()));
    repeat.decide(ask, |it| it.is_admitted());
}

fn new_key(repeat: &mut Repeat) {
    // Room for all of them, so that what is counted is not how often the table grows.
    let limiter = limiter(log(LIMIT, FULL_AFTER).expected_keys(4 * repeat.times()).clock(Still(1)));
    let mut key = 0_u64;
    let ask = || {
        key += 1;
        limiter.try_acquire(black_box(&key))
    };
    repeat.decide(ask, |it| it.is_admitted());
}
