//! Memory, counted to the byte: what is asked of the allocator and not given back.
//!
//! The counting allocator counts by thread, so tests do not disturb one another, and nothing here
//! depends on time: clocks are moved by hand. Each limiter is boxed, so that what it takes itself
//! counts too, and each figure that is asserted is also compared with what
//! [`Counts::bytes`](tollgate::Counts::bytes) reports.

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use tollgate::{
    AtKeyCap, Decision, DefaultFingerprinter, DenialReason, DirectLimiter, JointLimiter, Limiter, LimiterBuilder,
    MockClock, Quota,
};

const WINDOW: Duration = Duration::from_secs(60);
const MILLION: u64 = 1_000_000;
const POLICIES: [AtKeyCap; 2] = [AtKeyCap::Deny, AtKeyCap::Admit];

type Keyed = Limiter<u64, MockClock>;

/// A limiter whose memory is counted from before it was made.
struct Counted {
    limiter: Box<Keyed>,
    clock: MockClock,
    held: i64,
}

impl Counted {
    fn new(limit: u32, set_up: impl FnOnce(LimiterBuilder<u64, MockClock>) -> LimiterBuilder<u64, MockClock>) -> Self {
        Self::of(Quota::new(limit, WINDOW), set_up)
    }

    fn of(quota: Quota, set_up: impl FnOnce(LimiterBuilder<u64, MockClock>) -> LimiterBuilder<u64, MockClock>) -> Self {
        let clock = MockClock::new();
        // A thread keeps some memory for its loads of shared pointers, which are nested in rebuilds.
        let another = Limiter::<u64>::new(quota).expect("a good quota");
        (0..10_000).for_each(|key| assert!(another.try_acquire(key).is_admitted()));
        let mut limiter = None;
        let made = measure(|| {
            let builder = Limiter::<u64>::builder(quota).clock(clock.clone());
            limiter = Some(Box::new(set_up(builder).build().expect("a good quota and cap")));
        });
        let limiter = limiter.expect("made above");
        let counted = Self { limiter, clock, held: made.bytes_current };
        counted.assert_reported();
        counted
    }

    /// Does something with the limiter and says what that took.
    fn during(&mut self, act: impl FnOnce(&Keyed, &MockClock)) -> AllocationInfo {
        let taken = measure(|| act(&self.limiter, &self.clock));
        self.held += taken.bytes_current;
        self.assert_reported();
        taken
    }

    /// What the limiter says that it takes must be what it takes, within one part in a thousand.
    fn assert_reported(&self) {
        let reported = i64::try_from(self.limiter.counts().bytes).expect("far less");
        let off = (reported - self.held).abs();
        assert!(off <= 16.max(self.held / 1000), "{reported} bytes reported, {} counted", self.held);
    }

    /// Bytes held, for each of so many.
    fn bytes_per(&self, units: u64) -> f64 {
        self.held as f64 / units as f64
    }

    /// Drops the limiter, which must give everything back.
    fn finish(self) {
        let Self { limiter, held, .. } = self;
        let freed = measure(|| drop(limiter));
        assert_eq!(freed.bytes_current, -held, "dropping a limiter frees all that it took");
    }
}

/// Asks for one permit each.
fn admit(limiter: &Keyed, keys: impl IntoIterator<Item = u64>) {
    for key in keys {
        assert!(limiter.try_acquire(key).is_admitted(), "key {key} was refused");
    }
}

fn assert_at_most(measured: f64, bound: f64, what: &str) {
    assert!(measured <= bound, "{measured:.2} {what}, which may be {bound}");
    println!("{measured:.2} {what} (at most {bound})");
}

fn assert_nothing(taken: AllocationInfo, what: &str) {
    assert_eq!((taken.count_total, taken.bytes_total), (0, 0), "(calls, bytes) for {what}");
}

