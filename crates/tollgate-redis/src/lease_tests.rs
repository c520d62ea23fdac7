//! Nodes that lease from a naive store, with clocks of their own, calls that take time, and nodes
//! that stop or die.

use core::time::Duration;
use std::collections::BTreeMap;

use fastrand::Rng;
use tokio::time::Instant;
use tollgate::Quota;

use super::*;

const LIMIT: u32 = 200;
/// Microseconds, as all times here.
const WINDOW: u64 = 5_000;
const STEP: u64 = 1_000;

fn leases() -> Arc<Leases> {
    leases_of(LIMIT, WINDOW, 32)
}

fn leases_of(limit: u32, window: u64, most: u32) -> Arc<Leases> {
    let quota = Quota::quantised_log(limit, Duration::from_micros(window), Duration::from_micros(STEP));
    Arc::new(Leases::new(most, 1, &[quota]).unwrap())
}

const KEY: KeyDigest = KeyDigest(7);

/// Permits by the ends of their steps. They count no longer than is promised.
struct Naive {
    limit: u32,
    window: u64,
    charged: BTreeMap<u64, u32>,
}

impl Naive {
    fn new(limit: u32, window: u64) -> Self {
        Self { limit, window, charged: BTreeMap::new() }
    }

    fn counting(&self, now: u64) -> u32 {
        self.charged.iter().filter(|&(ends, _)| ends + self.window > now).map(|(_, permits)| permits).sum()
    }

    fn decide(&mut self, now: u64, cost: u32, more: u32) -> Taken {
        let (ends, fit) = (now.div_ceil(STEP) * STEP, (self.limit - self.counting(now)) / cost);
        let granted = fit.min(more + 1);
        *self.charged.entry(ends).or_default() += granted * cost;
        let reset_after = Duration::from_micros(ends + self.window - now);
        let left = Left { remaining: self.limit - self.counting(now), next_after: Duration::ZERO, reset_after };
        Taken { permits: granted.checked_sub(1).map(|more| more * cost), ends, left }
    }

    fn give_back(&mut self, unspent: Unspent) {
        *self.charged.get_mut(&unspent.ends).expect("they were charged") -= unspent.permits;
    }
}

/// A node and its clock.
struct Node {
    leases: Arc<Leases>,
    begun: Instant,
    /// How much faster than the server's it runs, in a million.
    faster: i64,
}

impl Node {
    fn clock(&self, now: u64) -> Instant {
        let (now, million) = (i64::try_from(now).unwrap(), 1_000_000);
        self.begun + Duration::from_nanos(u64::try_from(now * 1_000 * (million + self.faster) / million).unwrap())
    }
}

enum Event {
    Asks { node: usize, cost: u32 },
    AtTheServer { taking: Taking, sent_at: Instant, cost: u32 },
    Answered { taking: Taking, sent_at: Instant, taken: Taken },
}

#[derive(Default)]
struct Run {
    /// When permits were spent, and how many.
    spent: Vec<(u64, u32)>,
    by_lease: u32,
    given_back: u32,
    denied: u32,
}

fn run(seed: u64) -> Run {
    let (mut numbers, mut run) = (Rng::with_seed(seed), Run::default());
    let mut store = Naive::new(LIMIT, WINDOW);
    let begun = Instant::now();
    let faster = [-499, 0, 499].map(|faster| Node { leases: leases(), begun, faster });
    let mut events: BTreeMap<(u64, usize), Event> = BTreeMap::new();
    let mut numbered = 0;
    let mut add = |events: &mut BTreeMap<_, _>, at: u64, event| {
        numbered += 1;
        events.insert((at, numbered), event);
    };
    let mut at = STEP;
    for _ in 0..1_500 {
        // A rush, or a pause.
        at += if numbers.u64(..60) == 0 { numbers.u64(..2 * WINDOW) } else { numbers.u64(..15) };
        let node = usize::try_from(numbers.u64(..3)).unwrap();
        let cost = 1 + u32::from(numbers.u64(..2) > 0);
        add(&mut events, at, Event::Asks { node, cost });
    }
    while let Some(((now, _), event)) = events.pop_first() {
        match event {
            Event::Asks { node, cost } => {
                let node = &faster[node];
                let sent_at = node.clock(now);
                if node.leases.spend(KEY, cost, sent_at).is_some() {
                    run.by_lease += cost;
                    run.spent.push((now, cost));
                } else if let Some(taking) = node.leases.begin(KEY, cost, sent_at) {
                    let arrives = now + numbers.u64(..50);
                    add(&mut events, arrives, Event::AtTheServer { taking, sent_at, cost });
                } else if store.decide(now, cost, 0).permits.is_some() {
                    run.spent.push((now, cost));
                }
            }
            Event::AtTheServer { taking, sent_at, cost } => {
                if let Some(unspent) = taking.unspent {
                    run.given_back += unspent.permits;
                    store.give_back(unspent);
                }
                let taken = store.decide(now, cost, taking.more);
                match taken.permits {
                    Some(_) => run.spent.push((now, cost)),
                    None => run.denied += 1,
                }
                // Some answers are lost, with what they granted. Some take most of a step.
                let late = if numbers.u64(..4) == 0 { numbers.u64(..2 * STEP) } else { numbers.u64(..50) };
                if numbers.u64(..20) > 0 {
                    add(&mut events, now + late, Event::Answered { taking, sent_at, taken });
                }
            }
            Event::Answered { taking, sent_at, taken } => {
                taking.keep(sent_at, taken);
            }
        }
    }
    run.spent.sort_unstable();
    run
}

