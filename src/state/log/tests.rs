//! A log beside a list of stamps, in one thread.

use proptest::prelude::*;

use super::kit::{Answer, plan};
use super::*;
use crate::state::cell::{AtomicWord, Hint};
use crate::state::request::{Algorithm, CellRef, Proposal, Request};

mod packing;

const ORIGIN: u64 = 1 << 60;

/// Every permit that stands, oldest first; nothing is ever dropped.
#[derive(Clone, Debug, Default)]
struct Naive {
    permits: Vec<u64>,
    /// The clock may be behind the last of them.
    reserved_until: u64,
}

impl Naive {
    fn live(&self, window: u64, at: u64) -> usize {
        self.permits.iter().filter(|&&stamp| stamp + window > at).count()
    }

    fn fits(&self, quotas: &[(u32, u64)], at: u64, cost: u32) -> bool {
        at >= self.reserved_until
            && quotas.iter().all(|&(limit, window)| self.live(window, at) + cost as usize <= limit as usize)
    }

    /// The first time from `from` on at which a request fits.
    fn fits_at(&self, quotas: &[(u32, u64)], from: u64, cost: u32) -> u64 {
        let ends = self.permits.iter().flat_map(|stamp| quotas.iter().map(move |&(_, window)| stamp + window));
        let times = ends.chain([from, self.reserved_until]).filter(|&time| time >= from);
        times.filter(|&time| self.fits(quotas, time, cost)).min().expect("it fits once all have expired")
    }
}

#[derive(Clone, Debug)]
enum Step {
    Request {
        cost: u32,
        within: u64,
    },
    Wait(u64),
    Refund(prop::sample::Index),
    Left,
    Move,
    /// Another thread loads the word and reads the clock, and stops before its spill.
    Stall,
    /// It goes on.
    Resume,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..4_u32, prop_oneof![3 => Just(0), 1 => 0..30_u64]).prop_map(|(cost, within)| Step::Request { cost, within }),
        4 => (0..12_u64).prop_map(Step::Wait),
        1 => (30..70_u64).prop_map(Step::Wait),
        2 => any::<prop::sample::Index>().prop_map(Step::Refund),
        2 => Just(Step::Left),
        1 => Just(Step::Move),
        2 => Just(Step::Stall),
        2 => Just(Step::Resume),
    ]
}

