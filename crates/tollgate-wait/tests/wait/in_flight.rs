//! Requests that wait until fewer are in flight, under paused time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_immediate;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use tollgate::{JointLimiter, Limiter, Quota, TokioClock};
use tollgate_wait::{TokioTimer, WaitError, WaitingLimiter};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn paused<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

fn waiting(limit: u32) -> WaitingLimiter<Limiter<u64, TokioClock>, TokioTimer> {
    let builder = Limiter::builder(Quota::concurrent(limit)).clock(TokioClock::new()).list_cap(9);
    WaitingLimiter::new(Arc::new(builder.build().unwrap())).timer(TokioTimer)
}

#[test]
fn six_requests_of_a_second_two_at_a_time_take_three_seconds_in_order() {
    paused(async {
        let (limiter, start, within) = (waiting(2), Instant::now(), Rc::new(Cell::new(0)));
        let request = async || {
            let in_flight = limiter.enter(7).within(MINUTE).await.unwrap();
            within.set(within.get() + 1);
            assert!(within.get() <= 2);
            let began = start.elapsed();
            sleep(SECOND).await;
            within.set(within.get() - 1);
            drop(in_flight);
            began
        };
        let began: [Duration; 6] =
            tokio::join!(request(), request(), request(), request(), request(), request()).into();
        assert_eq!(began.iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
        assert!(began.is_sorted());
        assert_eq!(limiter.limiter().peek(7).remaining(), 2);
        assert_eq!(limiter.counts().waiters, 0);
    });
}

#[test]
fn a_request_that_does_not_enter_in_time_fails_and_is_charged_nothing() {
    paused(async {
        let (limiter, start) = (waiting(1), Instant::now());
        let held = limiter.limiter().try_enter(7).unwrap();
        assert!(matches!(limiter.enter(7).within(SECOND).await, Err(WaitError::TooLong { .. })));
        assert_eq!(start.elapsed().as_millis(), 1000);
        // One that is dropped leaves the line.
        assert!(poll_immediate(limiter.enter(7).within(MINUTE)).await.is_none());
        assert_eq!(limiter.waiters(7), 0);
        drop(held);
        assert!(limiter.enter(7).within(Duration::ZERO).await.is_ok());
    });
}

/// A request of `acquire` is over at once, and waits all the same until it may be in flight.
#[test]
fn a_plain_request_waits_in_the_same_line() {
    paused(async {
        let (limiter, start) = (waiting(1), Instant::now());
        let held = limiter.enter(7).within(MINUTE).await.unwrap();
        let holds = async {
            sleep(3 * SECOND).await;
            drop(held);
        };
        let (admission, ()) = tokio::join!(limiter.acquire(7).within(MINUTE), holds);
        assert!(admission.is_ok() && start.elapsed().as_secs() == 3);
    });
}

#[test]
fn a_key_that_is_put_on_the_deny_list_meanwhile_is_denied() {
    paused(async {
        let limiter = waiting(1);
        let _held = limiter.enter(7).within(MINUTE).await.unwrap();
        let denies = async {
            sleep(3 * SECOND).await;
            limiter.limiter().deny(7).unwrap();
        };
        let (entered, ()) = tokio::join!(limiter.enter(7).within(MINUTE), denies);
        assert!(matches!(entered, Err(WaitError::Denied(_))));
    });
}

#[test]
fn a_request_that_waits_is_never_denied() {
    paused(async {
        let builder = Limiter::<u64>::builder(Quota::concurrent(1)).clock(TokioClock::new()).count_decisions(true);
        let limiter = WaitingLimiter::new(Arc::new(builder.build().unwrap())).timer(TokioTimer);
        let held = limiter.enter(7).within(MINUTE).await.unwrap();
        let holds = async {
            sleep(SECOND).await;
            drop(held);
        };
        let (entered, ()) = tokio::join!(limiter.enter(7).within(MINUTE), holds);
        let decisions = limiter.limiter().counts().decisions.unwrap();
        assert!(entered.is_ok());
        assert_eq!((decisions.admitted, decisions.denied), (2, 0));
    });
}

/// The rate is waited for by its own time, and the requests in flight by looks.
#[test]
fn a_joint_request_waits_for_both() {
    paused(async {
        let joint = JointLimiter::<(u64, u64)>::builder()
            .dimension("rate", [Quota::token_bucket(1, 1, 10 * SECOND)])
            .dimension("in flight", [Quota::concurrent(1)])
            .clock(TokioClock::new())
            .build()
            .unwrap();
        let (limiter, start) = (WaitingLimiter::new(Arc::new(joint)).timer(TokioTimer), Instant::now());
        let held = limiter.enter((1, 1)).within(MINUTE).await.unwrap();
        let holds = async {
            sleep(14 * SECOND).await;
            drop(held);
        };
        let second = async {
            let entered = limiter.enter((1, 1)).within(MINUTE).await.unwrap();
            assert_eq!(start.elapsed().as_secs(), 14);
            drop(entered);
        };
        let ((), ()) = tokio::join!(second, holds);
        drop(limiter.enter((1, 1)).within(MINUTE).await.unwrap());
        assert_eq!(start.elapsed().as_secs(), 24);
    });
}
