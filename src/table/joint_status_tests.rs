//! Statuses of joint requests, against lists of grants that are never pruned.

use core::time::Duration;
use std::collections::HashMap;

use proptest::prelude::*;

use super::joint::Together;
use super::kit::*;
use crate::decision::{Decision, DenialReason, JointQuotaStatus, JointStatus};

/// A clock that stands still at the given reading.
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// By dimension: limits and windows. The second has two quotas that bind, and one that the first of
/// them implies.
const RULES: [&[(u32, u64)]; 3] = [&[(3, 10)], &[(2, 5), (6, 40), (9, 5)], &[(5, 20)]];

type Keys = [Option<u64>; 3];

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

fn fingerprints(keys: Keys) -> Vec<Option<Fingerprint>> {
    let one = |(dimension, number): (usize, Option<u64>)| {
        number.map(|number| Fingerprint::new((number << 56) | dimension as u64, number << 4).in_dimension(dimension))
    };
    keys.into_iter().enumerate().map(one).collect()
}

fn table(places: usize) -> Table {
    let plan = |rules: &[(u32, u64)]| {
        let quotas: Vec<Quota> = rules.iter().map(|&(limit, window)| Quota::new(limit, ns(window))).collect();
        Versions::new(&quotas)
    };
    Table::together(RULES.map(plan).into(), places, 0)
}

/// Asks or peeks.
fn ask(table: &Table, keys: Keys, cost: u32, at: u64, looks: bool) -> JointStatus {
    let keys = fingerprints(keys);
    let asked = Together { keys: &keys, cost, admits_without_place: false, may_wait: true };
    match looks {
        true => table.preview_together_status(asked, &At(at)),
        false => table.acquire_together_status(asked, &At(at), None),
    }
}

/// Dimension, quota, limit, the permits left, the times until there are more and until all are
/// free, and whether it is violated.
type Item = (usize, usize, u32, u32, u64, u64, bool);

fn item(item: JointQuotaStatus) -> Item {
    let [next, reset] = [item.next_after(), item.reset_after()].map(|wait| u64::try_from(wait.as_nanos()).unwrap());
    (item.dimension(), item.quota(), item.limit(), item.remaining(), next, reset, item.is_violated())
}

/// The stamps of each key.
#[derive(Default)]
struct Naive(HashMap<(usize, u64), Vec<u64>>);

impl Naive {
    fn live(&self, dimension: usize, number: u64, window: u64, at: u64) -> u32 {
        let stamps = self.0.get(&(dimension, number));
        u32::try_from(stamps.into_iter().flatten().filter(|&&stamp| at < stamp + window).count()).unwrap()
    }

    /// Each quota of each key that is asked.
    fn quotas(keys: Keys) -> impl Iterator<Item = (usize, u64, usize, u32, u64)> {
        let asked = keys.into_iter().enumerate().filter_map(|(dimension, number)| Some((dimension, number?)));
        asked.flat_map(|(dimension, number)| {
            let rules = RULES[dimension].iter().enumerate();
            rules.map(move |(quota, &(limit, window))| (dimension, number, quota, limit, window))
        })
    }

    fn admits(&self, keys: Keys, cost: u32, at: u64) -> bool {
        Self::quotas(keys)
            .all(|(dimension, number, _, limit, window)| self.live(dimension, number, window, at) + cost <= limit)
    }

    fn items(&self, keys: Keys, denied: Option<u32>, at: u64) -> Vec<Item> {
        let told = |(dimension, number, quota, limit, window)| {
            let live = |at| self.live(dimension, number, window, at);
            let first = |is_so: &dyn Fn(u64) -> bool| (at..).find(|&then| is_so(then)).unwrap() - at;
            let next = if live(at) == 0 { 0 } else { first(&|then| live(then) < live(at)) };
            let violated = denied.is_some_and(|cost| live(at) + cost > limit);
            (dimension, quota, limit, limit - live(at), next, first(&|then| live(then) == 0), violated)
        };
        Self::quotas(keys).map(told).collect()
    }
}