#[test]
fn a_flood_of_denials_allocates_nothing() {
    let mut counted = Counted::new(100, |builder| builder);
    counted.during(|limiter, _| admit(limiter, [7; 100]));
    let flood = counted.during(|limiter, _| {
        for _ in 0..MILLION {
            assert!(limiter.try_acquire(7).is_denied());
        }
    });
    assert_nothing(flood, "a million denials");
    let costly = counted.during(|limiter, _| {
        for cost in (1..=100).cycle().take(10_000) {
            assert!(!limiter.try_acquire_n_status(7, cost).expect("within the limit").is_admitted());
            assert!(!limiter.peek_n(7, cost).expect("within the limit").is_admitted());
        }
    });
    assert_nothing(costly, "denials with the numbers, of every cost");
    counted.finish();
}

#[test]
fn keys_that_are_known_allocate_nothing_once_their_rings_have_grown() {
    const KEYS: u64 = 100;
    let mut counted = Counted::new(16, |builder| builder);
    let a_window = |limiter: &Keyed, clock: &MockClock| {
        for _ in 0..16 {
            admit(limiter, 0..KEYS);
        }
        clock.advance(WINDOW);
    };
    let first = counted.during(a_window);
    assert!(first.bytes_total > 0);
    let more = counted.during(|limiter, clock| (0..200).for_each(|_| a_window(limiter, clock)));
    assert_nothing(more, "200 windows, every permit of every key");
    counted.finish();
}

#[test]
fn a_flood_of_new_keys_stops_taking_memory_at_the_cap() {
    const CAP: u64 = 10_000;
    for policy in POLICIES {
        let mut counted = Counted::new(16, |builder| builder.key_cap(10_000).at_key_cap(policy));
        counted.during(|limiter, _| admit(limiter, 0..CAP));
        assert_at_most(counted.bytes_per(CAP), 61.5, "bytes a key of the cap");
        let more = counted.during(|limiter, _| refuse(limiter, CAP..CAP + MILLION));
        assert_nothing(more, "a million new keys past the cap");
        assert!(counted.limiter.counts().refused_at_cap >= MILLION);
        counted.finish();
    }
}

/// Asks for one permit for each of keys that find no place.
fn refuse(limiter: &Keyed, keys: impl IntoIterator<Item = u64>) {
    for key in keys {
        match limiter.try_acquire(key) {
            Decision::Admitted(admission) => {
                assert!(!admission.is_counted(), "key {key} found a place past the cap");
            }
            Decision::Denied(denial) => assert_eq!(denial.reason(), DenialReason::KeyCap),
        }
    }
}

/// Time passes, so that places become free one by one and are taken at once.
#[test]
fn a_flood_at_the_cap_that_takes_the_places_of_expired_keys_takes_no_more_memory() {
    const CAP: u64 = 1000;
    for policy in POLICIES {
        let mut counted = Counted::new(16, |builder| builder.key_cap(1000).at_key_cap(policy));
        let mut keys = 0..;
        let mut windows = |limiter: &Keyed, clock: &MockClock, count: u64| {
            for key in keys.by_ref().take(usize::try_from(count * 2 * CAP).expect("far less")) {
                clock.advance(WINDOW / 2000);
                let _ = limiter.try_acquire(key);
            }
        };
        counted.during(|limiter, clock| windows(limiter, clock, 4));
        let more = counted.during(|limiter, clock| windows(limiter, clock, 6));
        // Cells are collected by rebuilds, which free as much as they take.
        let more = more.bytes_current as f64 / CAP as f64;
        assert_at_most(more, 20.0, "bytes a key of the cap, for six windows of twice as many new keys");
        assert!(counted.limiter.counts().live_keys > 900, "{:?}", counted.limiter.counts());
        assert_at_most(counted.bytes_per(CAP), 100.0, "bytes a key of the cap");
        counted.finish();
    }
}

