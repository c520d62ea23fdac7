//! Threads that stop at each step of a request or of a rebuild, and go on later or never: played by
//! one thread, beside lists of stamps.

use core::cell::Cell as Counter;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::clock::Clock;
use crate::state::cell::{TIME_ZERO, time_of};
use crate::state::places::Taken;
use crate::state::plan::Version;
use crate::state::request::{Proposal, Request};
use crate::state::root::Guard;
use crate::state::shard::Seat;
use crate::state::shard::kit::{Answer, At, World, key, log};

const LIMITS: [u32; 2] = [5, 2];
const WINDOW: u64 = 100;
const KEYS: u64 = 16;
const CAP: usize = 11;

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Ask {
        number: u64,
        cost: u32,
        lag: u64,
    },
    /// By a clock that panics when it is read for the n-th time.
    Panic {
        number: u64,
        reading: u32,
    },
    Look(u64),
    Forget(u64),
    Refund(Index),
    Collect(usize),
    Change(usize),
    /// A thread does one thing and stops.
    Stop(Stop),
    /// A thread that stopped goes on.
    Resume(Index),
}

#[derive(Clone, Debug)]
enum Stop {
    /// It has loaded the root.
    Loaded,
    /// It has found that a key is not in an arena.
    Ended(Index, u64),
    /// It has all for the swap of a word. Or it goes on at once, but others have asked for a new key, and
    /// frozen its word, after the first look at it.
    Decided(u64, bool),
    /// It has linked a successor to the last arena.
    Linked,
    /// It has frozen the word of a key in an arena with a successor.
    Frozen(Index, u64),
    /// It has begun with a page of such an arena.
    Began(Index),
    /// It has swept a page of such an arena.
    Swept(Index),
    /// It has swapped the root.
    Swapped,
}

enum Stopped<'a> {
    Loaded(Arc<Arena>),
    Ended { arena: Arc<Arena>, end: usize, number: u64 },
    Decided { number: u64, arena: Arc<Arena>, index: usize, old: Word, new: Word, stamp: u64, taken: Option<Taken<'a>> },
    Frozen { arena: Arc<Arena>, number: u64, index: usize, successor: Arc<Arena> },
    Swapped(Arc<Arena>),
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..KEYS;
    let stop = prop_oneof![
        1 => Just(Stop::Loaded),
        4 => (any::<Index>(), number()).prop_map(|(arena, number)| Stop::Ended(arena, number)),
        3 => (number(), any::<bool>()).prop_map(|(number, freezes)| Stop::Decided(number, freezes)),
        2 => Just(Stop::Linked),
        4 => (any::<Index>(), number()).prop_map(|(arena, number)| Stop::Frozen(arena, number)),
        1 => any::<Index>().prop_map(Stop::Began),
        6 => any::<Index>().prop_map(Stop::Swept),
        2 => Just(Stop::Swapped),
    ];
    prop_oneof![
        6 => (0..20_u64).prop_map(Step::Wait),
        1 => (50..150_u64).prop_map(Step::Wait),
        20 => (number(), 1..3_u32, prop_oneof![4 => Just(0), 1 => 0..250_u64])
            .prop_map(|(number, cost, lag)| Step::Ask { number, cost, lag }),
        2 => (number(), 1..6_u32).prop_map(|(number, reading)| Step::Panic { number, reading }),
        4 => number().prop_map(Step::Look),
        3 => number().prop_map(Step::Forget),
        3 => any::<Index>().prop_map(Step::Refund),
        2 => (0..64_usize).prop_map(Step::Collect),
        1 => (0..2_usize).prop_map(Step::Change),
        12 => stop.prop_map(Step::Stop),
        6 => any::<Index>().prop_map(Step::Resume),
    ]
}

/// A clock that panics, without a message, when it is read for the n-th time.
struct Fails {
    time: u64,
    readings_left: Counter<u32>,
}

impl Clock for Fails {
    fn now(&self) -> u64 {
        match self.readings_left.get() {
            1 => resume_unwind(Box::new(())),
            left => self.readings_left.set(left - 1),
        }
        self.time
    }
}

struct Play<'a> {
    world: &'a World,
    now: u64,
    limit: u32,
    permits: HashMap<u64, Vec<u64>>,
    receipts: Vec<(u64, u64, u32)>,
    stopped: Vec<Stopped<'a>>,
    readings: Counter<u64>,
}

