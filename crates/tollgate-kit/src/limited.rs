//! What a service does that is limited by a policy, whatever stands before it: a layer, a middleware,
//! or `tollgate serve`. One bank of behaviours, in process and on a store.

use std::time::Duration;

use serde_json::json;
use tollgate::MockClock;
use tollgate_policy::Policy;

use crate::redis::PolicyStore;

/// The dimensions of the bank. Time that passes in a test changes nothing.
pub const POLICY: &str = r#"
    [[dimension]]
    name = "address"
    quota = [{ limit = 5, per = "1d" }]

    [[dimension]]
    name = "user"
    quota = [{ limit = 3, per = "1d" }]
"#;

/// The header field with the key of the second dimension. That of the first is the client's address.
pub const USER: &str = "x-tollgate-user";

/// A service behind the limits of a policy.
pub trait Service: Sized + Sync {
    /// The body of the service's own answer, or of an admission.
    const BODY: &'static str;

    /// A service with this policy, in process or on its store.
    fn start(policy: &Policy) -> Self;

    /// A service in process, by this clock.
    fn by_clock(policy: &Policy, clock: MockClock) -> Self;

    /// The answer to a request of one client with these header fields.
    fn send(&self, fields: &[(&str, &str)]) -> Answer;

    /// How many requests the store has admitted, and how many it did not decide.
    fn by_store(&self) -> (u64, u64);
}

/// What a client gets.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// The value of a header field that is there once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} comes twice");
        value
    }

    /// Problem details, whose status is that of the answer.
    pub fn problem(&self) -> serde_json::Value {
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.field("cache-control"), Some("no-store"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_str(&self.body).expect("JSON");
        assert_eq!(problem["status"], self.status, "{problem}");
        problem
    }
}

fn started<S: Service>(policy: &str) -> S {
    S::start(&Policy::from_toml(policy).expect("a policy"))
}

fn of_user<S: Service>(service: &S, user: &str) -> Answer {
    service.send(&[(USER, user)])
}

/// The table of the policy.
pub fn the_same_table_holds_in_process_and_on_a_store<S: Service>() {
    is_limited(&started::<S>(POLICY));
    let Some(store) = PolicyStore::start() else { return };
    is_limited(&started::<S>(&store.policy("", POLICY)));
}

fn is_limited<S: Service>(service: &S) {
    for left in ["2", "1", "0"] {
        let admitted = of_user(service, "alice");
        assert_eq!((admitted.status, &*admitted.body), (200, S::BODY));
        assert_eq!(admitted.field("ratelimit-policy"), Some(r#""address";q=5;w=86400, "user";q=3;w=86400"#));
        assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"user\";r={left};t=")), "{admitted:?}");
    }
    let denied = of_user(service, "alice");
    assert_eq!(denied.status, 429);
    assert!(denied.field("ratelimit").unwrap().starts_with("\"user\";r=0;t="), "{denied:?}");
    let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    assert!((80_000..=86_400).contains(&wait), "{wait}");
    assert_eq!(denied.problem()["violated-policies"], json!(["user"]));
    // The denial has charged neither: of the address 2 are left.
    for (user, status) in [("bob", 200), ("bob", 200), ("carol", 429)] {
        assert_eq!(of_user(service, user).status, status, "{user}");
    }
    assert_eq!(of_user(service, "carol").problem()["violated-policies"], json!(["address"]));
}

/// A key that lacks, comes twice, or is too long is the client's mistake, and charges nothing.
pub fn a_key_that_is_not_as_it_should_be_is_a_bad_request<S: Service>() {
    let service = started::<S>(POLICY);
    let (long, longest) = ("k".repeat(1_025), "k".repeat(1_024));
    for _ in 0..2 {
        for fields in [&[][..], &[(USER, "")], &[(USER, "alice"), (USER, "alice")], &[(USER, &*long)]] {
            let refused = service.send(fields);
            assert_eq!((refused.status, refused.field("ratelimit"), refused.field("retry-after")), (400, None, None));
            refused.problem();
        }
    }
    assert_eq!(of_user(&service, &longest).status, 200);
    assert!(of_user(&service, "alice").field("ratelimit").unwrap().starts_with("\"user\";r=2;t="));
}

