//! Tasks that wait under paused time: their order, their times, and the permits that are charged.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tollgate::{DirectLimiter, JointLimiter, Limiter, Quota, TokioClock};
use tollgate_wait::{Lines, TokioTimer, WaitError, WaitingLimiter};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

type Waiting = Arc<WaitingLimiter<Limiter<u64, TokioClock>, TokioTimer>>;

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn waiting(quota: Quota) -> Waiting {
    let limiter = Limiter::builder(quota).clock(TokioClock::new()).count_decisions(true).list_cap(9).build().unwrap();
    Arc::new(WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer))
}

/// How many requests the limiter has admitted, and denied.
fn decisions(limiter: &Waiting) -> (u64, u64) {
    let decisions = limiter.limiter().counts().decisions.unwrap();
    (decisions.admitted, decisions.denied)
}

/// The numbers and times of the tasks that were served, in the order in which they were.
type Served = Arc<Mutex<Vec<(usize, Duration)>>>;

/// Starts so many tasks that wait for one key, in order.
fn start(limiter: &Waiting, tasks: usize, within: Duration) -> (JoinSet<Result<(), WaitError>>, Served) {
    let (served, start) = (Served::default(), Instant::now());
    let mut all = JoinSet::new();
    for number in 0..tasks {
        let (limiter, served) = (Arc::clone(limiter), Arc::clone(&served));
        all.spawn(async move {
            limiter.acquire(7).within(within).await?;
            served.lock().unwrap().push((number, start.elapsed()));
            Ok(())
        });
    }
    (all, served)
}

fn in_order(served: &Served) -> bool {
    served.lock().unwrap().is_sorted_by_key(|(number, _)| *number)
}

#[test]
fn a_hundred_tasks_at_ten_a_second_are_served_in_ten_seconds_in_order() {
    let queue = Quota::leaky_queue(10, SECOND, MINUTE);
    let most = 10 * SECOND;
    for (quota, most) in [
        (Quota::per_second(10), most),
        (Quota::token_bucket(10, 10, SECOND), most),
        (Quota::leaky_bucket(10, 10, SECOND), most),
        (queue, most),
        (Quota::fixed_window(10, SECOND), most),
        // It counts permits of the last window for up to the whole of the next.
        (Quota::sliding_counter(10, SECOND), 2 * most),
    ] {
        paused().block_on(async {
            let limiter = waiting(quota);
            let (all, served) = start(&limiter, 100, MINUTE);
            assert!(all.join_all().await.iter().all(Result::is_ok), "{quota:?}");
            assert!(in_order(&served), "{quota:?}");
            let last = served.lock().unwrap().last().unwrap().1;
            assert!((9 * SECOND..=most).contains(&last), "{quota:?}: {last:?}");
            assert_eq!(decisions(&limiter), (100, 0), "{quota:?}");
            assert_eq!(limiter.waiters(&7), 0);
        });
    }
}

#[test]
fn ten_thousand_tasks_are_served_in_order() {
    paused().block_on(async {
        let limiter = waiting(Quota::per_second(100));
        let (all, served) = start(&limiter, 10_000, 100 * SECOND);
        assert!(all.join_all().await.iter().all(Result::is_ok));
        assert!(in_order(&served));
        let served = served.lock().unwrap();
        assert!(served.windows(101).all(|run| run[100].1 - run[0].1 >= SECOND), "a window holds a hundred");
        assert_eq!(served.last().unwrap().1.as_secs(), 99);
    });
}