#[test]
fn no_window_holds_more_than_n_by_clocks_that_drift_and_answers_that_are_late_or_lost() {
    let mut all = Run::default();
    for seed in 1..=300 {
        let run = run(seed);
        for (first, &(from, _)) in run.spent.iter().enumerate() {
            let within = run.spent[first..].iter().take_while(|&&(at, _)| at < from + WINDOW);
            let permits: u32 = within.map(|&(_, permits)| permits).sum();
            assert!(permits <= LIMIT, "run {seed}: {permits} permits from {from}");
        }
        all.by_lease += run.by_lease;
        all.given_back += run.given_back;
        all.denied += run.denied;
    }
    assert!(all.by_lease > 10_000 && all.given_back > 1_000 && all.denied > 1_000);
}

/// What ten nodes are told by leases of a minute's limit in steps of a second, and by the store alone.
#[derive(Debug, Default)]
struct Compared {
    asked: u32,
    calls: u32,
    admitted: u32,
    directly: u32,
    /// The store alone would have admitted them.
    denied: u32,
}

impl Compared {
    /// With a request every so many microseconds, at a node by chance. A second has a thousand of them.
    fn of(limit: u32, gap: u64) -> Self {
        const MINUTE: u64 = 60 * STEP;
        let nodes: Vec<Arc<Leases>> = (0..10).map(|_| leases_of(limit, MINUTE, 100)).collect();
        let (mut store, mut direct) = (Naive::new(limit, MINUTE), Naive::new(limit, MINUTE));
        let (mut numbers, mut told, begun) = (Rng::with_seed(7), Self::default(), Instant::now());
        let mut now = STEP;
        while now < 4 * MINUTE {
            now += numbers.u64(..2 * gap + 1);
            let clock = begun + Duration::from_micros(now);
            let leases = &nodes[usize::try_from(numbers.u64(..10)).unwrap()];
            let mut calls = 0;
            let is_admitted = leases.spend(KEY, 1, clock).is_some() || {
                let taking = leases.begin(KEY, 1, clock).unwrap();
                calls = 1 + u32::from(taking.unspent.is_some());
                taking.unspent.into_iter().for_each(|unspent| store.give_back(unspent));
                let taken = store.decide(now, 1, taking.more);
                taking.keep(clock, taken);
                taken.permits.is_some()
            };
            let directly = direct.decide(now, 1, 0).permits.is_some();
            told.asked += 1;
            told.calls += calls;
            told.admitted += u32::from(is_admitted);
            told.directly += u32::from(directly);
            told.denied += u32::from(directly && !is_admitted);
        }
        told
    }
}

/// A tenth of them at each node: ten in a step.
#[test]
fn below_its_limit_nobody_is_denied_and_few_requests_are_calls() {
    let told = Compared::of(6_500, 10);
    assert_eq!((told.denied, told.admitted), (0, told.asked));
    assert!(told.calls * 5 < told.asked * 2, "{told:?}");
}

#[test]
fn a_tenth_above_its_limit_few_are_denied_for_leases_of_others() {
    let told = Compared::of(5_400, 10);
    assert!(told.admitted * 100 > told.directly * 99, "{told:?}");
    assert!(told.denied * 20 < told.asked, "{told:?}");
}

fn taken(permits: u32, ends: u64, rest: u64, remaining: u32) -> Taken {
    let reset_after = Duration::from_micros(rest + WINDOW);
    Taken { permits: Some(permits), ends, left: Left { remaining, next_after: Duration::ZERO, reset_after } }
}