impl<'a> Play<'a> {
    /// A reading of the clock of up to three windows ago, as a thread has that stops in a sweep.
    fn earlier(&self) -> u64 {
        self.readings.set(self.readings.get() + 1);
        time_of(self.now.saturating_sub(self.readings.get() * 97 % 300))
    }

    fn clock(&self) -> At {
        At(self.now)
    }

    fn live(&self, number: u64, time: u64) -> u32 {
        let live = self.permits.get(&number).into_iter().flatten().filter(|&&stamp| stamp + WINDOW > time);
        u32::try_from(live.count()).unwrap()
    }

    fn granted(&mut self, number: u64, cost: u32, stamp: u64) {
        let permits = self.permits.entry(number).or_default();
        assert!(permits.last().is_none_or(|&last| last <= stamp), "{permits:?}, and then {stamp}");
        permits.extend((0..cost).map(|_| stamp));
        self.receipts.push((number, stamp, cost));
        let window = permits.iter().filter(|&&other| other + WINDOW > stamp).count();
        assert!(window <= LIMITS[0] as usize, "{window} permits until {stamp} of {number}");
    }

    /// Whether a key has no permits. This moves no key, as a look would.
    fn is_vacant(&self, number: u64) -> bool {
        let word_in = |arena: Arc<Arena>| match arena.find(key(number)) {
            Found::Cell(_, cell) => Some(cell.word.load()),
            _ => None,
        };
        let words = self.arenas().into_iter().rev().filter_map(word_in);
        let latest = words.into_iter().find(|&word| word != Word::NEW && word != Word::NEW.frozen());
        latest.is_none_or(|word| word.vacant_until().is_some())
    }

    fn ask(&mut self, number: u64, cost: u32, lag: u64) {
        let (reading, live) = (self.now.saturating_sub(lag), self.live(number, self.now));
        let no_place = self.is_vacant(number) && self.world.table.shared.places.free() == 0;
        let answer = self.world.ask(number, cost, &At(reading));
        assert_eq!(answer == Answer::Full, no_place && (lag > 0 || live == 0));
        match answer {
            Answer::Admitted { stamp } if lag == 0 => {
                assert_eq!(stamp, self.now);
                assert!(live + cost <= self.limit, "{live} live and {cost} more");
                self.granted(number, cost, stamp);
            }
            Answer::Admitted { .. } => {
                let stamp = self.newest(number);
                assert!(stamp >= reading && stamp <= self.now);
                self.granted(number, cost, stamp);
            }
            Answer::Denied { wait_ns } => {
                let permits = &self.permits[&number];
                let frees = permits[permits.len() + cost as usize - 1 - self.limit as usize];
                assert_eq!(reading + wait_ns, frees + WINDOW);
            }
            Answer::Full => {}
        }
    }

    /// The newest stamp of a key.
    fn newest(&self, number: u64) -> u64 {
        let over_at = |version: &Version, seen: Seen<'_>| Some(version.plan.over_at(seen.cell, seen.word));
        let over_at = self.world.with(&At(self.now)).look(key(number), over_at);
        over_at.expect("it has permits") - TIME_ZERO - WINDOW
    }

    /// The arenas of the shard, the root first.
    fn arenas(&self) -> Vec<Arc<Arena>> {
        let mut arenas = vec![self.world.shard().root.load().to_arc()];
        while let Next::Arena(next) = arenas.last().unwrap().next() {
            arenas.push(next);
        }
        arenas
    }

    /// One of the arenas that have a successor, and that.
    fn rebuilt(&self, which: Index) -> Option<(Arc<Arena>, Arc<Arena>)> {
        let arenas = self.arenas();
        let rebuilt = arenas.len().checked_sub(1).filter(|&count| count > 0)?;
        let at = which.index(rebuilt);
        Some((Arc::clone(&arenas[at]), Arc::clone(&arenas[at + 1])))
    }