#[test]
fn those_who_cannot_be_served_in_time_fail_at_once_and_are_charged_nothing() {
    let within = Duration::from_millis(5550);
    for (quota, in_time) in [
        (Quota::per_second(10), 60),
        (Quota::fixed_window(10, SECOND), 60),
        (Quota::token_bucket(10, 10, SECOND), 65),
        (Quota::leaky_bucket(10, 10, SECOND), 65),
    ] {
        paused().block_on(async {
            let limiter = waiting(quota);
            let begin = Instant::now();
            let (mut all, served) = start(&limiter, 100, within);
            let mut failed = 0;
            while let Some(result) = all.join_next().await {
                if let Err(error) = result.unwrap() {
                    assert!(matches!(error, WaitError::TooLong { wait } if wait > within), "{error:?}");
                    assert!(begin.elapsed() < SECOND, "{quota:?}: {:?}", begin.elapsed());
                    failed += 1;
                }
            }
            let served = served.lock().unwrap().len();
            assert_eq!((served, failed), (in_time, 100 - in_time), "{quota:?}");
            assert_eq!(decisions(&limiter), (served as u64, 0));
        });
    }
}

#[test]
fn the_time_in_the_line_is_bounded_too() {
    paused().block_on(async {
        // A sliding counter tells no time for those behind the first that waits.
        let limiter = waiting(Quota::sliding_counter(1, MINUTE));
        let (all, served) = start(&limiter, 3, 60 * MINUTE);
        sleep(Duration::from_millis(1)).await;
        let begin = Instant::now();
        assert_eq!(limiter.acquire(7).within(150 * SECOND).await, Err(WaitError::Elapsed));
        assert_eq!(begin.elapsed().as_secs(), 150);
        assert!(all.join_all().await.iter().all(Result::is_ok));
        assert!(in_order(&served));
        assert_eq!((decisions(&limiter), limiter.waiters(&7)), ((3, 0), 0));
    });
}

#[test]
fn a_request_that_does_not_wait_may_take_a_permit_and_the_first_goes_on_waiting() {
    paused().block_on(async {
        let limiter = waiting(Quota::new(1, SECOND));
        assert!(limiter.acquire(7).within(Duration::ZERO).await.is_ok());
        let (all, served) = start(&limiter, 2, MINUTE);
        sleep(SECOND - Duration::from_millis(1)).await;
        // The clocks of the limiter and of the tasks are one, and the tasks are woken in any order.
        for _ in 0..50 {
            let _ = limiter.limiter().try_acquire(7);
            sleep(Duration::from_micros(500)).await;
        }
        assert!(all.join_all().await.iter().all(Result::is_ok));
        assert!(in_order(&served));
    });
}

#[test]
fn no_wait_helps_a_key_on_the_deny_list_or_a_cost_above_the_limit() {
    paused().block_on(async {
        let limiter = waiting(Quota::new(2, SECOND));
        limiter.limiter().deny(7).unwrap();
        let denied = limiter.acquire(7).within(MINUTE).await;
        assert!(matches!(denied, Err(WaitError::Denied(_))), "{denied:?}");
        let costly = limiter.acquire(8).cost(3).within(MINUTE).await;
        assert!(matches!(costly, Err(WaitError::Cost(_))), "{costly:?}");
        limiter.limiter().allow(9).unwrap();
        for _ in 0..10 {
            assert!(limiter.acquire(9).within(Duration::ZERO).await.is_ok());
        }
    });
}

#[test]
fn those_that_left_the_line_are_not_waited_for() {
    paused().block_on(async {
        let limiter = waiting(Quota::new(1, SECOND));
        let (mut gone, _) = start(&limiter, 100, 200 * SECOND);
        let (all, served) = start(&limiter, 1, 200 * SECOND);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(limiter.waiters(&7), 100, "the first did not wait");
        gone.shutdown().await;
        assert_eq!(limiter.waiters(&7), 1);
        assert!(limiter.acquire(7).within(3 * SECOND).await.is_ok());
        assert!(all.join_all().await.iter().all(Result::is_ok));
        assert_eq!((served.lock().unwrap().len(), decisions(&limiter)), (1, (3, 0)));
    });
}