/// Keys come and go, 500 of them live at any time: memory follows those and not the 100,000 that
/// were seen.
#[test]
fn a_churn_of_keys_takes_memory_for_the_live_ones_only() {
    const LIVE: u64 = 500;
    let mut counted = Counted::new(8, |builder| builder);
    let mut keys = 0..;
    let mut windows = |limiter: &Keyed, clock: &MockClock, count: usize| {
        for key in keys.by_ref().take(count * 500) {
            let cost = u32::try_from(1 + key % 8).expect("at most eight");
            assert!(limiter.try_acquire_n(key, cost).expect("within the limit").is_admitted());
            clock.advance(WINDOW / 500);
        }
    };
    counted.during(|limiter, clock| windows(limiter, clock, 20));
    let early = counted.held;
    let later = counted.during(|limiter, clock| windows(limiter, clock, 180));
    assert_eq!(counted.limiter.counts().live_keys as u64, LIVE - 1, "the oldest has just expired");
    // A key is given 1 to 8 permits, so a cell of 32 bytes and for most of them a ring of 32 or 64.
    assert_at_most(counted.bytes_per(LIVE), 250.0, "bytes a live key");
    // Rebuilds take and free some of it.
    assert!(later.bytes_current * 2 <= early, "{early} bytes after 20 windows, {} after 200", counted.held);
    counted.finish();
}

#[test]
fn a_million_keys_with_one_permit_each() {
    let mut counted = Counted::new(100, |builder| builder);
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    // The cell takes 32, and its share of free cells the rest.
    assert_at_most(counted.bytes_per(MILLION), 56.0, "bytes a key");
    counted.finish();
    // A limiter that was told starts with as many cells as it needs.
    let mut counted = Counted::new(100, |builder| builder.expected_keys(1_000_000));
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    assert_at_most(counted.bytes_per(MILLION), 56.0, "bytes an expected key");
    counted.finish();
}

/// A page has 64 cells, which weighs where a shard has few keys. While a shard is rebuilt, its keys
/// take cells twice.
#[test]
fn other_numbers_of_keys_with_one_permit_each() {
    for (keys, bound) in [(1_000, 115.0), (10_000, 90.0), (100_000, 90.0), (500_000, 90.0), (2_000_000, 90.0)] {
        let mut counted = Counted::new(100, |builder| builder.key_cap(tollgate::MAX_KEY_CAP));
        counted.during(|limiter, _| admit(limiter, 0..keys));
        assert_at_most(counted.bytes_per(keys), bound, &format!("bytes a key of {keys}"));
        counted.finish();
    }
}

/// A peak passes: its cells are given back when other keys come. The seed is fixed: a shard that is
/// growing when the peak ends needs more requests, and with some seeds one is.
#[test]
fn after_a_peak_at_most_a_tenth_of_it_is_held() {
    let mut counted = Counted::new(100, |builder| builder.fingerprinter(DefaultFingerprinter::with_seed(1, 2)));
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    let peak = counted.held;
    counted.during(|limiter, clock| {
        clock.advance(WINDOW);
        admit(limiter, MILLION..MILLION + 10_000);
    });
    let part = counted.held as f64 / peak as f64;
    assert_at_most(part, 0.1, "of the peak");
    counted.finish();
}

/// The smaller rings that a ring grew through are left behind by a rebuild.
#[test]
fn a_log_at_its_limit_takes_a_stamp_a_permit_after_a_rebuild() {
    let quota = Quota::new(1 << 16, WINDOW);
    let mut counted = Counted::of(quota, |builder| builder.key_cap(1000));
    counted.during(|limiter, _| {
        for key in 0..10 {
            (0..1 << 16).for_each(|_| admit(limiter, [key]));
            assert!(limiter.try_acquire(key).is_denied());
        }
        // A change of quotas rebuilds every shard.
        limiter.set_quotas(&[Quota::new(1 << 16, WINDOW * 2)]).expect("a usable quota");
    });
    assert_at_most(counted.bytes_per(10 << 16), 10.0, "bytes a permit");
    counted.finish();
}