#[test]
fn a_lease_is_spent_from_when_it_was_sent_for_until_shortly_before_its_step_is_over() {
    let (leases, sent_at) = (leases(), Instant::now());
    let after = |micros| sent_at + Duration::from_micros(micros);
    let ends = |key, cost, now| leases.spend(key, cost, now).map(|spent| spent.ends);
    leases.begin(KEY, 1, sent_at).unwrap().keep(sent_at, taken(3, 5_000, 800, 100));
    assert_eq!(ends(KEY, 2, after(500)), Some(5_000));
    assert_eq!(ends(KEY, 2, after(500)), None, "one is left");
    assert_eq!(ends(KeyDigest(8), 1, after(500)), None, "another key");
    // 800 us less 500 ppm, and a nanosecond.
    assert_eq!(ends(KEY, 1, after(800)), None);
    assert_eq!(ends(KEY, 1, sent_at + Duration::from_nanos(799_599)), None);
    assert_eq!(ends(KEY, 1, sent_at + Duration::from_nanos(799_598)), Some(5_000));
    // A server whose clock was set back says that the step lasts longer than steps do.
    leases.begin(KEY, 1, after(900)).unwrap().keep(after(900), taken(3, 6_000, 70_000, 100));
    assert_eq!(ends(KEY, 1, after(900 + STEP)), None);
}

/// What the store had left, and the lease; the times of the store go on.
#[test]
fn what_is_left_is_what_the_store_said_and_what_the_lease_has() {
    let (leases, sent_at) = (leases(), Instant::now());
    let micros = Duration::from_micros;
    let said = Left { remaining: 100, next_after: micros(200), reset_after: micros(800 + WINDOW) };
    let left = |cost, since| {
        let now = sent_at + micros(since);
        let Left { remaining, next_after, reset_after } = leases.spend(KEY, cost, now).unwrap().left(now);
        (remaining, next_after, reset_after)
    };
    let has = |permits| {
        let taking = leases.begin(KEY, 1, sent_at).unwrap();
        taking.keep(sent_at, Taken { permits, ends: 5_000, left: said })
    };
    assert_eq!(has(Some(7)), 7);
    assert_eq!(left(1, 0), (106, micros(200), micros(800 + WINDOW)));
    assert_eq!(left(2, 150), (104, micros(50), micros(650 + WINDOW)));
    assert_eq!(left(1, 700), (103, Duration::ZERO, micros(100 + WINDOW)));
    assert_eq!(has(None), 0, "a request that was denied");
    assert_eq!(has(Some(2)), 5);
    assert_eq!(left(5, 0).0, 100);
}

#[test]
fn leases_grow_while_they_are_spent_and_shrink_with_what_remains() {
    let (leases, now) = (leases(), Instant::now());
    let mut sizes = vec![];
    for remaining in [1000, 1000, 1000, 1000, 1000, 1000, 1000, 100, 40, 8, 7, 1000] {
        let taking = leases.begin(KEY, 1, now).unwrap();
        let more = taking.more;
        sizes.push(more);
        taking.keep(now, taken(more, 5_000, 900, remaining));
        while leases.spend(KEY, 1, now).is_some() {}
    }
    assert_eq!(sizes, [0, 1, 3, 7, 15, 31, 32, 32, 12, 5, 1, 0]);
}

#[test]
fn what_was_not_spent_is_given_back_once_and_the_next_lease_is_as_large_as_what_was() {
    let (leases, now) = (leases(), Instant::now());
    let after = |micros| now + Duration::from_micros(micros);
    leases.begin(KEY, 1, now).unwrap().keep(now, taken(9, 5_000, 900, 100));
    for _ in 0..3 {
        assert!(leases.spend(KEY, 1, now).is_some());
    }
    let taking = leases.begin(KEY, 1, after(900)).unwrap();
    assert_eq!((taking.more, taking.unspent), (3, Some(Unspent { key: KEY, ends: 5_000, permits: 6 })));
    // The call is on its way.
    assert!(leases.begin(KEY, 1, after(900)).is_none() && leases.spend(KEY, 1, now).is_none());
    drop(taking);
    let taking = leases.begin(KEY, 1, after(900)).unwrap();
    assert_eq!((taking.more, taking.unspent), (3, None));
    taking.keep(after(900), taken(3, 6_000, 900, 100));
    // They count no longer.
    assert_eq!(leases.begin(KEY, 1, after(1_800 + WINDOW)).unwrap().unspent, None);
}

#[test]
fn a_key_whose_slot_is_another_ones_goes_without_until_the_step_is_over() {
    let (leases, now, other) = (leases(), Instant::now(), KeyDigest(8));
    let over = now + Duration::from_micros(900);
    let taking = leases.begin(KEY, 1, now).unwrap();
    assert!(leases.begin(other, 1, over).is_none(), "a call is on its way");
    taking.keep(now, taken(9, 5_000, 900, 100));
    assert!(leases.begin(other, 1, now).is_none());
    let taking = leases.begin(other, 1, over).unwrap();
    assert_eq!(taking.unspent, Some(Unspent { key: KEY, ends: 5_000, permits: 9 }));
    taking.keep(over, taken(5, 6_000, 900, 100));
    assert!(leases.spend(KEY, 1, over).is_none() && leases.spend(other, 1, over).is_some());
    leases.remove(KEY);
    assert!(leases.spend(other, 1, over).is_some());
    leases.remove(other);
    assert!(leases.spend(other, 1, over).is_none());
}