    fn stop(&mut self, stop: &Stop) {
        let (world, clock) = (self.world, self.clock());
        let with = world.with(&clock);
        match *stop {
            Stop::Loaded => self.stopped.push(Stopped::Loaded(with.shard.root.load().to_arc())),
            Stop::Ended(which, number) => {
                let arenas = self.arenas();
                let (before, from) = arenas.split_at(which.index(arenas.len()));
                for arena in before {
                    // A thread comes to the next arena by a sealed cell, or with the key.
                    match arena.find(key(number)) {
                        Found::End(end) => assert!(arena.cell(end).seal()),
                        Found::Cell(..) => return,
                        Found::Closed => {}
                    }
                }
                let arena = Arc::clone(&from[0]);
                let Found::End(end) = arena.find(key(number)) else { return };
                if matches!(arena.next(), Next::None) {
                    self.stopped.push(Stopped::Ended { arena, end, number });
                }
            }
            Stop::Decided(number, freezes) => {
                let mut taken = self.is_vacant(number).then(|| world.table.shared.places.take()).flatten();
                if taken.is_none() && self.is_vacant(number) {
                    return;
                }
                if freezes && taken.is_some() {
                    self.ask(number, 1, 0);
                }
                let arenas = self.arenas();
                let rebuilt = if freezes { &arenas[..arenas.len() - 1] } else { &[] };
                for arena in rebuilt {
                    if let Found::Cell(_, cell) = arena.find(key(number)) {
                        let _ = with.freeze(arena, cell, key(number), self.earlier());
                    }
                }
                let Some((arena, index)) = with.cell_of(Arc::clone(&arenas[0]), key(number)) else { return };
                let old = arena.cell(index).word.load();
                let vacant_until = old.vacant_until();
                if vacant_until.is_some() && taken.is_none() {
                    return;
                }
                let seat = Seat {
                    arena: Guard::of(&with.shard.root, Arc::clone(&arena)),
                    index,
                    word: old,
                    vacant_until,
                    now: time_of(self.now),
                };
                let proposal = seat.propose(&seat.version(key(number)).plan, Request::acquire(1), None);
                let Proposal::Admit { word: new, mark, .. } = proposal else { return };
                if vacant_until.is_none() {
                    taken = None;
                }
                let stamp = u64::try_from(mark).unwrap() - TIME_ZERO;
                let decided = Stopped::Decided { number, arena, index, old, new, stamp, taken };
                if freezes { self.resume(decided) } else { self.stopped.push(decided) }
            }
            Stop::Linked => {
                let last = self.arenas().pop().unwrap();
                let _ = last.link(|| Arena::new(last.number + 1, Arc::clone(&last.plans), last.len(), 16));
            }
            Stop::Frozen(which, number) => {
                let Some((arena, successor)) = self.rebuilt(which) else { return };
                let Found::Cell(index, cell) = arena.find(key(number)) else { return };
                let _ = with.freeze(&arena, cell, key(number), self.earlier());
                self.stopped.push(Stopped::Frozen { arena, number, index, successor });
            }
            Stop::Began(which) => {
                let Some((arena, _)) = self.rebuilt(which) else { return };
                let _ = catch_unwind(AssertUnwindSafe(|| arena.sweep_page(|_| resume_unwind(Box::new(())))));
            }
            Stop::Swept(which) => {
                let Some((arena, successor)) = self.rebuilt(which) else { return };
                let _ = arena.sweep_page(|cell| {
                    if let (false, Some(key)) = (cell.seal(), cell.key()) {
                        with.move_cell(&arena, cell, key, &successor, self.earlier());
                    }
                });
            }
            Stop::Swapped => {
                let root = with.shard.root.load().to_arc();
                let Next::Arena(successor) = root.next() else { return };
                let swept = (0..=root.len()).any(|_| {
                    root.sweep_page(|cell| {
                        if let (false, Some(key)) = (cell.seal(), cell.key()) {
                            with.move_cell(&root, cell, key, &successor, self.earlier());
                        }
                    })
                });
                assert!(swept && with.shard.root.swap(&root, successor));
                self.stopped.push(Stopped::Swapped(root));
            }
        }
    }

    fn resume(&mut self, stopped: Stopped<'a>) {
        let (world, clock) = (self.world, self.clock());
        let with = world.with(&clock);
        match stopped {
            Stopped::Loaded(root) => {
                with.help(&root);
                if let Some((arena, index)) = with.cell_of(root, key(0)) {
                    assert!(!arena.cell(index).word.load().is_frozen());
                }
            }
            Stopped::Ended { arena, end, number } => {
                if arena.insert(end, key(number)) {
                    let mut behind = self.arenas().into_iter().skip_while(|other| other.number <= arena.number);
                    assert!(behind.all(|other| !matches!(other.find(key(number)), Found::Cell(..))), "two cells");
                }
            }
            Stopped::Decided { number, arena, index, old, new, stamp, taken } => {
                if arena.cell(index).word.swap(old, new) {
                    taken.into_iter().for_each(Taken::keep);
                    self.granted(number, 1, stamp);
                }
            }
            Stopped::Frozen { arena, number, index, successor } => {
                with.move_cell(&arena, arena.cell(index), key(number), &successor, self.earlier());
            }
            Stopped::Swapped(old) => old.unlink(),
        }
    }

