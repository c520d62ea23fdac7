//! Each wait comes true: the same request is admitted after exactly `retry_after`, and one
//! nanosecond sooner it is not. Random limiters, of one dimension or several.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    Algorithm, Decision, DefaultFingerprinter, DenialReason, JointLimiter, Lender, Limiter, Penalty, Quota,
    Reservation, Tier, TierKey,
};

use tollgate_kit::clocks::CountedClock;

use crate::penalties::{of_library, penalties};

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// Quotas of any algorithm.
fn quotas() -> impl Strategy<Value = Vec<Quota>> {
    let (limit, rate, time) = (|| 1_u32..5, || 1_u32..4, || 1_u64..30);
    let log = || (limit(), time()).prop_map(|(limit, window)| Quota::new(limit, ns(window)));
    let low = (limit(), rate(), time(), 0_u32..3).prop_map(|(capacity, refill, per, start)| {
        Quota::token_bucket(capacity, refill, ns(per)).starting_with(start.min(capacity))
    });
    let bucket =
        (limit(), rate(), time()).prop_map(|(capacity, refill, per)| Quota::token_bucket(capacity, refill, ns(per)));
    let meter =
        (limit(), rate(), time()).prop_map(|(capacity, leak, per)| Quota::leaky_bucket(capacity, leak, ns(per)));
    let queue = (rate(), time(), 0_u64..50).prop_map(|(leak, per, delay)| Quota::leaky_queue(leak, ns(per), ns(delay)));
    let window = (limit(), time(), prop::option::of(0_u64..30)).prop_map(|(limit, window, phase)| {
        let quota = Quota::fixed_window(limit, ns(window));
        phase.map_or(quota, |phase| quota.aligned(ns(phase)))
    });
    let counter = (limit(), time()).prop_map(|(limit, window)| Quota::sliding_counter(limit, ns(window)));
    let steps = (limit(), 1_u64..6, 1_u64..6)
        .prop_map(|(limit, steps, step)| Quota::quantised_log(limit, ns(steps * step), ns(step)));
    let warm_up = (limit(), rate(), time(), time())
        .prop_map(|(limit, rate, per, warm)| Quota::warm_up(limit, rate, ns(per), ns(warm)));
    let one = prop_oneof![log(), bucket, meter, queue, window, counter, steps, warm_up];
    prop_oneof![
        3 => low.prop_map(|quota| vec![quota]),
        2 => prop::collection::vec(log(), 1..4),
        5 => one.prop_map(|quota| vec![quota]),
    ]
}

fn penalty() -> impl Strategy<Value = Option<Penalty>> {
    prop::option::of(penalties(1..4, || 1_u64..60).prop_map(of_library))
}

#[derive(Debug, Clone)]
struct Setup {
    /// By dimension: the quotas, those of its tier, and the penalty.
    dimensions: Vec<(Vec<Quota>, Vec<Quota>, Option<Penalty>)>,
    enforced_percent: u8,
}

fn setup(dimensions: core::ops::RangeInclusive<usize>) -> impl Strategy<Value = Setup> {
    let dimensions = prop::collection::vec((quotas(), quotas(), penalty()), dimensions);
    (dimensions, prop::sample::select(vec![100, 100, 50, 0]))
        .prop_map(|(dimensions, enforced_percent)| Setup { dimensions, enforced_percent })
}

/// The key of a dimension, and whether it is in the tier.
type Name = (u8, bool);