/// A refund copies the key's stamps. The rings that are left behind are collected.
#[test]
fn refunds_take_memory_for_the_live_permits_only() {
    let mut counted = Counted::new(100, |builder| builder.key_cap(1000));
    let refunds = |limiter: &Keyed, clock: &MockClock, count: u64| {
        for request in 0..count {
            let reserved = limiter.reserve(request % 10, 2, Duration::ZERO).expect("within the limit");
            assert_eq!(reserved.cancel(), 2);
            clock.advance(Duration::from_nanos(7));
        }
    };
    counted.during(|limiter, clock| {
        (0..20).for_each(|_| admit(limiter, 0..10));
        refunds(limiter, clock, 1000);
    });
    let early = counted.held;
    counted.during(|limiter, clock| refunds(limiter, clock, 100_000));
    let more = counted.held as f64 / early as f64;
    assert_at_most(more, 2.0, "times the memory after a hundred thousand refunds");
    counted.finish();
}

/// Each refund copies the stamps to another ring, and no other request comes.
#[test]
fn refunds_one_after_the_other_take_no_more_than_the_permits() {
    const LIMIT: u32 = 2048;
    let quota = Quota::new(LIMIT, WINDOW);
    let limiter = DirectLimiter::with_clock(quota, MockClock::new()).expect("a good quota");
    let reserve = || limiter.reserve(1, Duration::ZERO).expect("within the limit").commit();
    let receipts: Vec<_> = (0..LIMIT).map(|_| reserve()).collect();
    let full = limiter.counts().bytes;
    let mut most = 0;
    for receipt in receipts {
        assert_eq!(limiter.refund(receipt).expect("its limiter"), 1);
        most = most.max(limiter.counts().bytes);
    }
    assert_at_most(most as f64 / full as f64, 4.0, "times the memory of all permits, at most, during refunds");
}

/// The first key of a joint request takes a ring before the second denies it.
#[test]
fn denied_joint_requests_take_memory_for_the_live_permits_only() {
    let clock = MockClock::new();
    let builder = JointLimiter::<(u32, u32)>::builder().dimension("user", [Quota::new(1000, WINDOW)]);
    let limiter = builder.dimension("address", [Quota::new(200, WINDOW)]).clock(clock.clone()).build();
    let limiter = limiter.expect("good quotas");
    for _ in 0..64 {
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.try_acquire_n((7, 7), 1).expect("within the limit").is_admitted());
    }
    assert!(limiter.try_acquire_n((8, 7), 136).expect("within the limit").is_admitted());
    let before = limiter.counts().bytes;
    for _ in 0..5000 {
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.try_acquire((7, 7)).expect("two keys").is_denied());
    }
    assert_at_most(limiter.counts().bytes as f64 / before as f64, 3.0, "times the memory after 5,000 denials");
}

/// An account takes as much as a log with one permit, however many are granted.
#[test]
fn a_million_keys_with_a_token_bucket() {
    let bucket = Quota::token_bucket(100, 1, Duration::from_secs(1));
    let mut counted = Counted::of(bucket, |builder| builder);
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    assert_at_most(counted.bytes_per(MILLION), 56.0, "bytes a key");
    // The last rebuilds end.
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    let more = counted.during(|limiter, _| admit(limiter, 0..MILLION));
    assert_nothing(more, "another permit for each of them");
    counted.finish();
    let mut counted = Counted::of(bucket, |builder| builder.expected_keys(1_000_000));
    counted.during(|limiter, _| admit(limiter, 0..MILLION));
    assert_at_most(counted.bytes_per(MILLION), 56.0, "bytes an expected key");
    counted.finish();
}

