//! Functions whose calls wait.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::{DirectLimiter, Limiter, MockClock, Quota, TokioClock, rate_limit};
use tollgate_wait::{TokioTimer, WaitError, WaitingLimiter};

/// The limiter of the function has a real clock, which stands in a test of less than an hour.
#[rate_limit(limit = 2, per = "1h", key = (user, path), wait = "2s")]
async fn open(user: String, path: &str) -> Result<String, WaitError> {
    Ok(user + path)
}

#[tokio::test]
async fn a_call_that_is_too_far_away_fails_at_once_and_keys_are_their_own() {
    for _ in 0..2 {
        assert_eq!(open("alice".into(), "/a").await.as_deref(), Ok("alice/a"));
    }
    let Err(WaitError::TooLong { wait }) = open("alice".into(), "/a").await else { panic!("the third") };
    assert!(wait > Duration::from_secs(3000));
    assert!(open("bob".into(), "/a").await.is_ok());
}

fn sent<T: Send>(future: T) -> T {
    future
}

#[test]
fn its_future_can_be_sent_to_another_thread() {
    drop(sent(open("carol".into(), "/")));
}

static RAN: AtomicU32 = AtomicU32::new(0);

#[rate_limit(limit = 1, per = "10ms", wait = "1h")]
fn run() -> Result<(), WaitError> {
    RAN.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[test]
fn a_function_without_async_blocks() {
    let start = std::time::Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run().unwrap());
        }
    });
    assert_eq!(RAN.load(Ordering::Relaxed), 4);
    assert!(start.elapsed() >= Duration::from_millis(30));
}

type Paused = WaitingLimiter<Limiter<String, TokioClock>, TokioTimer>;

async fn fetch(limiter: &Paused, host: &str) -> Result<(), WaitError> {
    #[rate_limit(limiter = limiter, key = host.to_owned(), cost = 2, wait = Duration::from_secs(3))]
    async fn fetch(limiter: &Paused, host: &str) -> Result<(), WaitError> {
        Ok(())
    }
    fetch(limiter, host).await
}

#[tokio::test(start_paused = true)]
async fn a_waiting_limiter_of_the_callers_is_waited_for() {
    let limiter = Limiter::builder(Quota::new(2, Duration::from_secs(1))).clock(TokioClock::new()).build().unwrap();
    let limiter = WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer);
    let start = Instant::now();
    for seconds in 0..3 {
        fetch(&limiter, "example.org").await.unwrap();
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

static CLOSED: LazyLock<WaitingLimiter<DirectLimiter<MockClock>>> = LazyLock::new(|| {
    let limiter = DirectLimiter::with_clock(Quota::per_hour(1), MockClock::new()).unwrap();
    WaitingLimiter::new(Arc::new(limiter))
});

#[rate_limit(limiter = CLOSED, wait = "1ms", on_denied = |error| error.to_string())]
fn greet() -> String {
    "hello".to_owned()
}

#[test]
fn the_answer_to_a_call_that_cannot_wait_may_be_made() {
    assert_eq!(greet(), "hello");
    assert_eq!(greet(), "permits are 3600s away, longer than the request may wait");
}

const QUEUE: Quota = Quota::leaky_queue(100, Duration::from_secs(1), Duration::from_secs(60));

#[rate_limit(policy = QUEUE, wait = "1m")]
fn queued(n: u32) -> Result<u32, WaitError> {
    Ok(n)
}

#[test]
fn a_leaky_queue_is_waited_for() {
    let start = std::time::Instant::now();
    for n in 0..4 {
        assert_eq!(queued(n), Ok(n));
    }
    assert!(start.elapsed() >= Duration::from_millis(30));
}

trait Fetch {
    fn fetch(&self, n: u32) -> impl Future<Output = Result<u32, WaitError>>;
}

struct Client;

#[async_trait::async_trait]
trait Boxed {
    async fn boxed(&self, n: u32) -> Result<u32, WaitError>;
}

#[async_trait::async_trait]
impl Boxed for Client {
    #[rate_limit(limit = 1, per = "10ms", wait = "1h")]
    async fn boxed(&self, n: u32) -> Result<u32, WaitError> {
        Ok(n)
    }
}

impl Fetch for Client {
    #[rate_limit(limit = 1, per = "10ms", wait = "1h", cost = n)]
    async fn fetch(&self, n: u32) -> Result<u32, WaitError> {
        Ok(n)
    }
}

#[tokio::test]
async fn methods_wait_too() {
    for _ in 0..2 {
        assert_eq!(Client.boxed(1).await, Ok(1));
        assert_eq!(Client.fetch(1).await, Ok(1));
        assert_eq!(Client.fetch(0).await, Ok(0));
    }
    assert!(matches!(Client.fetch(2).await, Err(WaitError::Cost(_))));
}
