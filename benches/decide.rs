//! What a decision costs, and what its parts cost: clock reading, fingerprint, look-up.
//!
//! These benches follow the crate's own progress; how it compares with other crates is the business
//! of `side_by_side`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tollgate::{
    Clock, CoarseClock, Decision, DefaultFingerprinter, DirectLimiter, Fingerprinter, HashTwice, InstantClock, Limiter,
    MonotonicClock, Quota, SipFingerprinter,
};

/// A day is longer than any run: after 100 permits everything is denied.
const DENIES: Quota = Quota::per_day(100);

/// 100 permits in 500 ns are one every 5 ns, sooner than a clock can be read: everything is
/// admitted.
const ADMITS: Quota = Quota::new(100, Duration::from_nanos(500));

fn coarse_clock() -> CoarseClock {
    CoarseClock::new(Duration::from_millis(1)).expect("a thread for the coarse clock")
}

/// Different keys that are not in a row, so that they look like identifiers from outside (the
/// finaliser of splitmix64).
fn key_of_rank(rank: u64) -> u64 {
    let mixed = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn clock_reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("clock reading");
    group.throughput(Throughput::Elements(1));
    let monotonic = MonotonicClock::new();
    group.bench_function("monotonic", |bencher| bencher.iter(|| black_box(&monotonic).now()));
    let instant = InstantClock::new();
    group.bench_function("instant", |bencher| bencher.iter(|| black_box(&instant).now()));
    let coarse = coarse_clock();
    group.bench_function("coarse", |bencher| bencher.iter(|| black_box(&coarse).now()));
    group.finish();
}

fn fingerprint(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fingerprint");
    group.throughput(Throughput::Elements(1));
    let default = DefaultFingerprinter::new();
    let number = key_of_rank(0);
    group.bench_function("u64", |bencher| bencher.iter(|| default.fingerprint(black_box(&number))));
    let text = "user:0123456789a";
    assert_eq!(text.len(), 16);
    group.bench_function("str of 16 bytes", |bencher| bencher.iter(|| default.fingerprint(black_box(text))));
    group.finish();
}

/// What the choice of a hash costs: a fingerprint alone, and a denial that begins with it.
fn hashes(criterion: &mut Criterion) {
    compare(criterion, "default", DefaultFingerprinter::new);
    compare(criterion, "SipHash-1-3, 128 bits", SipFingerprinter::new);
    compare(criterion, "std, twice", HashTwice::<std::hash::RandomState>::default);
    compare(criterion, "foldhash quality, twice", HashTwice::<foldhash::quality::RandomState>::default);
    compare(criterion, "ahash, twice", HashTwice::<ahash::RandomState>::default);
}

fn compare<F: Fingerprinter>(criterion: &mut Criterion, name: &str, hash: impl Fn() -> F) {
    let text = |length: usize| "customer:0123456789abcdef-".chars().cycle().take(length).collect::<String>();
    let mut group = criterion.benchmark_group(format!("hash/{name}"));
    group.throughput(Throughput::Elements(1));
    let (number, short, long) = (key_of_rank(0), text(16), text(64));
    let alone = hash();
    group.bench_function("u64 alone", |bencher| bencher.iter(|| alone.fingerprint(black_box(&number))));
    group.bench_function("64 bytes alone", |bencher| bencher.iter(|| alone.fingerprint(black_box(long.as_str()))));

    let numbers = Limiter::<u64>::builder(DENIES).fingerprinter(hash()).build().expect("a usable quota");
    exhaust(|| numbers.try_acquire(number).is_admitted());
    group.bench_function("u64 denied", |bencher| bencher.iter(|| numbers.try_acquire(black_box(&number))));
    let names = Limiter::<str>::builder(DENIES).fingerprinter(hash()).build().expect("a usable quota");
    for (label, name) in [("16 bytes denied", &short), ("64 bytes denied", &long)] {
        exhaust(|| names.try_acquire(name.as_str()).is_admitted());
        group.bench_function(label, |bencher| bencher.iter(|| names.try_acquire(black_box(name.as_str()))));
    }
    group.finish();
}

fn one_key(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one key");
    group.throughput(Throughput::Elements(1));
    let key = key_of_rank(0);

    let denies = Limiter::<u64>::new(DENIES).expect("a usable quota");
    exhaust(|| denies.try_acquire(key).is_admitted());
    group.bench_function("denied", |bencher| bencher.iter(|| denies.try_acquire(black_box(&key))));

    let admits = Limiter::<u64>::new(ADMITS).expect("a usable quota");
    group.bench_function("admitted", |bencher| bencher.iter(|| admits.try_acquire(black_box(&key))));

    let instant = Limiter::<u64>::builder(DENIES).clock(InstantClock::new()).build().expect("a usable quota");
    exhaust(|| instant.try_acquire(key).is_admitted());
    group.bench_function("denied, instant clock", |bencher| bencher.iter(|| instant.try_acquire(black_box(&key))));

    let coarse = Limiter::<u64>::builder(DENIES).clock(coarse_clock()).build().expect("a usable quota");
    exhaust(|| coarse.try_acquire(key).is_admitted());
    group.bench_function("denied, coarse clock", |bencher| bencher.iter(|| coarse.try_acquire(black_box(&key))));
    group.finish();
}

fn direct(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("direct limiter");
    group.throughput(Throughput::Elements(1));
    let denies = DirectLimiter::new(DENIES).expect("a usable quota");
    exhaust(|| denies.try_acquire().is_admitted());
    group.bench_function("denied", |bencher| bencher.iter(|| black_box(&denies).try_acquire()));
    let admits = DirectLimiter::new(ADMITS).expect("a usable quota");
    group.bench_function("admitted", |bencher| bencher.iter(|| black_box(&admits).try_acquire()));
    group.finish();
}