/// They share the one ring: the widest of them decides how long it gets.
#[test]
fn several_quotas_take_no_more_than_the_widest_of_them() {
    let widest = Quota::new(16, WINDOW);
    let mut alone = Counted::of(widest, |builder| builder);
    let tighter =
        [(8, WINDOW / 4), (4, WINDOW / 20), (2, WINDOW / 100)].map(|(limit, window)| Quota::new(limit, window));
    let mut all = Counted::of(widest, |builder| tighter.into_iter().fold(builder, LimiterBuilder::and));
    for counted in [&mut alone, &mut all] {
        counted.during(|limiter, clock| {
            for _ in 0..16 {
                admit(limiter, 0..1000);
                clock.advance(WINDOW / 17);
            }
        });
    }
    assert!((0..1000).all(|key| !all.limiter.peek(key).is_admitted()));
    // What is more is what the quotas themselves take, and how the keys spread over the shards.
    assert!(
        (all.held - alone.held).abs() * 10 < alone.held,
        "{} bytes, and {} for the widest alone",
        all.held,
        alone.held
    );
    alone.finish();
    all.finish();
}

#[test]
fn a_million_permits_of_one_key() {
    let mut counted = Counted::new(1_000_000, |builder| builder);
    counted.during(|limiter, _| (0..MILLION).for_each(|_| admit(limiter, [7])));
    // 8 for the stamp, and as much again for the smaller rings that it grew through.
    assert_at_most(counted.bytes_per(MILLION), 10.0, "bytes a permit");
    counted.finish();
    let mut counted = Counted::new(1_000_000, |builder| builder);
    counted.during(|limiter, _| assert!(limiter.try_acquire_n(7, 1_000_000).expect("the limit").is_admitted()));
    assert_at_most(counted.bytes_per(MILLION), 8.5, "bytes a permit, all granted at once");
    counted.finish();
}

/// Charges a cost that was not reserved, whether it fits or not.
fn owe(limiter: &Keyed, key: u64, cost: u32) {
    let reserved = limiter.reserve(key, 0, Duration::ZERO).expect("it costs nothing");
    assert_eq!(reserved.settle(cost), cost);
}

/// A receipt has a list of its charges.
fn assert_only_receipts(taken: AllocationInfo, what: &str) {
    assert_eq!(taken.bytes_current, 0, "bytes kept for {what}");
    assert!(taken.bytes_max <= 256, "{} bytes at most at once, for {what}", taken.bytes_max);
}

/// A log keeps up to 2^21 permits of a key, however much is owed. What it took is given back once the
/// debt is over and other keys come.
#[test]
fn debt_of_a_log_takes_memory_for_two_million_permits_of_a_key_and_no_more() {
    const MOST: u64 = 1 << 21;
    // A few large debts copy the ring each, and many small ones do not.
    for (limit, cost) in [(1 << 20, u32::MAX), (100_000, u32::MAX), (100, 100)] {
        let mut counted = Counted::new(limit, |builder| builder.fingerprinter(DefaultFingerprinter::with_seed(1, 2)));
        let debts = |limiter: &Keyed, clock: &MockClock, charges: u64| {
            for _ in 0..charges {
                clock.advance(Duration::from_nanos(1));
                owe(limiter, 7, cost);
            }
        };
        let most = counted.during(|limiter, clock| debts(limiter, clock, MOST.div_ceil(u64::from(limit))));
        let what = format!("bytes a permit of 2^21, in debts of {cost} of {limit}");
        assert_at_most(counted.bytes_per(MOST), 16.5, &what);
        assert_at_most(most.bytes_max as f64 / MOST as f64, 50.0, &format!("at most, {what}"));
        assert!(counted.bytes_per(MOST) >= 8.0, "{} bytes: each permit is kept", counted.held);
        let more = counted.during(|limiter, clock| debts(limiter, clock, 1000));
        assert_only_receipts(more, "a thousand more debts");
        counted.during(|limiter, clock| {
            clock.advance(WINDOW);
            admit(limiter, MILLION..MILLION + 10_000);
        });
        assert_at_most(counted.held as f64, 600_000.0, "bytes for other keys, once the debt is over");
        counted.finish();
    }
}

