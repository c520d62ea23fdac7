//! The scenarios, to be extended.

use std::time::Duration;

use super::{Admits, Scenario, Target, TollgateClock};
use crate::side_by_side::contender::Name;
use crate::side_by_side::keys::Popularity;
use crate::side_by_side::rounds;

const TEN_MINUTES: Duration = Duration::from_secs(600);
/// So long that governor, too, has nothing to replenish before the run is over.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// One key whose limit is used up: what most of the others differ from in a few things.
const DENIED: Scenario = Scenario {
    name: "one key, denied",
    popularity: Popularity::OneKey,
    limit: 100,
    window: A_DAY,
    cost: 1,
    clock: TollgateClock::Monotonic,
    admits: Admits::Nothing,
    decisions: 500_000,
    who: &Name::ALL,
    threads: &[1, 2, 4, 8],
    targets: &[Target { threads: 1, log: 0.70, bucket: 0.70 }, Target { threads: 2, log: 0.35, bucket: 0.35 }],
    gigabytes: 0,
    measure: rounds::measure::<u64>,
};

/// 100 permits in 500 ns are 5 ns each: a clock cannot be read that often, so everybody admits
/// everything. A log then holds what it granted in the last 500 ns, some 5 to 50 stamps, and
/// forgets one for each that it grants. A bucket is always full again.
const ADMITTED: Scenario = Scenario {
    name: "one key, admitted",
    window: Duration::from_nanos(500),
    admits: Admits::Everything,
    targets: &[Target { threads: 1, log: 1.00, bucket: 0.75 }, Target { threads: 2, log: 0.60, bucket: 0.45 }],
    ..DENIED
};

const ZIPF: Scenario = Scenario {
    name: "Zipf(1.0), 100 k keys",
    popularity: Popularity::Zipf { keys: 100_000, exponent: 1.0 },
    window: TEN_MINUTES,
    admits: Admits::LimitOfEachKey,
    decisions: 300_000,
    targets: &[Target { threads: 1, log: 1.70, bucket: 0.85 }, Target { threads: 2, log: 1.20, bucket: 0.70 }],
    ..DENIED
};

const UNIFORM: Scenario = Scenario {
    name: "uniform, 1 M keys",
    popularity: Popularity::Uniform { keys: 1_000_000 },
    limit: 16,
    decisions: 150_000,
    threads: &[1, 2],
    targets: &[Target { threads: 1, log: 1.30, bucket: 0.80 }, Target { threads: 2, log: 0.90, bucket: 0.60 }],
    ..ZIPF
};

/// Limiters without keys.
const NO_KEYS: Scenario = Scenario {
    name: "no keys, denied",
    who: &[Name::Bucket, Name::Governor],
    threads: &[1, 2],
    targets: &[Target { threads: 1, log: 1.2, bucket: 1.2 }, Target { threads: 2, log: 0.6, bucket: 0.6 }],
    measure: rounds::measure_one_for_all,
    ..DENIED
};

/// Every scenario of the tables.
pub const ALL: &[Scenario] = &[
    DENIED,
    ADMITTED,
    ZIPF,
    Scenario {
        name: "uniform, 100 k keys",
        popularity: Popularity::Uniform { keys: 100_000 },
        targets: &[Target { threads: 1, log: 1.50, bucket: 0.95 }, Target { threads: 2, log: 1.00, bucket: 0.70 }],
        ..UNIFORM
    },
    UNIFORM,
    Scenario {
        name: "one key, denied, coarse clock",
        clock: TollgateClock::Coarse,
        threads: &[1],
        targets: &[],
        ..DENIED
    },
    Scenario {
        // What comes back meanwhile is next to nothing, and so is what is taken. The logs would
        // hold a stamp for each.
        name: "one key, admitted, neither full nor empty",
        limit: (1 << 24) - 1,
        window: Duration::from_secs(1 << 24),
        decisions: 250_000,
        who: &[Name::Bucket, Name::Governor],
        threads: &[1, 2],
        targets: &[],
        ..ADMITTED
    },
    NO_KEYS,
    Scenario {
        name: "no keys, neither full nor empty",
        limit: (1 << 24) - 1,
        window: Duration::from_secs(1 << 24),
        admits: Admits::Everything,
        ..NO_KEYS
    },
    Scenario {
        name: "one key, admitted, cost 8",
        cost: 8,
        // Eight permits in 8 ns.
        window: Duration::from_nanos(100),
        threads: &[1, 2],
        targets: &[Target { threads: 1, log: 1.20, bucket: 0.75 }, Target { threads: 2, log: 0.80, bucket: 0.45 }],
        ..ADMITTED
    },
    Scenario { name: "Zipf(1.0), 100 k keys, cost 8", cost: 8, threads: &[1, 2], targets: &[], ..ZIPF },
    Scenario {
        name: "Zipf(1.0), 100 k names of 8 to 64 bytes",
        // Names are drawn beforehand like other keys, and are larger.
        decisions: 75_000,
        threads: &[1, 2],
        targets: &[Target { threads: 1, log: 1.10, bucket: 0.65 }, Target { threads: 2, log: 0.75, bucket: 0.50 }],
        measure: rounds::measure::<String>,
        ..ZIPF
    },
    Scenario {
        name: "90 % of 1,000 keys, 10 % new keys",
        popularity: Popularity::HotAndNew { hot: 1_000 },
        decisions: 100_000,
        threads: &[1, 2],
        targets: &[Target { threads: 1, log: 1.80, bucket: 1.40 }, Target { threads: 2, log: 1.60, bucket: 1.40 }],
        ..ZIPF
    },
    Scenario {
        name: "uniform, 10 M keys",
        popularity: Popularity::Uniform { keys: 10_000_000 },
        decisions: 75_000,
        targets: &[],
        gigabytes: 12,
        ..UNIFORM
    },
];

/// Admissions against the limit, which is never reached: the larger it is the longer the log that a
/// clock's window holds.
#[must_use]
pub fn admitted_by_limit() -> Vec<Scenario> {
    let with_limit = |limit: u32| {
        let window = Duration::from_nanos(5) * limit;
        Scenario { limit, window, decisions: 125_000, threads: &[1], ..ADMITTED }
    };
    LIMITS.map(with_limit).into()
}

/// Denials against the limit, all of which is live.
#[must_use]
pub fn denied_by_limit() -> Vec<Scenario> {
    // A permit of a million in this time takes nine minutes to come back to GCRA.
    let window = Duration::from_secs(1 << 29);
    let with_limit = |limit: u32| Scenario { limit, window, decisions: 125_000, threads: &[1], ..DENIED };
    LIMITS.map(with_limit).into()
}

const LIMITS: [u32; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// Denials against the number of keys, all of which ask equally often.
#[must_use]
pub fn denied_by_keys() -> Vec<Scenario> {
    let with_keys = |keys: usize| {
        let popularity = Popularity::Uniform { keys };
        Scenario { popularity, limit: 2, decisions: 75_000, threads: &[1], ..DENIED }
    };
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].map(with_keys).into()
}
