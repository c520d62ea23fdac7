//! Permits that are taken and given back, while the quotas change.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use stopped_threads::chance::Chance;
use stopped_threads::run::{Stops, run};
use tollgate::{Limiter, Quota, Receipt};

use crate::Ticks;

const STOPS: u32 = 40;
const KEYS: usize = 3;
const MOST: u32 = 7;

/// Nothing leaves it.
const WINDOW: Duration = Duration::from_secs(3600);

fn quota(kind: u32, limit: u32) -> Quota {
    match kind {
        0 => Quota::new(limit, WINDOW),
        1 => Quota::quantised_log(limit, WINDOW, WINDOW / 4),
        2 => Quota::token_bucket(limit, 1, 1000 * WINDOW),
        _ => Quota::fixed_window(limit, WINDOW),
    }
}

pub(crate) fn round(seed: u64) -> Stops {
    let mut chance = Chance::new(seed, usize::MAX / 2);
    let (kind, changes) = (chance.below(4), chance.one_in(2));
    // A bucket that becomes smaller lacks all of it at most, so a change may forget permits that
    // are out.
    let remembers = kind != 2 || !changes;
    let clock = Ticks::default();
    let builder = Limiter::<usize>::builder(quota(kind, MOST)).keys_with_quotas(2).clock(clock.clone());
    let limiter = builder.build().expect("a good quota");
    // What is out, by key: counted once it is granted, and no longer before it is given back, so
    // never more than is out.
    let out = [const { AtomicI64::new(0) }; KEYS];
    let (held, stops) = run(
        seed,
        STOPS,
        |number| (number, Vec::<(usize, u32, Receipt)>::new()),
        |(number, held), chance| {
            clock.pass(chance, 0);
            if changes && *number == 0 && chance.one_in(16) {
                let quota = quota(kind, 1 + chance.below(MOST));
                match chance.below(3) {
                    0 => limiter.set_quotas_of(1, &[quota]).expect("another limit"),
                    _ => limiter.set_quotas(&[quota]).expect("another limit"),
                }
                return;
            }
            let (key, cost) = (chance.below(u32::try_from(KEYS).expect("a few")) as usize, 1 + chance.below(3));
            if let Ok(reservation) = limiter.reserve(key, cost, Duration::ZERO) {
                let now = out[key].fetch_add(cost.into(), Ordering::SeqCst) + i64::from(cost);
                let fits = !remembers || now <= MOST.into();
                assert!(fits, "seed {seed}, {}: {now} permits of key {key} are out", quota(kind, MOST));
                held.push((key, cost, reservation.commit()));
            }
            if chance.one_in(2) && !held.is_empty() {
                let (key, cost, receipt) =
                    held.swap_remove(chance.below(u32::try_from(held.len()).expect("few")) as usize);
                out[key].fetch_sub(cost.into(), Ordering::SeqCst);
                let back = limiter.refund(receipt).expect("of this limiter");
                assert!(back <= cost, "seed {seed}: {back} of {cost} permits came back");
            }
        },
    );
    for (key, _, receipt) in held.into_iter().flat_map(|(_, held)| held) {
        limiter.refund(receipt).expect("of this limiter");
        assert!(limiter.peek(key).remaining() <= MOST);
    }
    stops
}