/// Debt of any other algorithm is a number in the word, and of a quantised log one in a step.
#[test]
fn debt_of_other_algorithms_takes_no_memory() {
    let step = WINDOW / 1000;
    for (quota, most) in [
        (Quota::token_bucket(100, 100, WINDOW), 0.0),
        (Quota::fixed_window(100, WINDOW), 0.0),
        (Quota::sliding_counter(100, WINDOW), 0.0),
        (Quota::quantised_log(100, WINDOW, step), 20_000.0),
    ] {
        let mut counted = Counted::of(quota, |builder| builder);
        counted.during(|limiter, _| admit(limiter, [7]));
        let debts = |limiter: &Keyed, clock: &MockClock| {
            for _ in 0..2000 {
                clock.advance(step);
                owe(limiter, 7, u32::MAX);
            }
        };
        let first = counted.during(debts);
        assert_at_most(first.bytes_current as f64, most, &format!("bytes for 2,000 debts, {quota}"));
        let more = counted.during(debts);
        assert_only_receipts(more, &format!("2,000 more debts, {quota}"));
        counted.finish();
    }
}

/// A million permits a minute, in steps of 60 ms: a key takes what its steps do.
#[test]
fn a_million_permits_of_one_key_in_a_thousand_steps() {
    let step = WINDOW / 1000;
    let quota = Quota::quantised_log(1_000_000, WINDOW, step);
    let a_window = |limiter: &Keyed, clock: &MockClock, keys: u64| {
        for _ in 0..1000 {
            clock.advance(step);
            for key in 0..keys {
                assert!(limiter.try_acquire_n(key, 999).expect("within the limit").is_admitted());
                admit(limiter, [key]);
            }
        }
    };
    let mut counted = Counted::of(quota, |builder| builder);
    let empty = counted.held;
    counted.during(|limiter, clock| a_window(limiter, clock, 1));
    assert!(counted.limiter.try_acquire(0).is_denied());
    // Two blocks of 8 KB, one of which is being written when a step begins; the smaller ones that
    // it grew through; a page of cells.
    let one = counted.held - empty;
    assert_at_most(one as f64, 32_000.0, "bytes for one key with a million permits");
    let more = counted.during(|limiter, clock| (0..3).for_each(|_| a_window(limiter, clock, 1)));
    assert_nothing(more, "three more windows, four million permits in all");
    counted.during(|limiter, clock| a_window(limiter, clock, 100));
    let each = (counted.held - empty - one) as f64 / 99.0;
    assert_at_most(each, 12_500.0, "bytes for each further key with a million permits");
    counted.finish();
    // A key that is granted little takes little.
    let mut counted = Counted::of(quota, |builder| builder.expected_keys(100_000));
    counted.during(|limiter, _| admit(limiter, 0..100_000));
    assert_at_most(counted.bytes_per(100_000), 95.0, "bytes a key with one permit");
    counted.finish();
}

/// Most of what a small limiter takes are its sixteen shards, and pages of 2 KB, of cells and of
/// rings, in each shard that has keys. A limiter that is told of few keys has fewer shards.
#[test]
fn small_limiters_are_small() {
    let mut counted = Counted::new(100, |builder| builder);
    assert_at_most(counted.bytes_per(1), 12_500.0, "bytes for nothing");
    counted.during(|limiter, _| admit(limiter, 0..10));
    assert_at_most(counted.bytes_per(1), 35_000.0, "bytes for ten keys with one permit each");
    counted.during(|limiter, _| (0..20).for_each(|_| admit(limiter, 0..10)));
    assert_at_most(counted.bytes_per(1), 80_000.0, "bytes for ten keys with 21 permits each");
    counted.finish();
}

/// As the documentation of each says.
#[test]
fn the_docs_tell_the_size_of_a_limiter() {
    let sizes = [
        ("Limiter", 800, size_of::<Limiter<str>>()),
        ("DirectLimiter", 640, size_of::<DirectLimiter>()),
        ("JointLimiter", 800, size_of::<JointLimiter<(String, u64)>>()),
    ];
    for (limiter, told, size) in sizes {
        assert!(size.abs_diff(told) <= 100, "the docs of {limiter} tell about {told} bytes; it takes {size}");
    }
}

