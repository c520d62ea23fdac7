//! Async functions, polled by hand.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tollgate::{Denial, rate_limit};

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The value of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

#[rate_limit(limit = 2, per = "1h", key = (user, path))]
async fn open(user: String, path: &str) -> Result<String, Denial> {
    std::future::ready(()).await;
    Ok(user + path)
}

#[test]
fn an_async_function_is_limited() {
    let open = |user: &str, path| now(open(user.into(), path)).ok();
    assert_eq!(open("alice", "/a").as_deref(), Some("alice/a"));
    assert!(open("alice", "/a").is_some());
    assert_eq!(open("alice", "/a"), None);
    assert!(open("alice", "/b").is_some() && open("bob", "/a").is_some());
}

fn sent<T: Send>(future: T) -> T {
    future
}

#[test]
fn its_future_can_be_sent_to_another_thread() {
    let future = sent(open("carol".into(), "/"));
    let thread = std::thread::spawn(move || now(future));
    assert!(thread.join().is_ok_and(|opened| opened.is_ok()));
}

#[rate_limit(limit = 2, per = "1h")]
async fn for_ever(ran: &Cell<u32>) -> Result<(), Denial> {
    ran.set(ran.get() + 1);
    pending().await
}

#[test]
fn a_call_is_charged_at_the_first_poll_and_stays_charged_when_it_is_cancelled() {
    let ran = Cell::new(0);
    for _ in 0..10 {
        drop(for_ever(&ran));
    }
    assert_eq!(ran.get(), 0);
    {
        let mut call = pin!(for_ever(&ran));
        for _ in 0..10 {
            assert!(poll(call.as_mut()).is_pending());
        }
    }
    assert_eq!(ran.get(), 1);
    assert!(poll(pin!(for_ever(&ran))).is_pending(), "the calls that were never polled charged nothing");
    assert!(matches!(poll(pin!(for_ever(&ran))), Poll::Ready(Err(_))), "the two that were cancelled are charged");
    assert_eq!(ran.get(), 2);
}

#[rate_limit(limit = 1, per = "1h", key = user_of(token).await?)]
async fn by_looked_up_user(token: &str) -> Result<usize, Denial> {
    Ok(token.len())
}

async fn user_of(token: &str) -> Result<usize, Denial> {
    std::future::ready(Ok(token.len())).await
}

#[rate_limit(limit = 1, per = "1h", on_denied = |denial| denial.retry_after_secs().is_some())]
async fn whether(_: &str) -> bool {
    false
}

#[test]
fn a_key_can_wait_and_an_answer_need_not_be_a_result() {
    assert!(now(by_looked_up_user("abc")).is_ok());
    assert!(now(by_looked_up_user("xyz")).is_err(), "the same length");
    assert!(now(by_looked_up_user("x")).is_ok());
    assert!(!now(whether("")));
    assert!(now(whether("")));
}

struct Service<T>(T);

impl<T: Clone + Into<String>> Service<T> {
    #[rate_limit(limit = 1, per = "1h", key = self.0.clone().into())]
    async fn call(&self, more: impl Into<String>) -> Result<String, Denial> {
        let (name, more): (String, String) = (self.0.clone().into(), more.into());
        Ok(std::future::ready(name + &more).await)
    }
}

#[async_trait::async_trait]
trait Remote: Sync {
    async fn call(&self, path: &str) -> Result<String, Denial>;

    #[rate_limit(limit = 1, per = "1h", on_denied = |_| 0)]
    async fn size(&self) -> usize {
        1
    }
}

#[async_trait::async_trait]
impl Remote for Service<u8> {
    #[rate_limit(limit = 1, per = "1h", key = (self.0, path))]
    async fn call(&self, path: &str) -> Result<String, Denial> {
        std::future::ready(()).await;
        Ok(format!("{}{path}", self.0))
    }
}

#[test]
fn async_methods_are_limited_and_those_of_boxed_futures_too() {
    let service = Service("a");
    assert_eq!(now(service.call("b")), Ok("ab".into()));
    assert!(now(service.call(String::new())).is_err());

    let remote = |name| Box::new(Service::<u8>(name)) as Box<dyn Remote>;
    assert_eq!(now(remote(1).call("/")), Ok("1/".into()));
    drop(remote(2).call("/"));
    assert!(now(remote(1).call("/")).is_err());
    assert!(now(remote(2).call("/")).is_ok(), "the call that was never polled charged nothing");
    assert_eq!((now(remote(1).size()), now(remote(1).size())), (1, 0));
}
