//! Requests whose futures are dropped midway, as a server drops those of clients that hang up. An
//! attempt that is charged first and refunded on success is used by then.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{JointLimiter, Limiter, MonotonicClock, Quota, Receipt, ReserveError};
use tollgate_kit::facade::{Facade, each};

const LIMIT: u32 = 5;
const QUOTA: Quota = Quota::per_hour(LIMIT);

/// How often a password was checked, and the check: of a slow one it never ends.
#[derive(Default)]
struct Passwords {
    checks: Cell<u32>,
}

impl Passwords {
    async fn are_right(&self, password: &str) -> bool {
        self.checks.set(self.checks.get() + 1);
        if password == "slow" {
            std::future::pending::<()>().await;
        }
        password == "secret"
    }
}

/// The pattern of the guide: charge first, refund on success.
async fn log_in(
    passwords: &Passwords,
    password: &str,
    charge: impl FnOnce() -> Result<Receipt, ReserveError>,
    refund: impl FnOnce(Receipt) -> u32,
) -> Option<bool> {
    let attempt = charge().ok()?;
    let is_right = passwords.are_right(password).await;
    if is_right {
        assert_eq!(refund(attempt), 1);
    }
    Some(is_right)
}

/// Polls once and drops.
fn hang_up<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Plays thirty clients that hang up during the check, at a limit of five. Before that, twenty log
/// in rightly.
fn play(charge: impl Fn() -> Result<Receipt, ReserveError>, refund: impl Fn(Receipt) -> u32) {
    let passwords = Passwords::default();
    let log_in = |password: &'static str| log_in(&passwords, password, &charge, &refund);
    for _ in 0..20 {
        assert_eq!(hang_up(log_in("secret")), Some(Some(true)));
    }
    passwords.checks.set(0);
    let ended = (0..30).filter_map(|_| hang_up(log_in("slow"))).collect::<Vec<_>>();
    assert_eq!(passwords.checks.get(), LIMIT, "checks were started");
    assert_eq!(ended, [None; 25], "the others are denied");
    assert_eq!(hang_up(log_in("secret")), Some(None), "denied for an hour");
}

#[test]
fn thirty_that_hang_up_start_five_checks() {
    let two = JointLimiter::<[u32]>::builder().dimension("user", [QUOTA]).dimension("address", [Quota::per_hour(100)]);
    let two: Box<dyn Facade> = Box::new(two.build().unwrap());
    for (limiter, keys) in each(&[QUOTA], MonotonicClock::new).into_iter().map(|it| (it, 1)).chain([(two, 2)]) {
        let charge = || Ok(limiter.reserve(&[Some(7); 2][..keys], 1)?.1);
        play(charge, |receipt| limiter.refund(receipt));
    }
}

#[test]
fn thirty_that_hang_up_start_five_checks_by_an_arc() {
    let limiter = Arc::new(Limiter::<str>::new(QUOTA).unwrap());
    let charge = || Ok(limiter.reserve_owned("alice", 1, Duration::ZERO)?.commit());
    play(charge, |receipt| limiter.refund(receipt).unwrap());
}

/// The warning of the guide: a reservation that is held during the check is given back.
#[test]
fn a_reservation_that_is_held_is_free_for_those_who_hang_up() {
    let (limiter, passwords) = (Limiter::<str>::new(QUOTA).unwrap(), Passwords::default());
    for _ in 0..30 {
        let held = async {
            let reserved = limiter.reserve("alice", 1, Duration::ZERO).expect("the last was given back");
            let is_right = passwords.are_right("slow").await;
            (!is_right).then(|| reserved.commit())
        };
        assert!(hang_up(held).is_none());
    }
    assert_eq!((passwords.checks.get(), limiter.peek("alice").remaining()), (30, LIMIT));
}
