//! Rates and requests in flight, decided together, and the same by lists. A request has a place in
//! both or in neither. It is in flight until its guard is dropped, its reservation ends, or its key is
//! forgotten.

use core::time::Duration;

use proptest::prelude::*;
use tollgate::{DenialReason, InFlight, JointLimiter, MockClock, Quota, Reservation, ReserveError};

const WINDOW: u64 = 10;
const RATE: u32 = 6;

#[derive(Debug, Clone, Copy)]
enum Step {
    Enter(u8),
    Acquire(u8, u32),
    Reserve(u8, u32),
    /// What becomes of a guard or a reservation.
    End(usize, End),
    Forget(u8),
    Limit(u32),
    Tick(u64),
}

#[derive(Debug, Clone, Copy)]
enum End {
    Drop,
    Commit,
    Settle(u32),
    Enter,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..2_u8;
    let end = prop_oneof![
        3 => Just(End::Drop),
        1 => Just(End::Commit),
        1 => (0..4_u32).prop_map(End::Settle),
        1 => Just(End::Enter),
    ];
    prop_oneof![
        5 => key().prop_map(Step::Enter),
        2 => (key(), 0..4_u32).prop_map(|(key, cost)| Step::Acquire(key, cost)),
        3 => (key(), 0..4_u32).prop_map(|(key, cost)| Step::Reserve(key, cost)),
        6 => (0..8_usize, end).prop_map(|(at, end)| Step::End(at, end)),
        1 => key().prop_map(Step::Forget),
        1 => (1..4_u32).prop_map(Step::Limit),
        2 => (0..WINDOW).prop_map(Step::Tick),
    ]
}

type Limiter = JointLimiter<(u8, u8), MockClock>;

enum Guard<'a> {
    InFlight(InFlight<&'a Limiter>),
    Reserved(Box<Reservation<&'a Limiter>>),
}

/// A request in flight.
struct Held<'a> {
    guard: Guard<'a>,
    key: u8,
    /// The stamps of a reservation, and whether they were forgotten.
    stamp: u64,
    cost: u32,
    life: u32,
}

#[derive(Default)]
struct Naive {
    /// The stamps of each key's permits.
    stamps: [Vec<u64>; 2],
    in_flight: [u32; 2],
    /// How often each key was forgotten.
    life: [u32; 2],
    limit: u32,
    now: u64,
}

impl Naive {
    fn live(&self, key: u8) -> u32 {
        let live = self.stamps[usize::from(key)].iter().filter(|&&stamp| stamp + WINDOW > self.now);
        u32::try_from(live.count()).unwrap()
    }

    fn fits(&self, key: u8, cost: u32) -> (bool, bool) {
        let in_flight = self.in_flight[usize::from(key)];
        (self.live(key) + cost <= RATE, in_flight < self.limit)
    }

    fn charge(&mut self, key: u8, cost: u32) {
        let now = self.now;
        self.stamps[usize::from(key)].extend((0..cost).map(|_| now));
    }

