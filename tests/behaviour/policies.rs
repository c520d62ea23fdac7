//! Policies that are applied to a limiter in use, and limiters of one dimension of a policy.

use std::time::Duration;

use tollgate::policy::{Policy, Unapplied, UnappliedField};
use tollgate::{AtKeyCap, DenialReason, JointLimiter, Limiter, MockClock, Penalty, Quota};

/// A policy with these lines at its head, a penalty of the first dimension or none, and a limit.
fn policy(head: &str, penalty: &str, limit: u32) -> Policy {
    let text = format!(
        "{head}\n[[dimension]]\nname = \"user\"\nquota = [{{ limit = {limit}, per = \"1m\" }}]\n{penalty}\n\
         [[dimension]]\nname = \"address\"\nquota = [{{ limit = 9, per = \"1m\" }}]"
    );
    text.parse().unwrap()
}

const PENALTY: &str = "penalty = { denials = 2, within = \"1m\", blocked_for = \"1h\" }";

fn limiter(policy: &Policy) -> JointLimiter<(u32, u32), MockClock> {
    policy.builder().clock(MockClock::new()).build().unwrap()
}

/// What is not applied of one policy to the limiter of another. The quotas are, in any case.
fn unapplied(before: &Policy, after: &Policy) -> Unapplied {
    let limiter = limiter(before);
    let unapplied = after.apply(&limiter).unwrap();
    assert_eq!(limiter.quotas_of((1, 1)).unwrap()[0], Some(after.dimensions()[0].quotas()));
    unapplied
}

#[test]
fn what_a_limiter_can_not_take_on_is_named() {
    let plain = policy("", "", 5);
    let penalty = || UnappliedField::Penalty { dimension: "user".to_owned() };
    for (head, its_penalty, field) in [
        ("key_cap = 10", "", UnappliedField::KeyCap),
        ("at_key_cap = \"admit\"", "", UnappliedField::AtKeyCap),
        ("shadow = true", "", UnappliedField::Shadow),
        ("", PENALTY, penalty()),
    ] {
        let other = policy(head, its_penalty, 6);
        assert_eq!(unapplied(&plain, &other).fields(), std::slice::from_ref(&field), "{head}{its_penalty}");
        assert!(unapplied(&other, &policy(head, its_penalty, 7)).is_empty(), "{head}{its_penalty}");
        // A key cap that the policy does not have is left to the program. Shadow mode and penalties
        // that are gone from the file are to end.
        let left_to_the_program = matches!(field, UnappliedField::KeyCap | UnappliedField::AtKeyCap);
        assert_eq!(unapplied(&other, &plain).is_empty(), left_to_the_program, "{head}{its_penalty}");
    }
    let other_numbers = PENALTY.replace("1h", "2h");
    assert_eq!(unapplied(&policy("", PENALTY, 5), &policy("", &other_numbers, 5)).fields(), [penalty()]);
    assert!(unapplied(&plain, &policy("key_cap = 1048576\nat_key_cap = \"deny\"\nshadow = false", "", 5)).is_empty());
    let all = unapplied(&plain, &policy("key_cap = 10\nat_key_cap = \"admit\"\nshadow = true", PENALTY, 5));
    let named = "not applied: `key_cap`, `at_key_cap`, `shadow`, `penalty` of dimension \"user\"; build a new limiter";
    assert_eq!(all.to_string(), named);
}

#[test]
fn dimensions_in_another_order_keep_their_penalties() {
    let text = |first: &str, second: &str| format!("{first}\n{second}").parse::<Policy>().unwrap();
    let user = format!("[[dimension]]\nname = \"user\"\nquota = [{{ limit = 5, per = \"1m\" }}]\n{PENALTY}");
    let address = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 9, per = \"1m\" }]";
    let limiter = limiter(&text(&user, address));
    assert!(text(address, &user).apply(&limiter).unwrap().is_empty());
}

#[test]
fn a_limiter_of_one_dimension_has_all_that_the_policy_says() {
    let policy = policy("key_cap = 1\nat_key_cap = \"deny\"", PENALTY, 2);
    let limiter: Limiter<str, MockClock> = policy.builder_of("user").unwrap().clock(MockClock::new()).build().unwrap();
    assert_eq!(limiter.quotas(), [Quota::per_minute(2)]);
    let reasons: Vec<_> =
        (0..4).map(|_| limiter.try_acquire("alice").into_result().err().map(|denial| denial.reason())).collect();
    assert_eq!(reasons, [None, None, Some(DenialReason::Quota), Some(DenialReason::Penalty)]);
    assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(3600)));
    let denial = limiter.try_acquire("bob").into_result().unwrap_err();
    assert_eq!(denial.reason(), DenialReason::KeyCap);
    limiter.set_quotas(policy.dimension("address").unwrap().quotas()).unwrap();
    assert_eq!(limiter.quotas(), [Quota::per_minute(9)]);
}

#[test]
fn shadow_mode_and_several_quotas_are_those_of_the_policy() {
    let text = "shadow = true\nat_key_cap = \"admit\"\n[[dimension]]\nname = \"user\"\n\
        quota = [{ limit = 1, per = \"1s\" }, { limit = 3, per = \"1m\" }]";
    let policy = text.parse::<Policy>().unwrap();
    let limiter = policy.builder_of::<u64>("user").unwrap().key_cap(1).build().unwrap();
    assert_eq!(limiter.quotas(), [Quota::per_second(1), Quota::per_minute(3)]);
    assert_eq!(
        (policy.at_key_cap(), policy.dimension("user").unwrap().penalty()),
        (Some(AtKeyCap::Admit), None::<Penalty>)
    );
    assert!((0..5).all(|_| limiter.try_acquire(7).is_admitted()));
    assert!(limiter.try_acquire(8).into_result().is_ok_and(|admission| admission.overruled().is_none()));
}

#[test]
fn a_dimension_that_there_is_not_is_an_error_that_names_the_others() {
    let error = policy("", "", 5).builder_of::<str>("adress").map(drop).unwrap_err();
    assert_eq!(error.dimension(), "adress");
    assert_eq!(error.to_string(), "the policy has no dimension \"adress\", only \"user\", \"address\"");
}
