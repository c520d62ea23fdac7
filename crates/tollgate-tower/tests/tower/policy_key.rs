//! A layer whose keys are those that a policy file names.

use std::sync::Arc;

use tollgate_kit::redis::runtime;
use tollgate_policy::Policy;
use tollgate_tower::{Headers, PolicyKey, RateLimit, RateLimitLayer, ShadowSwitch};
use tower::Service;

use crate::layer::support::{Answer, Inner, ask, from, with};

const QUOTA: &str = "quota = [{ limit = 2, per = \"1h\" }]\n";

/// A service behind the limits of this policy, and what it answers to a request of this client.
fn served<C: FnOnce(Layer) -> Layer>(
    policy: &str,
    change: C,
) -> impl Fn(&str, &[(&'static str, &str)]) -> Answer + use<C> {
    let limiter = Policy::from_toml(policy).expect("a policy").request_limiter().expect("a limiter");
    let key = PolicyKey::new(&limiter).field("tenant", |head| {
        let host = head.headers.get("host")?.to_str().ok()?;
        host.split('.').next().map(str::to_owned)
    });
    let layer = change(RateLimitLayer::new(Arc::clone(limiter.limiter())).key(key));
    let service = Inner::default().behind(&layer);
    move |client, fields| {
        let request = fields.iter().fold(from(client), |request, (name, value)| with(request, name, value));
        runtime().block_on(ask(&service, request))
    }
}

type Layer = RateLimitLayer<tollgate::JointLimiter<[tollgate_policy::Key]>, PolicyKey>;

fn text<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.fields.get(name).map(|value| value.to_str().expect("text"))
}

#[test]
fn a_dimension_in_shadow_mode_is_told_to_no_client() {
    let new = format!("[[dimension]]\nname = \"new\"\nkey = [\"client\"]\nshadow = true\n{QUOTA}").replace('2', "1");
    for headers in [Headers::Draft11, Headers::XRateLimit] {
        let send = served(&format!("{new}[[dimension]]\nname = \"client\"\n{QUOTA}"), |it| it.headers(headers));
        for (left, status) in [("1", 200), ("0", 200), ("0", 429)] {
            let answer = send("192.0.2.7", &[]);
            assert_eq!(answer.status.as_u16(), status);
            if headers == Headers::XRateLimit {
                assert_eq!(text(&answer, "x-ratelimit-remaining"), Some(left));
                continue;
            }
            assert_eq!(text(&answer, "ratelimit-policy"), Some("\"client\";q=2;w=3600"));
            let told = text(&answer, "ratelimit").expect("it is told");
            assert!(told.starts_with(&format!("\"client\";r={left};")), "{told}");
        }
    }
}

/// What a client gets of a policy with tiers by the field `x-plan`: the answers to so many requests that
/// stay in flight, and one after they have ended.
fn in_flight(policy: &str, plan: &str, requests: usize) -> (Vec<u16>, u16) {
    let limiter = Policy::from_toml(policy).expect("a policy").request_limiter().expect("a limiter");
    let layer = RateLimitLayer::new(Arc::clone(limiter.limiter())).key(PolicyKey::new(&limiter));
    let mut service = Inner::default().behind::<_, RateLimit<_, _, _>>(&layer);
    let mut send = || runtime().block_on(service.call(with(from("192.0.2.7"), "x-plan", plan))).unwrap();
    let answers: Vec<_> = (0..requests).map(|_| send()).collect();
    let statuses = answers.iter().map(|answer| answer.status().as_u16()).collect();
    drop(answers);
    (statuses, send().status().as_u16())
}

#[test]
fn each_tier_has_requests_in_flight_of_its_own() {
    let concurrent = |limit| format!("quota = [{{ algorithm = \"concurrency\", limit = {limit} }}]\n");
    let tiers = format!(
        "tier_by = \"header.x-plan\"\n[[dimension.tier]]\nname = \"pro\"\n{}[[dimension.tier]]\nname = \"rate\"\n{QUOTA}",
        concurrent(2)
    );
    // The tier counts those in flight, whatever the dimension's own quotas count.
    for own in [concurrent(1), QUOTA.to_owned()] {
        let policy = format!("[[dimension]]\nname = \"client\"\n{own}{tiers}");
        assert_eq!(in_flight(&policy, "pro", 3), (vec![200, 200, 429], 200), "{policy}");
        assert_eq!(in_flight(&policy, "rate", 3), (vec![200, 200, 429], 429), "{policy}");
    }
    let policy = format!("[[dimension]]\nname = \"client\"\n{}{tiers}", concurrent(1));
    assert_eq!(in_flight(&policy, "free", 2), (vec![200, 429], 200));
    // A rate beside it is charged for those that are admitted.
    let policy = format!("{policy}[[dimension]]\nname = \"rate\"\nkey = [\"client\"]\n{QUOTA}");
    assert_eq!(in_flight(&policy, "free", 3), (vec![200, 429, 429], 200));
}

#[test]
fn a_rule_answers_with_403_whatever_the_key_and_the_switch_lets_it_pass() {
    let policy = format!(
        "[[rule]]\nmatch = {{ header.x-bot = \"yes\" }}\naction = \"deny\"\n[[dimension]]\nname = \"tenant\"\n{QUOTA}"
    );
    let send = served(&policy, |it| it);
    let denied = send("192.0.2.7", &[("x-bot", "yes")]);
    assert_eq!((denied.status.as_u16(), text(&denied, "ratelimit")), (403, None));
    assert_eq!(denied.body, r#"{"title":"Forbidden","status":403}"#);
    let twice = send("192.0.2.7", &[("x-bot", "yes"), ("x-bot", "no"), ("host", "acme.example")]);
    assert_eq!(twice.status.as_u16(), 400, "no rule can be got past by a second value");
    assert_eq!(send("192.0.2.7", &[("host", "acme.example")]).status.as_u16(), 200);
    let switch = ShadowSwitch::on();
    let send = served(&policy, |it| it.shadow(switch.clone()));
    assert_eq!((send("192.0.2.7", &[("x-bot", "yes")]).status.as_u16(), switch.overruled()), (200, 1));
}

#[test]
fn a_request_that_no_limit_is_for_passes_without_its_fields() {
    let send =
        served(&format!("[[dimension]]\nname = \"header.x-key\"\nmatch = {{ path = \"/api\" }}\n{QUOTA}"), |it| it);
    for _ in 0..5 {
        let passed = send("192.0.2.7", &[]);
        assert_eq!((passed.status.as_u16(), text(&passed, "ratelimit-policy")), (200, None));
    }
    let send = served(&format!("[[dimension]]\nname = \"header.x-key\"\n{QUOTA}"), |it| it);
    let bad = send("192.0.2.7", &[]);
    assert_eq!(bad.status.as_u16(), 400);
    let body = String::from_utf8_lossy(&bad.body);
    assert!(body.contains("The request needs the header field x-key."), "{body}");
    let send = served(&format!("[[dimension]]\nname = \"nobody said\"\n{QUOTA}"), |it| it);
    assert_eq!(send("192.0.2.7", &[]).status.as_u16(), 500, "the program has to say it");
}