#[derive(Debug, Clone)]
enum Op {
    Acquire { keys: [Option<Name>; 3], cost: u32 },
    Reserve { keys: [Option<Name>; 3], cost: u32, within: u64, keep: bool },
    Forget { keys: [Option<Name>; 3] },
    Advance(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let keys = || prop::array::uniform3(prop::option::weighted(0.8, (0_u8..2, any::<bool>())));
    let cost = || prop_oneof![2 => Just(1_u32), 1 => 1_u32..6];
    let op = prop_oneof![
        8 => (keys(), cost()).prop_map(|(keys, cost)| Op::Acquire { keys, cost }),
        2 => (keys(), cost(), 0_u64..40, any::<bool>())
            .prop_map(|(keys, cost, within, keep)| Op::Reserve { keys, cost, within, keep }),
        1 => keys().prop_map(|keys| Op::Forget { keys }),
        4 => (0_u64..40).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..16)
}

/// What a request is told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    Admitted,
    /// Whether shadow mode admits it, and the wait; none, if it makes no promise.
    InTheWay {
        overruled: bool,
        wait: Option<u64>,
    },
    Error,
}

impl Told {
    fn of(decision: Decision) -> Self {
        let (denial, overruled) = match decision {
            Decision::Denied(denial) => (denial, false),
            Decision::Admitted(admission) => match admission.overruled() {
                Some(denial) => (denial, true),
                None => return Self::Admitted,
            },
        };
        let wait = Some(denial.retry_after()).filter(|&wait| wait < Duration::MAX);
        let wait = wait.filter(|_| denial.reason() != DenialReason::KeyCap);
        Self::InTheWay { overruled, wait: wait.map(|wait| u64::try_from(wait.as_nanos()).expect("short")) }
    }
}

/// A limiter under play.
trait Played {
    fn ask(&self, op: &Op) -> Told;
}

fn all_come_true<P: Played>(ops: &[Op], play: impl Fn(&CountedClock) -> P) -> Result<(), TestCaseError> {
    // What the last of these operations is told at this time, asked once more there, if it is to be.
    let replay = |ops: &[Op], again_after: Option<u64>| {
        let clock = CountedClock::new();
        let played = play(&clock);
        let (mut now, mut told) = (0, Told::Error);
        for op in ops {
            match op {
                Op::Advance(by) => now += by,
                _ => told = played.ask(op),
            }
            clock.set(now);
        }
        match (again_after, ops.last()) {
            (Some(wait), Some(last)) => {
                clock.set(now + wait);
                played.ask(last)
            }
            _ => told,
        }
    };
    for end in 1..=ops.len() {
        let ops = &ops[..end];
        if matches!(ops[end - 1], Op::Advance(_) | Op::Forget { .. }) {
            continue;
        }
        let told = replay(ops, None);
        let Told::InTheWay { overruled, wait: Some(wait) } = told else { continue };
        prop_assert!(wait > 0);
        let then = replay(ops, Some(wait));
        let is_admitted = match then {
            Told::Admitted => true,
            // Keys in shadow mode may still be in the way.
            Told::InTheWay { overruled: true, .. } => !overruled,
            _ => false,
        };
        prop_assert!(is_admitted, "after {wait} of {ops:?}: {then:?}");
        let sooner = replay(ops, Some(wait - 1));
        let is_denied = matches!(sooner, Told::InTheWay { overruled: still, .. } if still == overruled);
        prop_assert!(is_denied, "1 before {wait} of {ops:?}: {sooner:?}");
    }
    Ok(())
}

struct Joint {
    limiter: JointLimiter<[u8], CountedClock>,
    tiers: Vec<Tier>,
}

impl Joint {
    fn new(setup: &Setup, clock: &CountedClock) -> Self {
        let mut builder = JointLimiter::<[u8]>::builder().clock(clock.clone());
        for (dimension, (quotas, of_tier, penalty)) in setup.dimensions.iter().enumerate() {
            builder = builder.dimension(dimension.to_string(), quotas.clone()).tier(dimension, "tier", of_tier.clone());
            builder = match penalty {
                Some(penalty) => builder.penalty(dimension, *penalty),
                None => builder,
            };
        }
        let builder = builder.enforced_percent(setup.enforced_percent);
        let limiter = builder.fingerprinter(DefaultFingerprinter::with_seed(1, 2)).build().expect("valid");
        let tiers = (0..setup.dimensions.len()).map(|at| limiter.tier(at, "tier").expect("given")).collect();
        Self { limiter, tiers }
    }