/// A limiter that has done everything gives back everything.
#[test]
fn dropping_gives_everything_back() {
    for policy in POLICIES {
        let set_up = |builder: LimiterBuilder<_, _>| builder.key_cap(100).at_key_cap(policy).expected_keys(50);
        let mut counted = Counted::new(100, set_up);
        counted.during(|limiter, clock| {
            for key in 0..2000 {
                let cost = u32::try_from(key % 100).expect("below 100");
                let _ = limiter.try_acquire_n(key % 150, cost).expect("within the limit");
                clock.advance(WINDOW / 100);
                if key % 7 == 0 {
                    limiter.forget(key % 150);
                }
            }
            limiter.clear();
        });
        counted.finish();
    }
}

#[test]
fn counters_of_decisions_take_memory_once() {
    let make = |count| {
        let mut limiter = None;
        let made = measure(|| {
            let builder = Limiter::<u64>::builder(Quota::new(100, WINDOW)).clock(MockClock::new());
            limiter = Some(builder.count_decisions(count).build().expect("a good quota"));
        });
        (limiter.expect("made above"), made.bytes_current)
    };
    let ((limiter, counting), (_, not_counting)) = (make(true), make(false));
    assert_eq!(counting - not_counting, 2048, "sixteen pairs of counters, 128 bytes apart");
    admit(&limiter, [7; 100]);
    let counted = measure(|| (0..10_000).for_each(|_| assert!(limiter.try_acquire(7).is_denied())));
    assert_nothing(counted, "ten thousand counted denials");
}

/// What `Limiter::set_quotas` and `set_quotas_of` say of a change.
#[test]
fn a_hundred_thousand_changes_of_quotas_take_no_memory() {
    const CHANGES: u32 = 100_000;
    let mut counted = Counted::new(100, |builder| builder.key_cap(100).keys_with_quotas(10));
    let change = |limiter: &Keyed, limits: core::ops::RangeInclusive<u32>| {
        for limit in limits {
            let quotas = [Quota::new(limit, WINDOW)];
            match limit % 4 {
                0 => limiter.set_quotas_of(u64::from(limit % 10), &quotas).expect("a usable quota"),
                _ => limiter.set_quotas(&quotas).expect("a usable quota"),
            }
        }
    };
    counted.during(|limiter, _| {
        admit(limiter, 0..10);
        (0..10).for_each(|key| limiter.set_quotas_of(key, &[Quota::new(7, WINDOW)]).expect("a usable quota"));
        change(limiter, 1..=100);
    });
    let before = counted.held;
    counted.during(|limiter, _| change(limiter, 101..=CHANGES));
    assert_eq!(counted.held, before, "bytes after the changes, and before");
    let none = counted.during(|limiter, _| {
        let is = limiter.quotas()[0];
        (0..1000).for_each(|_| limiter.set_quotas(&[is]).expect("a usable quota"));
    });
    assert_nothing(none, "changes to the quotas that there are");
    counted.finish();
}

/// Keys of a part of the table with equal quotas have one version: each takes an entry in a map.
#[test]
fn keys_with_equal_quotas_share_them() {
    const KEYS: u64 = 400;
    let bytes = |quotas: fn(u64) -> Quota| {
        let mut counted = Counted::new(100, |builder| builder.key_cap(10_000).keys_with_quotas(1000));
        counted.during(|limiter, _| {
            (0..KEYS).for_each(|key| limiter.set_quotas_of(key, &[quotas(key)]).expect("a usable quota"));
        });
        let held = counted.held;
        counted.finish();
        held
    };
    let equal = bytes(|_| Quota::new(7, WINDOW));
    let own = bytes(|key| Quota::new(7 + u32::try_from(key).expect("few"), WINDOW));
    assert!(
        own - equal > 150 * (i64::try_from(KEYS).expect("few") - 16),
        "{equal} bytes for equal quotas, {own} for others"
    );
}