/// Spends the whole limit, and makes sure that there was one.
fn exhaust(admitted: impl Fn() -> bool) {
    let granted = (0..2 * DENIES.limit()).filter(|_| admitted()).count();
    assert_eq!(u32::try_from(granted), Ok(DENIES.limit()));
}

fn new_keys(criterion: &mut Criterion) {
    const KEYS: usize = 20_000;
    let keys: Vec<u64> = (0..KEYS as u64).map(key_of_rank).collect();
    let mut group = criterion.benchmark_group("new keys");
    group.throughput(Throughput::Elements(KEYS as u64));
    for (name, expected) in [("growing", 0), ("expected", KEYS)] {
        group.bench_with_input(BenchmarkId::from_parameter(name), &expected, |bencher, &expected| {
            // A limiter for each batch: keys are new only once.
            let empty = || Limiter::<u64>::builder(DENIES).expected_keys(expected).build().expect("a usable quota");
            let fill =
                |limiter: &mut Limiter<u64>| keys.iter().filter(|key| limiter.try_acquire(*key).is_admitted()).count();
            bencher.iter_batched_ref(empty, fill, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn zipf(criterion: &mut Criterion) {
    const KEYS: usize = 100_000;
    const REQUESTS: usize = 1 << 18;
    let requests = zipf_requests(KEYS, REQUESTS);
    let mut group = criterion.benchmark_group("Zipf(1.0), 100 k keys");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    let limiter = Limiter::<u64>::new(Quota::new(100, Duration::from_secs(600))).expect("a usable quota");
    let decide = || requests.iter().filter(|key| limiter.try_acquire(black_box(*key)).is_admitted()).count();
    // Popular keys run out of permits soon, the others later on: a mixture that shifts towards
    // denials.
    decide();
    group.sample_size(20).bench_function("limit 100 per 10 min", |bencher| bencher.iter(decide));
    group.finish();
}

/// A million keys that come at random: each decision waits for memory, unless several are taken at
/// once.
fn uniform(criterion: &mut Criterion) {
    const KEYS: u64 = 1_000_000;
    const REQUESTS: u64 = 1 << 18;
    let limiter = Limiter::<u64>::new(Quota::new(16, Duration::from_secs(600))).expect("a usable quota");
    (0..KEYS).map(key_of_rank).for_each(|key| assert!(limiter.try_acquire(key).is_admitted()));
    let requests: Vec<u64> =
        (0..REQUESTS).map(|request| key_of_rank(key_of_rank(request + (1 << 40)) % KEYS)).collect();
    let mut group = criterion.benchmark_group("uniform, 1 M keys");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(20);
    let admitted = |decisions: Vec<Decision>| decisions.iter().filter(|decision| decision.is_admitted()).count();
    group.bench_function("one by one", |bencher| {
        bencher.iter(|| {
            requests
                .chunks(1024)
                .map(|keys| admitted(keys.iter().map(|key| limiter.try_acquire(key)).collect()))
                .sum::<usize>()
        });
    });
    group.bench_function("many at once", |bencher| {
        bencher.iter(|| requests.chunks(1024).map(|keys| admitted(limiter.try_acquire_many(keys))).sum::<usize>());
    });
    group.finish();
}

/// What goes over all keys, at the default cap.
#[cfg(feature = "snapshot")]
fn all_keys(criterion: &mut Criterion) {
    const KEYS: u64 = 500_000;
    let limiter = Limiter::<u64>::new(DENIES).expect("a usable quota");
    (0..KEYS).for_each(|key| assert!(limiter.try_acquire(key).is_admitted()));
    let snapshot = limiter.snapshot();
    let restored = || Limiter::<u64>::builder(DENIES).restore(&snapshot).expect("a snapshot of such a limiter");
    let mut group = criterion.benchmark_group("500 k keys");
    group.throughput(Throughput::Elements(KEYS)).sample_size(10);
    group.bench_function("counts", |bencher| bencher.iter(|| limiter.counts()));
    group.bench_function("snapshot", |bencher| bencher.iter(|| limiter.snapshot()));
    group.bench_function("restore", |bencher| bencher.iter_with_large_drop(restored));
    group.bench_function("clear", |bencher| {
        bencher.iter_batched_ref(restored, |limiter| limiter.clear(), BatchSize::PerIteration);
    });
    group.finish();
}

/// Takes the feature `snapshot`.
#[cfg(not(feature = "snapshot"))]
fn all_keys(_: &mut Criterion) {}

/// Requests in which the key of rank r (from 1) has a share in proportion to 1 / r, by inverting
/// the cumulative distribution.
fn zipf_requests(keys: usize, requests: usize) -> Vec<u64> {
    let cumulative: Vec<f64> = (1..=keys)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        })
        .collect();
    let total = cumulative[keys - 1];
    (0..requests as u64)
        .map(|request| {
            // A stream of its own: far from the ranks that the keys come from.
            let uniform = (key_of_rank(request + (1 << 40)) >> 11) as f64 / (1_u64 << 53) as f64;
            let rank = cumulative.partition_point(|&up_to| up_to <= uniform * total);
            key_of_rank(rank.min(keys - 1) as u64)
        })
        .collect()
}

criterion_group!(benches, clock_reading, fingerprint, hashes, one_key, direct, new_keys, zipf, uniform, all_keys);
criterion_main!(benches);
