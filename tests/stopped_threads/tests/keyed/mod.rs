//! Keys that come and go at the key cap, with costs, peeks, reservations, snapshots and changes.

use std::collections::BTreeMap;
use std::time::Duration;

use stopped_threads::chance::Chance;
use stopped_threads::run::{Stops, run};
use tollgate::{AtKeyCap, Clock, Decision, Limiter, Quota, ReserveError, Snapshot};

use crate::Ticks;
use tollgate_kit::checker::record::told;
use tollgate_kit::checker::{Event, Expiry, Limit, Run, Told};

/// Stops of a round.
const STOPS: u32 = 40;

/// What a round is about.
#[derive(Debug, Clone, Copy)]
struct Plan {
    limit: u32,
    window: u64,
    cap: u32,
    keys: u32,
    at_cap: AtKeyCap,
    /// One thread changes the limit now and then.
    changes: bool,
    /// Reservations are cancelled as often as not.
    cancels: bool,
}

impl Plan {
    fn new(chance: &mut Chance) -> Self {
        let limit = [1, 2, 3, 5, 8][chance.below(5) as usize];
        let window = [1, 4, 20, 100][chance.below(4) as usize];
        let cap = [1, 2, 3, 8][chance.below(4) as usize];
        let at_cap = [AtKeyCap::Deny, AtKeyCap::Deny, AtKeyCap::Admit][chance.below(3) as usize];
        let keys = cap + 1 + chance.below(cap + 1);
        Self { limit, window, cap, keys, at_cap, changes: chance.one_in(4), cancels: chance.one_in(4) }
    }

    fn quota(&self, limit: u32) -> Quota {
        Quota::new(limit, Duration::from_nanos(self.window))
    }

    /// Whether all that counts of a key is known from what was told.
    fn is_plain(&self) -> bool {
        self.at_cap == AtKeyCap::Deny && !self.changes && !self.cancels
    }
}

/// A snapshot, with the clock before and after it was taken.
struct Taken {
    before: u64,
    after: u64,
    snapshot: Snapshot,
}

/// What a thread was told.
#[derive(Default)]
struct Notes {
    number: usize,
    events: Vec<Event>,
    taken: Vec<Taken>,
}

pub(crate) fn round(seed: u64) -> Stops {
    let plan = Plan::new(&mut Chance::new(seed, usize::MAX / 2));
    let clock = Ticks::default();
    let builder = Limiter::<u32>::builder(plan.quota(plan.limit)).key_cap(plan.cap as usize).at_key_cap(plan.at_cap);
    let limiter = builder.clock(clock.clone()).build().expect("a good quota");
    let start = |number| Notes { number, ..Notes::default() };
    let (notes, stops) = run(seed, STOPS, start, |notes, chance| one(&limiter, &clock, plan, notes, chance));
    let (mut events, mut taken) = (Vec::new(), Vec::new());
    for notes in notes {
        events.extend(notes.events);
        taken.extend(notes.taken);
    }
    check(seed, plan, events, &taken);
    stops
}

/// One operation.
fn one(limiter: &Limiter<u32, Ticks>, clock: &Ticks, plan: Plan, notes: &mut Notes, chance: &mut Chance) {
    clock.pass(chance, plan.window);
    let (key, cost) = (chance.below(plan.keys), 1 + chance.below(plan.limit));
    let before = clock.now();
    let decision = match chance.below(32) {
        0 if plan.is_plain() => {
            let snapshot = limiter.snapshot();
            return notes.taken.push(Taken { before, after: clock.now(), snapshot });
        }
        1 if plan.changes && notes.number == 0 => {
            let limit = 1 + chance.below(plan.limit);
            return limiter.set_quotas(&[plan.quota(limit)]).expect("another limit");
        }
        2..8 => match limiter.peek_n(key, cost).map(|status| status.decision()) {
            // Nothing was granted.
            Ok(Decision::Admitted(_)) => return,
            told => told,
        },
        // A reservation does not say whether it is counted.
        8..16 if plan.at_cap != AtKeyCap::Admit => match limiter.reserve(key, cost, Duration::ZERO) {
            Ok(reservation) if plan.cancels && chance.one_in(2) => {
                reservation.cancel();
                return;
            }
            Ok(reservation) => {
                drop(reservation.commit());
                return note(notes, clock, key, cost, before, Told::Admitted);
            }
            Err(ReserveError::Denied(denial)) => Ok(Decision::Denied(denial)),
            Err(_) => return,
        },
        _ => limiter.try_acquire_n(key, cost),
    };
    // More than the limit, since that has changed.
    let Ok(decision) = decision else { return };
    if !matches!(decision, Decision::Admitted(admission) if !admission.is_counted()) {
        note(notes, clock, key, cost, before, told(decision));
    }
}

fn note(notes: &mut Notes, clock: &Ticks, key: u32, cost: u32, before: u64, told: Told) {
    notes.events.push(Event { key, cost, before, after: clock.now(), told });
}

fn check(seed: u64, plan: Plan, mut events: Vec<Event>, taken: &[Taken]) {
    if !plan.is_plain() {
        events.retain(|event| event.told == Told::Admitted);
    }
    let limits = vec![Limit { permits: plan.limit, window: plan.window }];
    let run = Run { limits, events, reading_error: 0, expiry: Expiry::EachOnItsOwn };
    run.check().unwrap_or_else(|fault| panic!("seed {seed}, {plan:?}: {fault:?}"));
    let mut granted: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for event in run.events.into_iter().filter(|event| event.told == Told::Admitted) {
        granted.entry(event.key).or_default().push(event);
    }
    for taken in taken {
        check_snapshot(seed, plan, &granted, taken);
    }
}

/// A snapshot holds what was live all the time while it was taken, and nothing that was not live at
/// any moment of that.
fn check_snapshot(seed: u64, plan: Plan, granted: &BTreeMap<u32, Vec<Event>>, taken: &Taken) {
    let Taken { before, after, snapshot } = taken;
    let builder = Limiter::<u32>::builder(plan.quota(plan.limit)).key_cap(1000).clock(Ticks::at(*after));
    let restored = builder.restore_after(snapshot, Duration::ZERO).unwrap_or_else(|error| {
        panic!("seed {seed}, {plan:?}, snapshot from {before} to {after}: {error}");
    });
    let mut may_be_there = 0;
    for key in 0..plan.keys {
        let of_key = granted.get(&key).map_or(&[][..], Vec::as_slice);
        let permits = |is_live: &dyn Fn(&Event) -> bool| -> u32 {
            of_key.iter().filter(|event| is_live(event)).map(|event| event.cost).sum()
        };
        // A call that ended at the very reading may have ended later.
        let least = permits(&|event| event.after < *before && event.before + plan.window > *after);
        let most = permits(&|event| event.before <= *after && event.after + plan.window > *before);
        may_be_there += usize::from(most > 0);
        let held = plan.limit - restored.peek(key).remaining();
        assert!(
            least <= held && held <= most,
            "seed {seed}, {plan:?}: the snapshot from {before} to {after} holds {held} permits of key {key}, not {least} to {most}"
        );
    }
    let held = snapshot.len();
    assert!(
        held <= may_be_there,
        "seed {seed}, {plan:?}: the snapshot from {before} to {after} holds {held} keys, not {may_be_there}"
    );
}