#[test]
fn a_line_takes_as_many_as_allowed() {
    paused().block_on(async {
        let limiter = Limiter::builder(Quota::new(1, SECOND)).clock(TokioClock::new()).build().unwrap();
        let limiter = Arc::new(WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer).max_waiters(3));
        let (all, served) = start(&limiter, 5, MINUTE);
        let results = all.join_all().await;
        let many = Err(WaitError::TooManyWaiters { most: 3 });
        // The first does not wait, and three do.
        assert_eq!(results.iter().filter(|result| **result == many).count(), 1);
        assert_eq!(served.lock().unwrap().len(), 4);
        assert!(limiter.acquire(7).within(MINUTE).await.is_ok(), "the line is empty again");
    });
}

#[test]
fn lines_take_as_many_as_allowed_for_all_keys() {
    paused().block_on(async {
        let limiter = Limiter::<u64, _>::builder(Quota::new(1, SECOND)).clock(TokioClock::new()).build().unwrap();
        let (limiter, lines) = (Arc::new(limiter), Arc::new(Lines::new(9, 2)));
        let mut all = JoinSet::new();
        for key in [1, 2, 3] {
            assert!(limiter.try_acquire(key).is_admitted());
            let (limiter, lines) = (Arc::clone(&limiter), Arc::clone(&lines));
            all.spawn(async move { lines.wait(&*limiter, key, 1, MINUTE, &TokioTimer).await.err() });
        }
        let results = all.join_all().await;
        let many = Some(WaitError::TooManyWaiters { most: 2 });
        assert_eq!(results.iter().filter(|result| **result == many).count(), 1, "{results:?}");
        assert_eq!(results.iter().filter(|result| result.is_none()).count(), 2);
        assert_eq!(lines.wait(&*limiter, 4, 1, MINUTE, &TokioTimer).await.err(), None, "the places are free");
    });
}

#[test]
fn a_limiter_without_keys_and_one_of_several_dimensions_wait() {
    paused().block_on(async {
        let clock = TokioClock::new();
        let direct = DirectLimiter::with_clock(Quota::new(1, SECOND), clock).unwrap();
        let direct = WaitingLimiter::new(Arc::new(direct)).timer(TokioTimer);
        let joint = JointLimiter::<(String, u64), _>::builder()
            .dimension("user", [Quota::new(1, SECOND)])
            .dimension("tenant", [Quota::new(2, 10 * SECOND)])
            .clock(clock)
            .build()
            .unwrap();
        let joint = WaitingLimiter::new(Arc::new(joint)).timer(TokioTimer);
        let begin = Instant::now();
        for seconds in [0, 1, 2] {
            direct.acquire(()).within(MINUTE).await.unwrap();
            assert_eq!(begin.elapsed().as_secs(), seconds);
        }
        let begin = Instant::now();
        for seconds in [0, 1, 10] {
            joint.acquire(("alice".to_owned(), 7)).within(MINUTE).await.unwrap();
            assert_eq!(begin.elapsed().as_secs(), seconds);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Some tasks are dropped at any time. The others are served in order, and the permits are those
    /// of the served.
    #[test]
    fn tasks_that_are_dropped_leave_no_trace(
        patience in prop::collection::vec(0_u64..30_000, 1..200),
        limit in 1_u32..20,
        is_bucket: bool,
    ) {
        let quota = if is_bucket { Quota::token_bucket(limit, limit, SECOND) } else { Quota::new(limit, SECOND) };
        paused().block_on(async {
            let limiter = waiting(quota);
            let served = Arc::new(Mutex::new(Vec::new()));
            let mut all = JoinSet::new();
            for (number, millis) in patience.into_iter().enumerate() {
                let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
                all.spawn(async move {
                    let request = limiter.acquire(7).within(1000 * MINUTE);
                    if let Ok(result) = timeout(Duration::from_millis(millis), request).await {
                        result.unwrap();
                        served.lock().unwrap().push(number);
                    }
                });
            }
            all.join_all().await;
            let served = served.lock().unwrap();
            prop_assert!(served.is_sorted());
            prop_assert_eq!(decisions(&limiter), (served.len() as u64, 0));
            prop_assert_eq!(limiter.waiters(&7), 0);
            Ok(())
        })?;
    }
}