fn any_keys() -> impl Strategy<Value = Keys> {
    let key = || prop::option::weighted(0.8, 1_u64..4);
    (key(), key(), key()).prop_map(|(one, two, three)| [one, two, three])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_quota_of_each_dimension_is_told(
        asks in prop::collection::vec((any_keys(), 1_u32..3, 0_u64..8, any::<bool>()), 1..60),
    ) {
        let (table, mut naive, mut now) = (table(64), Naive::default(), 1000);
        for (keys, cost, passed, looks) in asks {
            now += passed;
            let admits = naive.admits(keys, cost, now);
            let status = ask(&table, keys, cost, now, looks);
            prop_assert_eq!(status.is_admitted(), admits);
            if admits && !looks {
                for (dimension, number) in keys.into_iter().enumerate() {
                    let stamps = number.map(|number| naive.0.entry((dimension, number)).or_default());
                    stamps.into_iter().for_each(|stamps| stamps.extend((0..cost).map(|_| now)));
                }
            }
            let right = naive.items(keys, (!admits).then_some(cost), now);
            prop_assert_eq!(status.items().map(item).collect::<Vec<_>>(), right, "{:?} of {:?} at {}", cost, keys, now);
            if !admits {
                let keys = fingerprints(keys);
                let asked = Together { keys: &keys, cost, admits_without_place: false, may_wait: true };
                let bare = table.acquire_together(asked, &At(now));
                prop_assert_eq!(bare, status.decision());
            }
            let violated: Vec<usize> = RULES.iter().enumerate().map(|(dimension, _)| dimension).filter(|&dimension| {
                status.items().any(|item| item.dimension() == dimension && item.is_violated())
            }).collect();
            if let Decision::Denied(denial) = status.decision() {
                prop_assert_eq!(denial.violated().collect::<Vec<_>>(), violated);
                let wait = u64::try_from(denial.retry_after().as_nanos()).unwrap();
                prop_assert!(naive.admits(keys, cost, now + wait) && !naive.admits(keys, cost, now + wait - 1));
            }
        }
    }
}

#[test]
fn a_key_without_a_place_is_told_so_in_its_dimension() {
    let table = table(2);
    assert!(ask(&table, [Some(1), Some(1), None], 1, 100, false).is_admitted());
    for looks in [true, false] {
        let status = ask(&table, [Some(1), None, Some(1)], 1, 103, looks);
        let Decision::Denied(denial) = status.decision() else { panic!("no place") };
        assert_eq!((denial.reason(), denial.dimension()), (DenialReason::KeyCap, 2));
        let wait = u64::try_from(denial.retry_after().as_nanos()).unwrap();
        assert!((1..=7).contains(&wait), "{wait}");
        let right = [(0, 0, 3, 2, 7, 7, false), (2, 0, 5, 0, wait, wait, true)];
        assert_eq!(status.items().map(item).collect::<Vec<_>>(), right);
        assert_eq!(status.tightest().map(|tightest| tightest.dimension()), Some(2));
    }
    let keys = fingerprints([Some(1), None, Some(1)]);
    let asked = Together { keys: &keys, cost: 1, admits_without_place: true, may_wait: true };
    let status = table.acquire_together_status(asked, &At(103), None);
    assert!(status.is_admitted());
    let right = [(0, 0, 3, 1, 7, 10, false), (2, 0, 5, 5, 0, 0, false)];
    assert_eq!(status.items().map(item).collect::<Vec<_>>(), right, "the second is passed over");
}

#[test]
fn accounts_and_steps_are_told_and_a_bucket_that_starts_low_begins_to_fill() {
    let quotas = [
        Quota::token_bucket(5, 1, ns(10)).starting_with(1),
        Quota::quantised_log(4, ns(20), ns(5)),
        Quota::leaky_queue(1, ns(10), ns(15)),
    ];
    let table = Table::together(quotas.map(|quota| Versions::new(&[quota])).into(), 64, 0);
    let told = |cost, at| {
        let status = ask(&table, [Some(1); 3], cost, at, false);
        (status.is_admitted(), status.items().map(item).collect::<Vec<_>>())
    };
    // It is denied, and the bucket fills from now on.
    assert_eq!(
        told(2, 100),
        (false, vec![(0, 0, 5, 1, 10, 40, true), (1, 0, 4, 4, 0, 0, false), (2, 0, 2, 2, 0, 0, false)])
    );
    assert_eq!(
        told(2, 110),
        (true, vec![(0, 0, 5, 0, 10, 50, false), (1, 0, 4, 2, 20, 20, false), (2, 0, 2, 0, 5, 20, false)])
    );
    assert_eq!(
        told(1, 112),
        (false, vec![(0, 0, 5, 0, 8, 48, true), (1, 0, 4, 2, 18, 18, false), (2, 0, 2, 0, 3, 18, true)])
    );
}

#[test]
fn more_quotas_than_are_kept_inline_are_listed() {
    let quotas: Vec<Quota> = (1..=8).map(|nth| Quota::new(nth, ns(u64::from(nth)))).collect();
    let plans: Vec<Versions> = (0..3).map(|_| Versions::new(&quotas)).collect();
    let table = Table::together(plans.into(), 64, 0);
    for looks in [true, false] {
        let status = ask(&table, [Some(1); 3], 1, 100, looks);
        let right = (0..3).flat_map(|dimension| (0..8).map(move |quota| (dimension, quota)));
        assert!(status.items().map(|item| (item.dimension(), item.quota())).eq(right));
        let taken = u32::from(!looks);
        assert!(status.items().all(|item| item.remaining() == item.limit() - taken));
        assert_eq!(format!("{status:?}").matches("dimension").count(), 24);
        assert!(status == status.clone() && status != JointStatus::new());
    }
}
