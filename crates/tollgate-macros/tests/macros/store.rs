//! Functions whose limiter is that of a policy: the same code in process and on a store.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tollgate::{Absent, rate_limit};
use tollgate_kit::redis::{PolicyStore, runtime};
use tollgate_policy::Policy;
use tollgate_redis::{AcquireError, PolicyLimiter, StoreError};

const POLICY: &str = r#"
    [[dimension]]
    name = "user"
    quota = [{ limit = 3, per = "1d" }]

    [[dimension]]
    name = "address"
    quota = [{ limit = 5, per = "1d" }]
"#;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

type Limiter = PolicyLimiter<(String, IpAddr)>;

fn limiter(policy: &str) -> Arc<Limiter> {
    Arc::new(PolicyLimiter::new(&Policy::from_toml(policy).unwrap()).unwrap())
}

struct Service {
    limiter: Arc<Limiter>,
    ran: AtomicUsize,
}

impl Service {
    fn new(policy: &str) -> Self {
        Self { limiter: limiter(policy), ran: AtomicUsize::new(0) }
    }

    #[rate_limit(store = self.limiter, keys = (user, address), cost = cost)]
    async fn open(&self, user: &str, address: Option<IpAddr>, cost: u32) -> Result<usize, AcquireError> {
        Ok(self.ran.fetch_add(1, Ordering::Relaxed))
    }
}

fn waits_a_day(outcome: Result<usize, AcquireError>) -> AcquireError {
    let error = outcome.unwrap_err();
    let wait = error.retry_after().unwrap();
    assert!(wait <= Duration::from_secs(86_400) && wait > Duration::from_secs(80_000), "{wait:?}");
    assert_eq!(error.to_string(), format!("too many requests: try again in {} s", error.retry_after_secs().unwrap()));
    error
}

/// The table of the policy, by a function in process or on a store.
async fn is_limited(policy: &str) -> Service {
    let service = Service::new(policy);
    for ran in 0..3 {
        assert_eq!(service.open("alice", Some(HOME), 1).await, Ok(ran));
    }
    waits_a_day(service.open("alice", Some(HOME), 1).await);
    waits_a_day(service.open("alice", None, 1).await);
    // The denials have charged neither: of the address 2 are left.
    assert_eq!(service.open("bob", Some(HOME), 2).await, Ok(3));
    waits_a_day(service.open("carol", Some(HOME), 1).await);
    assert_eq!(service.open("carol", None, 3).await, Ok(4));
    let error = service.open("dave", None, 4).await.unwrap_err();
    assert_eq!((error.retry_after(), error.retry_after_secs()), (None, None));
    assert_eq!(error.to_string(), "a request of cost 4 can never be admitted under a limit of 3: ask for at most 3");
    assert_eq!(service.open("alice", Some(HOME), 0).await, Ok(5), "a cost of 0 is free");
    assert_eq!(service.ran.load(Ordering::Relaxed), 6);
    service
}

#[test]
fn the_same_function_is_limited_in_process_and_on_a_store() {
    let service = runtime().block_on(is_limited(POLICY));
    assert!(service.limiter.on_store().is_none());
    let Some(store) = PolicyStore::start() else { return };
    let service = runtime().block_on(is_limited(&store.policy("", POLICY)));
    let counts = service.limiter.on_store().unwrap().counts();
    assert_eq!((counts.admitted, counts.denied), (5, 3));
}

#[test]
fn functions_of_two_programs_share_one_limit_exactly() {
    let Some(store) = PolicyStore::start() else { return };
    let policy = store.policy("", POLICY);
    let services = [Arc::new(Service::new(&policy)), Arc::new(Service::new(&policy))];
    let admitted = runtime().block_on(async {
        let open = |at: usize| {
            let service = Arc::clone(&services[at % 2]);
            tokio::spawn(async move { service.open("alice", None, 1).await.is_ok() })
        };
        let calls: Vec<_> = (0..40).map(open).collect();
        let mut admitted = 0;
        for call in calls {
            admitted += usize::from(call.await.unwrap());
        }
        admitted
    });
    assert_eq!(admitted, 3);
}

#[rate_limit(store = limiter, keys = (user, Absent), on_denied = |error: AcquireError| format!("no: {error}"))]
async fn greet(limiter: &Limiter, user: &str) -> String {
    format!("hello {user}")
}

#[test]
fn while_the_store_is_away_a_call_fails_or_passes_as_the_policy_says() {
    for (more, greeted) in [("", false), ("on_failure = \"open\"", true), ("on_failure = \"local\"\nnodes = 3", true)] {
        let Some(store) = PolicyStore::start() else { return };
        let service = Service::new(&store.policy(more, POLICY));
        runtime().block_on(async {
            assert_eq!(greet(&service.limiter, "alice").await, "hello alice");
            drop(store);
            let answer = greet(&service.limiter, "alice").await;
            assert_eq!(answer == "hello alice", greeted, "{more}: {answer}");
            assert_eq!(answer.starts_with("no: the store did not decide the request: "), !greeted, "{answer}");
            let outcome = service.open("bob", None, 1).await;
            assert_eq!(
                matches!(outcome, Err(AcquireError::Store(StoreError::Unavailable(_)))),
                !greeted,
                "{outcome:?}"
            );
        });
    }
}

#[async_trait]
trait Opens {
    async fn open(&self, user: String) -> Result<usize, AcquireError>;
}

#[async_trait]
impl Opens for Limiter {
    #[rate_limit(store = self, keys = (&user, HOME))]
    async fn open(&self, user: String) -> Result<usize, AcquireError> {
        Ok(user.len())
    }
}

#[test]
fn a_method_of_an_async_trait_is_limited_and_its_future_is_charged_when_it_is_polled() {
    let limiter = limiter(POLICY);
    let opens: &dyn Opens = &*limiter;
    runtime().block_on(async {
        drop(opens.open("alice".into()));
        for _ in 0..3 {
            assert_eq!(opens.open("alice".into()).await, Ok(5));
        }
        waits_a_day(opens.open("alice".into()).await);
    });
}