fn done<T>(attempt: Option<T>) -> T {
    attempt.expect("no other thread")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
    #[test]
    fn a_log_answers_as_a_list_of_stamps(
        quotas in prop_oneof![
            (1..9_u32, 1..40_u64).prop_map(|quota| vec![quota]),
            prop::collection::vec((3..9_u32, 1..40_u64), 2..4),
        ],
        steps in prop::collection::vec(step(), 1..80),
        costs in 1..3_u32,
    ) {
        let plan = plan(&quotas);
        let least = quotas.iter().map(|quota| quota.0).min().unwrap();
        let mut arena = (AtomicWord::new(), Rings::with_room(1 << 14), Hint::new());
        let (mut naive, mut now, mut receipts) = (Naive::default(), ORIGIN, Vec::new());
        let mut stalled = Vec::new();
        for step in steps {
            let cell = CellRef { word: &arena.0, hint: &arena.2, rings: &arena.1 };
            let word = cell.word.load();
            match step {
                Step::Wait(time) => now += time,
                Step::Request { cost, within } => {
                    let cost = (cost * costs).min(least);
                    let within = within.min(plan.window());
                    let fits_at = naive.fits_at(&quotas, now, cost);
                    match done(plan.decide(cell, word, now, cost, within)) {
                        Answer::Denied { wait_ns, quota } => {
                            prop_assert_eq!(now + wait_ns, fits_at - within);
                            prop_assert!(fits_at > now + within, "it fits");
                            let (limit, window) = quotas[quota as usize];
                            let denies = naive.live(window, fits_at - 1) + cost as usize > limit as usize;
                            prop_assert!(denies || fits_at == naive.reserved_until, "quota {quota}");
                            prop_assert_eq!(cell.word.load(), word, "a denial writes nothing");
                        }
                        Answer::Admitted { stamp, delay_ns } => {
                            prop_assert_eq!((stamp, delay_ns), (fits_at, fits_at - now));
                            prop_assert!(delay_ns <= within);
                            naive.permits.extend((0..cost).map(|_| stamp));
                            naive.reserved_until = if stamp > now { stamp } else { 0 };
                            receipts.push((stamp, cost));
                        }
                    }
                }
                Step::Refund(which) => {
                    if receipts.is_empty() { continue }
                    let (stamp, cost) = receipts.swap_remove(which.index(receipts.len()));
                    let refunded = done(plan.take_back(cell, word, now, cost, stamp));
                    let newest = naive.permits.last().copied().unwrap_or(0);
                    let time = if now < naive.reserved_until { now } else { now.max(newest) };
                    let is_live = stamp + plan.window() > time;
                    prop_assert_eq!(refunded, if is_live { cost } else { 0 });
                    for _ in 0..refunded {
                        let at = naive.permits.iter().rposition(|&other| other == stamp).unwrap();
                        naive.permits.remove(at);
                    }
                    if refunded > 0 {
                        let newest = naive.permits.last().copied().unwrap_or(0);
                        naive.reserved_until = if newest > now { newest } else { 0 };
                    }
                }
                Step::Left => {
                    let cost = costs.min(least);
                    let (look, left) = plan.seen(cell, word, now, cost).unwrap();
                    let fits_at = naive.fits_at(&quotas, now, cost);
                    match look {
                        Answer::Admitted { delay_ns, .. } => prop_assert_eq!((fits_at, 0), (now, delay_ns)),
                        Answer::Denied { wait_ns, .. } => prop_assert_eq!(fits_at, now + wait_ns),
                    }
                    for (&(limit, window), left) in quotas.iter().zip(left.iter().map(|quota| quota.left)) {
                        if now < naive.reserved_until {
                            prop_assert_eq!(left.remaining, 0);
                            continue;
                        }
                        let live = naive.live(window, now);
                        prop_assert_eq!(left.remaining as usize, limit as usize - live);
                        let ends = || naive.permits.iter().map(|stamp| stamp + window).filter(|&end| end > now);
                        prop_assert_eq!(left.next_after_ns, ends().min().map_or(0, |end| end - now));
                        prop_assert_eq!(left.reset_after_ns, ends().max().map_or(0, |end| end - now));
                    }
                }
                Step::Move => {
                    prop_assert!(cell.word.swap(word, word.frozen()));
                    let rings = Rings::with_room(1 << 14);
                    let moved = plan.moved(Seen { cell, word: word.frozen(), now }, &plan, &rings);
                    let next = AtomicWord::new();
                    prop_assert!(next.swap(Word::NEW, moved));
                    arena = (next, rings, Hint::new());
                    stalled.clear();
                }
                Step::Stall => {
                    let view = View::of(plan.layout, Seen { cell, word, now });
                    let spills = view.state.run < u32::try_from(view.ring.len()).unwrap()
                        && view.state.newest + plan.window() > view.passed;
                    if spills {
                        stalled.push((word, now));
                    }
                }
                Step::Resume => {
                    let Some((old, then)) = stalled.pop() else { continue };
                    super::spill(&View::of(plan.layout, Seen { cell, word: old, now: then }));
                    prop_assert_eq!(cell.word.load(), word, "a spill leaves the word");
                }
            }
        }
    }

    /// Large costs take the way of a copy.
    #[test]
    fn a_cost_above_a_run_is_granted_whole(costs in prop::collection::vec((1..400_u32, 0..300_u64), 1..40)) {
        let (limit, window) = (500, 1000);
        let (plan, word, rings) = (plan(&[(limit, window)]), AtomicWord::new(), Rings::with_room(1 << 18));
        let cell = CellRef { word: &word, hint: &Hint::new(), rings: &rings };
        let (mut naive, mut now) = (Naive::default(), ORIGIN);
        for (cost, wait) in costs {
            now += wait;
            let admitted = matches!(done(plan.decide(cell, word.load(), now, cost, 0)), Answer::Admitted { .. });
            prop_assert_eq!(admitted, naive.fits(&[(limit, window)], now, cost));
            if admitted {
                naive.permits.extend((0..cost).map(|_| now));
            }
            let left = plan.left(cell, word.load(), now).unwrap().first();
            prop_assert_eq!(left.remaining as usize, limit as usize - naive.live(window, now));
        }
    }
}

#[test]
fn one_permit_takes_no_ring() {
    let (plan, word, rings) = (plan(&[(9, 100)]), AtomicWord::new(), Rings::with_room(64));
    let cell = CellRef { word: &word, hint: &Hint::new(), rings: &rings };
    for now in [ORIGIN, ORIGIN + 100, ORIGIN + 250] {
        assert!(matches!(done(plan.decide(cell, word.load(), now, 3, 0)), Answer::Admitted { .. }));
    }
    assert_eq!(rings.slots(), 0);
}

/// A ring of four first: 4 + 8 + 16 + 32 + 64 + 100 slots.
#[test]
fn a_ring_that_grows_permit_by_permit_is_copied_five_times() {
    let (plan, word, rings) = (plan(&[(100, 1000)]), AtomicWord::new(), Rings::with_room(1 << 10));
    let cell = CellRef { word: &word, hint: &Hint::new(), rings: &rings };
    let asked = (0..100).map(|permit| done(plan.decide(cell, word.load(), ORIGIN + permit, 1, 0)));
    assert!(asked.into_iter().all(|answer| matches!(answer, Answer::Admitted { .. })));
    assert_eq!(rings.slots(), 4 + 8 + 16 + 32 + 64 + 100);
}