    fn take(&mut self, step: &Step) {
        let clock = self.clock();
        match *step {
            Step::Wait(time) => self.now += time,
            Step::Ask { number, cost, lag } => self.ask(number, cost, lag),
            Step::Panic { number, reading } => {
                let clock = Fails { time: self.now, readings_left: Counter::new(reading) };
                let live = self.live(number, self.now);
                let answer = catch_unwind(AssertUnwindSafe(|| self.world.ask(number, 1, &clock)));
                // Whether it had its permit when the clock panicked, the key tells.
                let left = self.world.left(number, &self.clock()).unwrap_or(self.limit);
                let has_got = left < self.limit.saturating_sub(live);
                assert!(has_got == matches!(answer, Ok(Answer::Admitted { .. })) || answer.is_err());
                if has_got {
                    self.granted(number, 1, self.now);
                }
            }
            Step::Look(number) => {
                let left = self.world.left(number, &clock).unwrap_or(self.limit);
                assert_eq!(left, self.limit.saturating_sub(self.live(number, self.now)), "of {number}");
            }
            Step::Forget(number) => {
                let live = self.live(number, self.now);
                assert!(self.world.forget(number, &clock) || live == 0);
                assert!(self.is_vacant(number), "forgotten");
                self.permits.remove(&number);
                self.receipts.retain(|receipt| receipt.0 != number);
            }
            Step::Refund(_) if self.receipts.is_empty() => {}
            Step::Refund(which) => {
                let (number, stamp, cost) = self.receipts.swap_remove(which.index(self.receipts.len()));
                let refunded = self.world.refund(number, cost, stamp, &clock);
                assert_eq!(refunded, if stamp + WINDOW > self.now { cost } else { 0 });
                let permits = self.permits.get_mut(&number).unwrap();
                for _ in 0..refunded {
                    let index = permits.iter().position(|&other| other == stamp).unwrap();
                    permits.remove(index);
                }
            }
            Step::Collect(start) => {
                let with = self.world.with(&clock);
                let _ = with.collect(start..start + 8, with.now());
            }
            Step::Change(limit) => {
                self.limit = LIMITS[limit];
                self.world.change(&[log(self.limit, WINDOW)], &clock);
            }
            Step::Stop(ref stop) => self.stop(stop),
            Step::Resume(_) if self.stopped.is_empty() => {}
            Step::Resume(which) => {
                let stopped = self.stopped.swap_remove(which.index(self.stopped.len()));
                self.resume(stopped);
            }
        }
    }

    /// Each key with permits has one place, and so has each thread that stopped with one.
    fn check_places(&self) {
        let keys = (0..KEYS).filter(|&number| !self.is_vacant(number)).count();
        let held = self.stopped.iter().filter(|stopped| matches!(stopped, Stopped::Decided { taken: Some(_), .. }));
        assert_eq!(self.world.taken(), (keys + held.count()) as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_thread_that_stops_delays_nobody_and_grants_nothing(steps in prop::collection::vec(step(), 1..250)) {
        let world = World::new(&[log(LIMITS[0], WINDOW)], CAP, 0);
        let (permits, receipts, stopped) = (HashMap::new(), vec![], vec![]);
        let mut play = Play { world: &world, now: 0, limit: LIMITS[0], permits, receipts, stopped, readings: Counter::new(0) };
        for step in steps {
            play.take(&step);
            play.check_places();
        }
    }
}

/// A change to a smaller limit stops once its arena is linked. A new key's request fits the old limit
/// and not the new one: it gives the place back that it took.
#[test]
fn a_request_above_the_limit_of_a_change_under_way_keeps_no_place() {
    let world = World::new(&[log(5, WINDOW)], CAP, 4);
    let root = world.shard().root.load().to_arc();
    let fewer = root.plans.version(&[log(2, WINDOW)]);
    assert!(root.link(|| Arena::new(root.number + 1, Arc::new(root.plans.with(0, &fewer)), root.len(), 16)));
    assert_eq!(world.ask(1, 3, &At(0)), Answer::Denied { wait_ns: u64::MAX });
    assert_eq!(world.taken(), 0);
}
