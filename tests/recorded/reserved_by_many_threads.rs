//! Many threads take permits and give them back: there are never more out than the limit, and in
//! the end all of them are there again.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{JointLimiter, Limiter, Quota};

const HOUR: Duration = Duration::from_secs(3600);
const LIMIT: u32 = 7;
const KEYS: u64 = 3;
const THREADS: u64 = 4;

/// What is out, by key.
#[derive(Default)]
struct Out([AtomicI64; 3]);

impl Out {
    fn of(&self, key: u64) -> &AtomicI64 {
        &self.0[usize::try_from(key).expect("a small number")]
    }

    /// Counted once they are granted, and no longer counted before they are given back: so never
    /// more than are out.
    fn taken(&self, key: u64, cost: u32) {
        let out = self.of(key).fetch_add(cost.into(), Ordering::SeqCst) + i64::from(cost);
        assert!(out <= LIMIT.into(), "{out} permits of key {key} are out");
    }

    fn note_refund(&self, key: u64, cost: u32) {
        self.of(key).fetch_sub(cost.into(), Ordering::SeqCst);
    }
}

/// Numbers that look like chance (xorshift).
fn chance(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Gives how often permits were granted, and how often all of them came back that could.
fn reserve_and_refund(limiter: &Limiter<u64>, rounds: u64) -> (u64, u64) {
    let (out, granted, refunded) = (Out::default(), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let (out, granted, refunded) = (&out, &granted, &refunded);
            scope.spawn(move || {
                let (mut state, mut held) = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15), Vec::new());
                for _ in 0..rounds {
                    let (key, cost) =
                        (chance(&mut state) % KEYS, u32::try_from(1 + chance(&mut state) % 3).expect("a small number"));
                    if let Ok(reservation) = limiter.reserve(key, cost, Duration::ZERO) {
                        out.taken(key, cost);
                        granted.fetch_add(1, Ordering::Relaxed);
                        held.push((key, cost, reservation.commit()));
                    }
                    if chance(&mut state) % 2 == 0 && !held.is_empty() {
                        let any = chance(&mut state) % u64::try_from(held.len()).expect("few");
                        let (key, cost, receipt) = held.swap_remove(usize::try_from(any).expect("few"));
                        out.note_refund(key, cost);
                        let back = limiter.refund(receipt).expect("of this limiter");
                        refunded.fetch_add(u64::from(back == cost), Ordering::Relaxed);
                    }
                }
                for (key, cost, receipt) in held {
                    out.note_refund(key, cost);
                    let back = limiter.refund(receipt).expect("of this limiter");
                    refunded.fetch_add(u64::from(back == cost), Ordering::Relaxed);
                }
            });
        }
    });
    (granted.into_inner(), refunded.into_inner())
}

#[test]
fn a_log_grants_all_refunded_permits_again() {
    let limiter = Limiter::new(Quota::new(LIMIT, HOUR)).expect("a usable quota");
    let (granted, refunded) = reserve_and_refund(&limiter, 20_000);
    assert!(granted > 1000, "{granted}");
    assert_eq!(granted, refunded);
    assert!((0..KEYS).all(|key| limiter.peek(key).remaining() == LIMIT));
}

#[test]
fn an_account_grants_no_more_than_it_has() {
    for quota in [Quota::token_bucket(LIMIT, 1, 100 * HOUR), Quota::fixed_window(LIMIT, HOUR)] {
        let limiter = Limiter::new(quota).expect("a usable quota");
        let (granted, refunded) = reserve_and_refund(&limiter, 20_000);
        // What opens an account while another gives something back may not come back.
        assert!(granted > 1000 && refunded <= granted, "{granted}, {refunded}");
        println!("{quota}: {granted} granted, {refunded} refunded");
    }
}

#[test]
fn quotas_that_change_meanwhile_let_no_more_out_than_the_largest() {
    let limiter = Limiter::<u64>::builder(Quota::new(LIMIT, HOUR)).keys_with_quotas(2).build().expect("a usable quota");
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                limiter.set_quotas(&[Quota::new(1 + round % LIMIT, HOUR)]).expect("a usable quota");
                limiter.set_quotas_of(1, &[Quota::new(1 + (round + 3) % LIMIT, HOUR)]).expect("a usable quota");
            }
        });
        let (granted, refunded) = reserve_and_refund(&limiter, 10_000);
        assert_eq!(granted, refunded);
    });
    assert!((0..KEYS).all(|key| limiter.peek(key).reset_after() == Duration::ZERO), "all of it came back");
}

#[test]
fn several_dimensions_grant_all_refunded_permits_again() {
    let dimension = || [Quota::new(LIMIT, HOUR)];
    let limiter =
        JointLimiter::<(u64, u64)>::builder().dimension("one", dimension()).dimension("other", dimension()).build();
    let limiter = limiter.expect("usable quotas");
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let limiter = &limiter;
            scope.spawn(move || {
                let mut state = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for _ in 0..5000 {
                    let (one, other) = (chance(&mut state) % KEYS, chance(&mut state) % KEYS);
                    if let Ok(reservation) = limiter.reserve((&one, &other), 2) {
                        assert_eq!(reservation.cancel(), 2);
                    }
                }
            });
        }
    });
    for key in 0..KEYS {
        assert!(limiter.peek_n((&key, &key), LIMIT).expect("two keys").is_admitted());
    }
}

/// What a cost turns out to be, and as what it was charged: nothing is lost between threads, neither
/// what is given back nor what is more.
#[test]
fn what_is_settled_is_charged_in_all_dimensions() {
    const MANY: u32 = 60_000;
    let quotas =
        [Quota::new(MANY, HOUR), Quota::quantised_log(MANY, HOUR, HOUR / 8), Quota::token_bucket(MANY, 1, HOUR)];
    for quota in quotas {
        let builder = JointLimiter::<(u64, u64)>::builder().dimension("one", [quota]).dimension("other", [quota]);
        let (limiter, single) =
            (builder.build().expect("usable quotas"), Limiter::<u64>::new(quota).expect("a usable quota"));
        let used = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 1..=THREADS {
                let (limiter, single, used) = (&limiter, &single, &used);
                scope.spawn(move || {
                    let mut state = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    for _ in 0..1000 {
                        let [estimate, actual] =
                            [(); 2].map(|()| u32::try_from(chance(&mut state) % 6).expect("a small number"));
                        let joint = limiter.reserve((&1, &2), estimate).expect("there are permits");
                        let alone = single.reserve(1, estimate, Duration::ZERO).expect("there are permits");
                        assert_eq!((joint.settle(actual), alone.settle(actual)), (actual, actual));
                        used.fetch_add(actual.into(), Ordering::Relaxed);
                    }
                });
            }
        });
        let left = u32::try_from(u64::from(MANY) - used.into_inner()).expect("fewer");
        let status = limiter.peek((&1, &2)).expect("two keys");
        assert!(status.quotas().all(|quota| quota.remaining() == left), "{quota}: {left}");
        assert_eq!(single.peek(1).remaining(), left, "{quota}");
    }
}