/// Then the slot that decides for one permit is beside the slot of the newest one.
#[test]
fn a_full_grown_ring_is_as_long_as_its_limit() {
    for limit in 2..40 {
        let (plan, word, rings) = (plan(&[(limit, 100)]), AtomicWord::new(), Rings::with_room(1 << 10));
        let cell = CellRef { word: &word, hint: &Hint::new(), rings: &rings };
        let ask = |now| done(plan.decide(cell, word.load(), now, 1, 0));
        for permit in 0..u64::from(limit) {
            assert_eq!(ask(ORIGIN + permit), Answer::Admitted { stamp: ORIGIN + permit, delay_ns: 0 });
        }
        assert_eq!(plan.slots(word.load()), limit as usize);
        let (taken, full) = (rings.slots(), ORIGIN + u64::from(limit) - 1);
        assert_eq!(ask(full), Answer::Denied { wait_ns: ORIGIN + 100 - full, quota: 0 });
        for now in (ORIGIN..).take(3 * limit as usize).map(|stamp| stamp + 100) {
            let _ = ask(now);
        }
        assert_eq!(rings.slots(), taken, "it is copied no more");
    }
}

#[test]
fn a_clock_that_goes_back_is_granted_permits_of_the_newest_stamp() {
    let plan = plan(&[(3, 10)]);
    let (word, rings, hint) = (AtomicWord::new(), Rings::with_room(16), Hint::new());
    let cell = CellRef { word: &word, hint: &hint, rings: &rings };
    for now in [ORIGIN + 9, ORIGIN + 3] {
        let answer = done(plan.decide(cell, cell.word.load(), now, 1, 0));
        assert_eq!(answer, Answer::Admitted { stamp: ORIGIN + 9, delay_ns: 0 });
    }
}

#[test]
fn a_hint_is_of_the_newest_stamp_when_the_clock_goes_back() {
    let plan = plan(&[(1, 10)]);
    let (word, rings, hint) = (AtomicWord::new(), Rings::with_room(16), Hint::new());
    let cell = CellRef { word: &word, hint: &hint, rings: &rings };
    let ask = |now| done(plan.decide(cell, cell.word.load(), now, 1, 0));
    assert_eq!(ask(ORIGIN), Answer::Admitted { stamp: ORIGIN, delay_ns: 0 });
    assert_eq!(ask(ORIGIN + 4), Answer::Denied { wait_ns: 6, quota: 0 });
    assert_eq!(ask(ORIGIN + 5), Answer::Denied { wait_ns: 5, quota: 0 });
    assert_eq!(ask(ORIGIN + 10), Answer::Admitted { stamp: ORIGIN + 10, delay_ns: 0 });
    assert_eq!(ask(ORIGIN + 5), Answer::Denied { wait_ns: 15, quota: 0 });
}

/// A request may stop before its swap, while others are refused at one reading without end. If each
/// of them changed the word, it would come back after a round of the ring.
#[test]
fn no_number_of_refused_requests_at_one_reading_lets_a_stopped_one_in() {
    const LIMIT: u32 = 256;
    let plan = LogPlan::<Permits>::new(&[Quota::new(LIMIT, core::time::Duration::from_nanos(20)).counting_refused()]);
    let (word, rings, hint) = (AtomicWord::new(), Rings::with_room(1 << 12), Hint::new());
    let cell = CellRef { word: &word, hint: &hint, rings: &rings };
    let ask = |now, cost| match done(plan.decide(cell, cell.word.load(), now, cost, 0)) {
        Answer::Admitted { .. } => cost,
        Answer::Denied { .. } => 0,
    };
    // The ring is as long as it gets.
    (0..8).for_each(|_| assert!(ask(ORIGIN, 127) <= 127));
    let now = ORIGIN + 20;
    assert_eq!(ask(now, 2), 2);
    let seen = Seen { cell, word: cell.word.load(), now };
    let Proposal::Admit { word: stopped, .. } = plan.propose(seen, Request::acquire(127), None) else {
        panic!("it fits")
    };
    // As many as the ring has slots, again and again, and at last a grant as large as the first.
    let others = 64 * 2 * LIMIT - 2;
    let costs = (0..others / 127).map(|_| 127).chain([others % 127, 2]);
    assert_eq!(costs.map(|cost| ask(now, cost)).sum::<u32>(), LIMIT - 2);
    assert!(!cell.word.swap(seen.word, stopped), "the word came back");
}
