//! Functions with a limiter of the caller's, on a clock that the tests set.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, LazyLock};
use std::thread;
use std::time::Duration;

use tollgate::{Denial, DirectLimiter, JointError, JointLimiter, Limiter, MockClock, Quota, rate_limit};

const TEN_SECONDS: Duration = Duration::from_secs(10);

static CLOCK: LazyLock<MockClock> = LazyLock::new(MockClock::new);
static FIVE: LazyLock<DirectLimiter<MockClock>> =
    LazyLock::new(|| DirectLimiter::with_clock(Quota::new(5, TEN_SECONDS), CLOCK.clone()).unwrap());

#[rate_limit(limiter = FIVE)]
fn five_in_ten_seconds(ran: &AtomicUsize) -> Result<(), Denial> {
    ran.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[test]
fn of_many_threads_exactly_five_pass_in_ten_seconds() {
    const THREADS: usize = 8;
    for round in 0..20 {
        let (ran, admitted, start) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    let passed = (0..100).filter(|_| five_in_ten_seconds(&ran).is_ok()).count();
                    admitted.fetch_add(passed, Ordering::Relaxed);
                });
            }
        });
        assert_eq!((admitted.into_inner(), ran.into_inner()), (5, 5), "round {round}");
        CLOCK.advance(TEN_SECONDS - Duration::from_nanos(1));
        assert_eq!(five_in_ten_seconds(&AtomicUsize::new(0)).unwrap_err().retry_after(), Duration::from_nanos(1));
        CLOCK.advance(Duration::from_nanos(1));
    }
}

/// Period 30, threshold 2, keyed by user and path.
struct Service {
    limiter: Limiter<(u64, String), MockClock>,
}

impl Service {
    #[rate_limit(limiter = self.limiter, key = (user, path.to_owned()))]
    fn open(&self, user: u64, path: &str) -> Result<usize, Denial> {
        Ok(path.len())
    }
}

#[test]
fn a_period_of_thirty_seconds_ends_after_thirty_seconds() {
    let clock = MockClock::new();
    let quota = Quota::new(2, Duration::from_secs(30));
    let service = Service { limiter: Limiter::builder(quota).clock(clock.clone()).build().unwrap() };
    assert!(service.open(1, "/a").is_ok());
    clock.advance(TEN_SECONDS);
    assert!(service.open(1, "/a").is_ok());
    assert_eq!(service.open(1, "/a").unwrap_err().retry_after_secs(), Some(20));
    assert!(service.open(1, "/b").is_ok() && service.open(2, "/a").is_ok());
    clock.advance(Duration::from_secs(20));
    assert!(service.open(1, "/a").is_ok());
    assert_eq!(service.open(1, "/a").unwrap_err().retry_after_secs(), Some(10));
}

static TEXTS: LazyLock<Limiter<String>> = LazyLock::new(|| Limiter::new(Quota::per_hour(2)).unwrap());

fn texts() -> &'static Limiter<String> {
    &TEXTS
}

#[rate_limit(limiter = TEXTS, key = text)]
fn owned(text: String) -> Result<String, Denial> {
    Ok(text)
}

#[rate_limit(limiter = texts(), key = text)]
fn borrowed(text: &str) -> Result<&str, Denial> {
    Ok(text)
}

#[rate_limit(limiter = limiter, key = text.trim())]
fn computed<'a>(limiter: &Limiter<String>, text: &'a str) -> Result<&'a str, Denial> {
    Ok(text)
}

#[rate_limit(limiter = *limiter, key = *text)]
fn shared(limiter: Arc<Limiter<str>>, text: Arc<str>) -> Result<usize, Denial> {
    Ok(text.len())
}

#[test]
fn several_functions_share_a_limiter_and_give_it_keys_of_any_borrowed_form() {
    assert_eq!(owned("a".into()).as_deref(), Ok("a"));
    assert_eq!(borrowed("a"), Ok("a"));
    assert!(computed(&TEXTS, " a ").is_err());
    assert!(owned("a".into()).is_err());
    assert!(borrowed("b").is_ok());

    let limiter = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    assert!(shared(Arc::clone(&limiter), "a".into()).is_ok());
    assert!(shared(limiter, "a".into()).is_err());
}

#[derive(Debug, PartialEq)]
enum Refused {
    Denied(usize),
    Joint(JointError),
}

impl From<Denial> for Refused {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial.dimension())
    }
}

impl From<JointError> for Refused {
    fn from(error: JointError) -> Self {
        Self::Joint(error)
    }
}

#[rate_limit(limiter = limiter, keys = (user, path), cost = cost)]
fn joint(limiter: &JointLimiter<(u64, String)>, user: Option<&u64>, path: &str, cost: u32) -> Result<usize, Refused> {
    Ok(path.len())
}

#[rate_limit(limiter = limiter, keys = [path])]
fn joint_with_too_few_keys(limiter: &JointLimiter<[String]>, path: &str) -> Result<usize, Refused> {
    Ok(path.len())
}

#[test]
fn the_keys_of_a_joint_limiter_are_decided_as_one() {
    let builder = JointLimiter::<(u64, String)>::builder().dimension("user", [Quota::per_hour(2)]);
    let limiter = builder.dimension("path", [Quota::per_hour(3)]).build().unwrap();
    assert_eq!(joint(&limiter, Some(&1), "/", 1), Ok(1));
    assert_eq!(joint(&limiter, Some(&1), "/", 1), Ok(1));
    assert_eq!(joint(&limiter, Some(&1), "/", 1), Err(Refused::Denied(0)));
    assert_eq!(joint(&limiter, None, "/", 1), Ok(1), "a call without a user is asked by its path");
    assert_eq!(joint(&limiter, Some(&2), "/", 1), Err(Refused::Denied(1)));
    assert!(matches!(joint(&limiter, Some(&2), "/", 3), Err(Refused::Joint(JointError::Cost(_)))));
    let builder = JointLimiter::<[String]>::builder().dimension("user", [Quota::per_hour(2)]);
    let limiter = builder.dimension("path", [Quota::per_hour(3)]).build().unwrap();
    let expected = JointError::WrongNumberOfKeys { keys: 1, dimensions: 2 };
    assert_eq!(joint_with_too_few_keys(&limiter, "/"), Err(Refused::Joint(expected)));
}

#[rate_limit(limiter = limiter, cost = 3, on_error = |error| Err(error.to_string()), on_denied = |_| Err(String::new()))]
fn of_cost_three(limiter: &DirectLimiter) -> Result<(), String> {
    Ok(())
}

#[test]
fn a_literal_cost_can_be_more_than_the_limit_of_a_limiter_of_the_callers() {
    let limiter = |limit| DirectLimiter::new(Quota::per_hour(limit)).unwrap();
    assert!(of_cost_three(&limiter(2)).unwrap_err().contains("cost 3"));
    let four = limiter(4);
    assert_eq!([of_cost_three(&four), of_cost_three(&four)], [Ok(()), Err(String::new())]);
}

#[rate_limit(limiter = limiter, key = "search")]
fn search(limiter: &Limiter<String>) -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limiter = limiter, key = "upload")]
fn upload(limiter: &Limiter<String>) -> Result<(), Denial> {
    Ok(())
}

#[test]
fn a_literal_key_tells_functions_with_one_limiter_apart() {
    let limiter = Limiter::new(Quota::per_hour(1)).unwrap();
    assert!(search(&limiter).is_ok() && upload(&limiter).is_ok());
    assert!(search(&limiter).is_err() && upload(&limiter).is_err());
}