/// The header fields of each answer, and the problem of a denial. The wait is exact.
pub fn header_fields_tell_the_limit_and_the_permits_left<S: Service>() {
    let policy = POLICY.replace("1d", "1m").replace("limit = 5", "limit = 9");
    let clock = MockClock::new();
    clock.set(1_800_000_000_000_000_000);
    let service = S::by_clock(&Policy::from_toml(&policy).expect("a policy"), clock.clone());
    let policies = Some(r#""address";q=9;w=60, "user";q=3;w=60"#);
    for left in [2, 1, 0] {
        let answer = of_user(&service, "alice");
        assert_eq!((answer.status, &*answer.body), (200, S::BODY));
        assert_eq!(answer.field("ratelimit-policy"), policies);
        assert_eq!(answer.field("ratelimit"), Some(&*format!("\"user\";r={left};t=60")));
        assert_eq!(answer.field("retry-after"), None);
    }
    clock.advance(Duration::from_millis(2_500));
    let denied = of_user(&service, "alice");
    assert_eq!((denied.status, denied.field("ratelimit-policy")), (429, policies));
    assert_eq!(denied.field("ratelimit"), Some(r#""user";r=0;t=58"#));
    assert_eq!(denied.field("retry-after"), Some("58"), "57.5 seconds");
    let problem = denied.problem();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["violated-policies"], json!(["user"]));
    clock.advance(Duration::from_secs(57));
    assert_eq!(of_user(&service, "alice").status, 429, "a second before the time that the answer told");
    clock.advance(Duration::from_secs(1));
    assert_eq!(of_user(&service, "alice").status, 200, "after that time");
}

/// Several services with several workers, asked at once.
pub fn services_on_one_store_share_one_limit_exactly<S: Service>() {
    let Some(store) = PolicyStore::start() else { return };
    let policy = store.policy("", &POLICY.replace("limit = 3", "limit = 100").replace("limit = 5", "limit = 1000"));
    let services = [started::<S>(&policy), started::<S>(&policy)];
    let ask = |service: &S| {
        let statuses: Vec<u16> = (0..25).map(|_| of_user(service, "alice").status).collect();
        assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
        statuses.iter().filter(|status| **status == 200).count()
    };
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            services.iter().cycle().take(16).map(|service| scope.spawn(move || ask(service))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 100);
    // A service that starts later goes on.
    assert_eq!(of_user(&started::<S>(&policy), "alice").status, 429);
}

/// The answer to a request once the store is away.
fn left_alone<S: Service>(more: &str) -> Option<Answer> {
    let store = PolicyStore::start()?;
    let service = started::<S>(&store.policy(more, POLICY));
    assert_eq!(of_user(&service, "alice").status, 200);
    drop(store);
    let answer = of_user(&service, "alice");
    assert_eq!(service.by_store(), (1, 1));
    Some(answer)
}

pub fn a_store_that_is_away_is_answered_with_503_and_the_service_is_not_called<S: Service>() {
    let Some(away) = left_alone::<S>("") else { return };
    assert_eq!((away.status, away.field("retry-after"), away.field("ratelimit")), (503, None, None));
    assert_eq!(away.body, r#"{"title":"Service Unavailable","status":503}"#);
    away.problem();
}

pub fn a_store_that_is_away_admits_or_leaves_a_share_as_the_policy_says<S: Service>() {
    let Some(open) = left_alone::<S>("on_failure = \"open\"") else { return };
    assert_eq!((open.status, &*open.body, open.field("ratelimit")), (200, S::BODY, None));
    let local = left_alone::<S>("on_failure = \"local\"\nnodes = 3").expect("a store");
    // The share is one in three of five and of three.
    assert_eq!((local.status, &*local.body), (200, S::BODY));
    assert_eq!(local.field("ratelimit"), Some(r#""address";r=0;t=86400"#));
}

/// The tests of the bank, for a [`Service`].
#[macro_export]
macro_rules! limited_by_a_policy {
    ($Service:ty) => {
        $crate::limited_by_a_policy!(
            $Service:
            the_same_table_holds_in_process_and_on_a_store,
            a_key_that_is_not_as_it_should_be_is_a_bad_request,
            header_fields_tell_the_limit_and_the_permits_left,
            services_on_one_store_share_one_limit_exactly,
            a_store_that_is_away_is_answered_with_503_and_the_service_is_not_called,
            a_store_that_is_away_admits_or_leaves_a_share_as_the_policy_says,
        );
    };
    ($Service:ty: $($test:ident,)+) => { $(
        #[test]
        fn $test() {
            $crate::limited::$test::<$Service>();
        }
    )+ };
}
