//! Concurrency limits in a policy file: read, printed, asked, and changed in use.

use std::time::Duration;

use tollgate::{DenialReason, InFlight, JointLimiter, Quota, QuotaError};
use tollgate_policy::{ApplyError, EnterError, Key, Policy, PolicyProblem, RequestLimiter};

/// A dimension of this name, with a quota and other fields.
fn dimension(name: &str, quota: &str, fields: &str) -> String {
    format!("[[dimension]]\nname = \"{name}\"\nkey = [\"user\"]\nquota = [{{ {quota} }}]\n{fields}\n")
}

/// As many requests in flight.
fn concurrent(fields: &str) -> String {
    format!("algorithm = \"concurrency\", {fields}")
}

fn policy(text: &str) -> Policy {
    let policy = Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(Policy::from_toml(&policy.to_string()).as_ref(), Ok(&policy), "{policy}");
    policy
}

type Guard = InFlight<std::sync::Arc<JointLimiter<[Key]>>>;

fn enter(limiter: &RequestLimiter, values: &[&'static str]) -> Result<Option<Guard>, EnterError> {
    let values = values.iter().map(|value| Some((*value).into()).filter(|_| !value.is_empty()));
    limiter.try_enter(values.collect())
}

#[test]
fn a_file_has_a_concurrency_limit_as_any_quota() {
    let quota = |fields: &str| policy(&dimension("a", &concurrent(fields), "")).dimensions()[0].quotas()[0];
    assert_eq!(quota("limit = 4"), Quota::concurrent(4));
    let held = Quota::concurrent(4).held_at_most(Duration::from_secs(600));
    assert_eq!(quota("limit = 4, max_hold = \"10m\""), held);
    assert_eq!(quota("limit = 4, name = \"streams\"").name(), Some("streams"));
}

#[test]
fn an_error_names_what_is_wrong_and_where() {
    for (fields, at, message) in [
        (concurrent("name = \"x\""), "{ algo", "a concurrency limit needs `limit`: add it"),
        (concurrent("limit = 0"), "{ algo", "the limit is zero"),
        (concurrent("limit = 2, per = \"1m\""), "\"1m\"", "a concurrency limit has no `per`"),
        (concurrent("limit = 2, max_hold = \"0s\""), "{ algo", "can't be held for at most 0ns"),
        (concurrent("limit = 2, max_hold = \"3x\""), "\"3x\"", "`max_hold`: not a duration"),
        ("limit = 2, per = \"1m\", max_hold = \"3s\"".to_owned(), "\"3s\"", "a sliding window log has no `max_hold`"),
    ] {
        let text = dimension("a", &fields, "");
        let error = Policy::from_toml(&text).unwrap_err();
        let column = text.lines().nth(3).and_then(|line| line.find(at)).map(|at| at + 1);
        assert_eq!((error.line(), Some(error.column())), (4, column), "{fields}: {error}");
        assert!(error.to_string().contains(message), "{fields}: {error}");
    }
    // Two of them do not combine on one key, nor one with a rate: each is a dimension.
    let both = format!("{} }}, {{ limit = 5, per = \"1m\"", concurrent("limit = 2"));
    let error = Policy::from_toml(&dimension("a", &both, "")).unwrap_err();
    assert!(matches!(error.problem(), PolicyProblem::Refused(_)), "{error}");
    let too_long = concurrent("limit = 2, max_hold = \"20000d\"");
    let error = Policy::from_toml(&dimension("a", &too_long, "")).unwrap_err();
    let PolicyProblem::Refused(why) = error.problem() else { panic!("{error}") };
    assert!(why.to_string().contains(&QuotaError::HoldOutOfRange { max_hold: Duration::MAX }.to_string()[..30]));
}

#[test]
fn each_tier_has_places_of_its_own_and_a_rate_is_charged_with_a_place_or_not_at_all() {
    let tiers = format!(
        "tier_by = \"plan\"\n[[dimension.tier]]\nname = \"pro\"\nquota = [{{ {} }}]\n\
         [[dimension.tier]]\nname = \"office\"\nmatch = {{ user = \"root\" }}\nunlimited = true",
        concurrent("limit = 2")
    );
    let text =
        dimension("in flight", &concurrent("limit = 1"), &tiers) + &dimension("rate", "limit = 4, per = \"1h\"", "");
    let limiter = policy(&text).request_limiter().unwrap();
    assert_eq!(limiter.fields(), ["user", "plan"]);
    let own = enter(&limiter, &["alice", ""]).unwrap();
    let reason = |values| enter(&limiter, values).unwrap_err().denial().map(|denial| denial.reason());
    assert_eq!(reason(&["alice", ""]), Some(DenialReason::InFlight));
    let pro = [(); 2].map(|()| enter(&limiter, &["alice", "pro"]).unwrap());
    assert_eq!(reason(&["alice", "pro"]), Some(DenialReason::InFlight));
    drop((own, pro));
    // The denied ones were not charged.
    assert!(enter(&limiter, &["alice", ""]).unwrap().is_some_and(|guard| guard.counts()));
    assert_eq!(reason(&["alice", ""]), Some(DenialReason::Quota));
    // A rate alone.
    let root = [(); 4].map(|()| enter(&limiter, &["root", ""]).unwrap().expect("the rate"));
    assert!(root.iter().all(|guard| !guard.counts()));
    assert_eq!(reason(&["root", ""]), Some(DenialReason::Quota));
    assert_eq!(enter(&limiter, &["", ""]).unwrap_err(), EnterError::Lacks { field: 0 });
}

#[test]
fn rules_come_first_and_a_request_without_a_limit_has_no_guard() {
    let rules = "[[rule]]\nmatch = { user = \"root\" }\naction = \"admit\"\n\
                 [[rule]]\nmatch = { user = \"mallory\" }\naction = \"deny\"\n";
    let matched = "match = { plan = \"free\" }";
    let limiter = policy(&(rules.to_owned() + &dimension("in flight", &concurrent("limit = 1"), matched)));
    let limiter = limiter.request_limiter().unwrap();
    let free = enter(&limiter, &["alice", "free"]).unwrap();
    assert!(free.is_some_and(|guard| guard.counts()));
    let without = [["root", "free"], ["alice", "pro"]].map(|values| enter(&limiter, &values).unwrap());
    assert!(without.iter().all(Option::is_none));
    let error = enter(&limiter, &["mallory", "free"]).unwrap_err();
    assert_eq!((error, error.denial()), (EnterError::Rule { rule: 1 }, None));
    assert_eq!(error.to_string(), "rule 2 of the policy denies the request");
}

#[test]
fn a_dimension_in_shadow_mode_admits_more_and_counts_no_more_than_its_limit() {
    let text = dimension("in flight", &concurrent("limit = 2"), "shadow = true");
    let limiter = policy(&text).request_limiter().unwrap();
    let held: Vec<_> = (0..5).map(|_| enter(&limiter, &["alice"]).unwrap().expect("a limit")).collect();
    assert_eq!(held.iter().filter(|guard| guard.counts()).count(), 2);
    assert_eq!(limiter.limiter().counts().overruled, 3);
}

#[test]
fn a_changed_limit_is_applied_while_requests_are_in_flight() {
    let text = |fields: &str| dimension("in flight", &concurrent(fields), "");
    let limiter = policy(&text("limit = 2")).request_limiter().unwrap();
    let mut held = vec![enter(&limiter, &["alice"]).unwrap(), enter(&limiter, &["alice"]).unwrap()];
    policy(&text("limit = 1, max_hold = \"10m\"")).apply(&limiter).unwrap();
    held.pop();
    assert!(enter(&limiter, &["alice"]).is_err(), "one is in flight");
    policy(&text("limit = 3")).apply(&limiter).unwrap();
    held.extend([enter(&limiter, &["alice"]).unwrap(), enter(&limiter, &["alice"]).unwrap()]);
    assert!(enter(&limiter, &["alice"]).is_err());
    let rate = policy(&dimension("in flight", "limit = 5, per = \"1m\"", ""));
    assert!(matches!(rate.apply(&limiter), Err(ApplyError::Change { .. })));
}