    fn keys(&self, names: &[Option<Name>; 3]) -> Vec<Option<TierKey<u8>>> {
        let tier = |at: usize, is_in: bool| if is_in { self.tiers[at] } else { Tier::default() };
        (0..self.tiers.len()).map(|at| names[at].map(|(key, is_in)| tier(at, is_in).key(key))).collect()
    }
}

impl Played for Joint {
    fn ask(&self, op: &Op) -> Told {
        match op {
            Op::Acquire { keys, cost } => {
                self.limiter.try_acquire_n(&*self.keys(keys), *cost).map_or(Told::Error, Told::of)
            }
            Op::Reserve { keys, cost, keep, .. } => match self.limiter.reserve(&*self.keys(keys), *cost) {
                Ok(reservation) => kept(reservation, *keep),
                Err(error) => error.denial().map_or(Told::Error, |denial| Told::of(Decision::Denied(denial))),
            },
            Op::Forget { keys } => {
                let _ = self.limiter.forget(&*self.keys(keys));
                Told::Error
            }
            Op::Advance(_) => Told::Error,
        }
    }
}

fn kept<P: core::ops::Deref<Target: Lender>>(reservation: Reservation<P>, keep: bool) -> Told {
    let told = Told::of(reservation.status().decision());
    if keep {
        let _ = reservation.commit();
    }
    told
}

struct Single {
    limiter: Limiter<u8, CountedClock>,
    tier: Tier,
}

impl Single {
    fn new(setup: &Setup, clock: &CountedClock, counts_refused: bool) -> Self {
        let (quotas, of_tier, penalty) = &setup.dimensions[0];
        let is_log = |quota: &Quota| quota.algorithm() == Algorithm::SlidingWindowLog;
        let quotas =
            quotas.iter().map(|quota| if counts_refused && is_log(quota) { quota.counting_refused() } else { *quota });
        let quotas: Vec<Quota> = quotas.collect();
        let builder = quotas[1..].iter().fold(Limiter::builder(quotas[0]), |builder, quota| builder.and(*quota));
        let builder = builder.tier("tier", of_tier.clone()).clock(clock.clone());
        let builder = penalty.iter().fold(builder, |builder, penalty| builder.penalty(*penalty));
        let builder = builder.enforced_percent(setup.enforced_percent);
        let limiter = builder.fingerprinter(DefaultFingerprinter::with_seed(1, 2)).build().expect("valid");
        let tier = limiter.tier("tier").expect("given");
        Self { limiter, tier }
    }

    fn key(&self, names: &[Option<Name>; 3]) -> TierKey<u8> {
        let (key, is_in) = names[0].unwrap_or_default();
        (if is_in { self.tier } else { Tier::default() }).key(key)
    }
}

impl Played for Single {
    fn ask(&self, op: &Op) -> Told {
        match *op {
            Op::Acquire { keys, cost } => {
                self.limiter.try_acquire_n(self.key(&keys), cost).map_or(Told::Error, Told::of)
            }
            Op::Reserve { keys, cost, within, keep } => match self.limiter.reserve(self.key(&keys), cost, ns(within)) {
                Ok(reservation) => kept(reservation, keep),
                Err(error) => error.denial().map_or(Told::Error, |denial| Told::of(Decision::Denied(denial))),
            },
            Op::Forget { keys } => {
                let _ = self.limiter.forget(self.key(&keys));
                Told::Error
            }
            Op::Advance(_) => Told::Error,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_one_key(setup in setup(1..=1), counts_refused in any::<bool>(), ops in ops()) {
        all_come_true(&ops, |clock| Single::new(&setup, clock, counts_refused))?;
    }

    #[test]
    fn of_several_keys(setup in setup(1..=3), ops in ops()) {
        all_come_true(&ops, |clock| Joint::new(&setup, clock))?;
    }
}