    fn refund(&mut self, key: u8, stamp: u64, count: u32) {
        let stamps = &mut self.stamps[usize::from(key)];
        for _ in 0..count {
            // Those that have expired are no matter.
            if let Some(at) = stamps.iter().position(|&other| other == stamp) {
                stamps.remove(at);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_request_has_a_place_in_both_or_in_neither(steps in proptest::collection::vec(step(), 1..80)) {
        let clock = MockClock::new();
        let limiter: Limiter = JointLimiter::builder()
            .dimension("rate", [Quota::new(RATE, Duration::from_secs(WINDOW))])
            .dimension("in flight", [Quota::concurrent(2)])
            .clock(clock.clone())
            .build()
            .unwrap();
        let mut naive = Naive { limit: 2, ..Naive::default() };
        let mut held: Vec<Held<'_>> = Vec::new();
        for step in steps {
            match step {
                Step::Enter(key) => {
                    let entered = limiter.try_enter((key, key));
                    let (has_rate, has_place) = naive.fits(key, 1);
                    prop_assert_eq!(entered.is_ok(), has_rate && has_place);
                    match entered {
                        Ok(guard) => {
                            naive.charge(key, 1);
                            naive.in_flight[usize::from(key)] += 1;
                            let (stamp, life) = (naive.now, naive.life[usize::from(key)]);
                            held.push(Held { guard: Guard::InFlight(guard), key, stamp, cost: 1, life });
                        }
                        Err(error) => {
                            let denial = error.denial().unwrap();
                            // Of both, the one with a known wait is told.
                            let reason = if has_rate { DenialReason::InFlight } else { DenialReason::Quota };
                            prop_assert_eq!(denial.reason(), reason);
                            prop_assert_eq!(denial.retry_after_secs().is_none(), has_rate);
                            prop_assert_eq!(denial.violated().count(), usize::from(!has_rate) + usize::from(!has_place));
                        }
                    }
                }
                Step::Acquire(key, cost) => {
                    let (has_rate, has_place) = naive.fits(key, cost);
                    let is_admitted = limiter.try_acquire_n((key, key), cost).unwrap().is_admitted();
                    prop_assert_eq!(is_admitted, cost == 0 || has_rate && has_place);
                    if is_admitted {
                        naive.charge(key, cost);
                    }
                }
                Step::Reserve(key, cost) => {
                    let (has_rate, has_place) = naive.fits(key, cost);
                    match limiter.reserve((key, key), cost) {
                        Ok(guard) => {
                            prop_assert!(cost == 0 || has_rate && has_place);
                            naive.charge(key, cost);
                            // A request of no permits is none.
                            if cost > 0 {
                                naive.in_flight[usize::from(key)] += 1;
                                let (stamp, life) = (naive.now, naive.life[usize::from(key)]);
                                held.push(Held { guard: Guard::Reserved(Box::new(guard)), key, stamp, cost, life });
                            }
                        }
                        Err(error) => {
                            prop_assert!(matches!(error, ReserveError::Denied(_)));
                            prop_assert!(cost > 0 && !(has_rate && has_place));
                        }
                    }
                }
                Step::End(at, end) if at < held.len() => {
                    let Held { guard, key, stamp, cost, life } = held.swap_remove(at);
                    let of_life = naive.life[usize::from(key)] == life;
                    let mut goes_on = false;
                    match (guard, end) {
                        (Guard::InFlight(guard), _) => drop(guard),
                        (Guard::Reserved(reserved), End::Drop) => {
                            drop(reserved);
                            if of_life {
                                naive.refund(key, stamp, cost);
                            }
                        }
                        (Guard::Reserved(reserved), End::Commit) => drop(reserved.commit()),
                        (Guard::Reserved(reserved), End::Settle(actual)) => {
                            reserved.settle(actual);
                            if actual > cost {
                                naive.charge(key, actual - cost);
                            } else if of_life {
                                naive.refund(key, stamp, cost - actual);
                            }
                        }
                        (Guard::Reserved(reserved), End::Enter) => {
                            let (guard, _) = reserved.enter();
                            held.push(Held { guard: Guard::InFlight(guard), key, stamp, cost, life });
                            goes_on = true;
                        }
                    }
                    if of_life && !goes_on {
                        naive.in_flight[usize::from(key)] -= 1;
                    }
                }
                Step::End(..) => {}
                Step::Forget(key) => {
                    limiter.forget((key, key)).unwrap();
                    naive.stamps[usize::from(key)].clear();
                    naive.in_flight[usize::from(key)] = 0;
                    naive.life[usize::from(key)] += 1;
                }
                Step::Limit(limit) => {
                    limiter.set_quotas(1, &[Quota::concurrent(limit)]).unwrap();
                    naive.limit = limit;
                }
                Step::Tick(time) => {
                    clock.advance(Duration::from_secs(time));
                    naive.now += time;
                }
            }
            for key in 0..2 {
                let status = limiter.peek((key, key)).unwrap();
                let left: Vec<_> = status.quotas().map(|quota| quota.remaining()).collect();
                let in_flight = naive.in_flight[usize::from(key)];
                prop_assert_eq!(left, [RATE.saturating_sub(naive.live(key)), naive.limit.saturating_sub(in_flight)]);
            }
        }
        drop(held);
        for key in 0..2 {
            let left = limiter.peek((key, key)).unwrap().quotas().nth(1).unwrap().remaining();
            prop_assert_eq!(left, naive.limit, "all are over");
        }
    }
}
