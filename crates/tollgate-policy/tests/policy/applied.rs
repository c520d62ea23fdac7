//! Policies that are applied to a limiter in use, and limiters of one dimension of a policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate::{AtKeyCap, Decision, DenialReason, JointLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_kit::clocks::HookedClock;
use tollgate_policy::{ApplyError, BuilderError, OfDimension, Policy, Target};

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
    policy.builder().unwrap().clock(MockClock::new()).build().unwrap()
}

/// The results of so many requests of a user at an address.
fn ask(
    limiter: &JointLimiter<(u32, u32), MockClock>,
    (user, address): (u32, u32),
    times: usize,
) -> Vec<Result<bool, DenialReason>> {
    let ask = |_| match limiter.try_acquire((user, address)).unwrap() {
        Decision::Admitted(admission) => Ok(admission.is_counted() && admission.overruled().is_none()),
        Decision::Denied(denial) => Err(denial.reason()),
    };
    (0..times).map(ask).collect()
}

const COUNTED: Result<bool, DenialReason> = Ok(true);
const LET_THROUGH: Result<bool, DenialReason> = Ok(false);
const BY_QUOTA: Result<bool, DenialReason> = Err(DenialReason::Quota);
const BLOCKED: Result<bool, DenialReason> = Err(DenialReason::Penalty);

#[test]
fn shadow_mode_begins_and_ends_in_use() {
    let limiter = limiter(&policy("", "", 1));
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BY_QUOTA]);
    policy("shadow = true", "", 1).apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (1, 1), 3), [LET_THROUGH; 3]);
    assert!(limiter.try_acquire_n((1, 1), 2).unwrap().is_admitted(), "of any cost");
    assert_eq!(limiter.counts().overruled, 4);
    policy("", "", 1).apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (1, 1), 1), [BY_QUOTA]);
    assert!(limiter.try_acquire_n((1, 1), 2).is_err());
    assert_eq!(limiter.counts().overruled, 4, "since the limiter was built");
}

#[test]
fn a_penalty_comes_and_changes_and_goes_in_use() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    let limiter = limiter(&policy("", "", 1));
    let block_of = |user| limiter.peek((user, user)).unwrap().decision().retry_after();
    assert_eq!(ask(&limiter, (1, 1), 4), [COUNTED, BY_QUOTA, BY_QUOTA, BY_QUOTA]);
    policy("", PENALTY, 1).apply(&limiter).unwrap();
    // Denials count from now on.
    assert_eq!(ask(&limiter, (1, 1), 2), [BY_QUOTA, BLOCKED]);
    assert_eq!(block_of(1), Some(hour));
    assert_eq!(ask(&limiter, (2, 2), 2), [COUNTED, BY_QUOTA]);

    // Blocks are as long as the new penalty says, from when they began. Denials count on.
    limiter.clock().advance(minute / 2);
    policy("", &PENALTY.replace("denials = 2", "denials = 3").replace("1h", "2h"), 1).apply(&limiter).unwrap();
    assert_eq!(block_of(1), Some(2 * hour - minute / 2));
    assert_eq!(ask(&limiter, (2, 2), 3), [BY_QUOTA, BLOCKED, BLOCKED]);
    policy("", &PENALTY.replace("denials = 2", "denials = 1"), 1).apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (3, 3), 2), [COUNTED, BLOCKED]);
    assert_eq!(limiter.counts().penalties, 3);

    policy("", "", 1).apply(&limiter).unwrap();
    limiter.clock().advance(minute);
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BY_QUOTA]);
    assert!(limiter.forget((2, 2)).unwrap(), "also what is switched off");
    policy("", PENALTY, 1).apply(&limiter).unwrap();
    assert_eq!([1, 2].map(block_of), [Some(hour - 3 * minute / 2), None]);
}

#[test]
fn the_growth_of_a_penalty_comes_and_changes_and_goes_in_use() {
    let minute = Duration::from_secs(60);
    let of = |growth: &str| {
        let penalty = PENALTY.replace("denials = 2", "denials = 1").replace("\"1h\" }", &format!("\"10m\"{growth} }}"));
        policy("", &penalty, 1)
    };
    let growing = |factor: u32| of(&format!(", factor = {factor}, longest = \"1d\", quiet_for = \"1d\""));
    let limiter = limiter(&of(""));
    let block = || {
        let denial = limiter.peek((1, 1)).unwrap().decision().into_result().err()?;
        Some((denial.block(), denial.retry_after()))
    };
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BLOCKED]);
    growing(2).apply(&limiter).unwrap();
    assert_eq!(block(), Some((Some(1), 10 * minute)), "the first is as long");
    limiter.clock().advance(10 * minute);
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BLOCKED]);
    assert_eq!(block(), Some((Some(2), 20 * minute)));
    growing(5).apply(&limiter).unwrap();
    assert_eq!(block(), Some((Some(2), 50 * minute)));
    of("").apply(&limiter).unwrap();
    assert_eq!(block(), Some((Some(2), 10 * minute)));
    limiter.clock().advance(10 * minute);
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BLOCKED]);
    assert_eq!(block(), Some((Some(1), 10 * minute)));
}

#[test]
fn the_answer_at_the_cap_changes_in_use() {
    let with = |answer: &str| policy(&format!("key_cap = 2\n{answer}"), "", 5);
    let limiter = limiter(&with(""));
    assert_eq!(ask(&limiter, (1, 1), 1), [COUNTED]);
    assert_eq!(ask(&limiter, (2, 2), 1), [Err(DenialReason::KeyCap)]);
    with("at_key_cap = \"admit\"").apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (2, 2), 1), [LET_THROUGH]);
    assert!(format!("{limiter:?}").contains("at_key_cap: Admit"));
    with("").apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (2, 2), 1), [Err(DenialReason::KeyCap)]);
}

#[test]
fn what_a_limiter_can_not_take_on_is_refused_and_nothing_changes() {
    let limiter = limiter(&policy("key_cap = 9", "", 1));
    let all = |head: &str| format!("{}", policy(&format!("{head}\nshadow = true\nat_key_cap = \"admit\""), PENALTY, 7));
    let other_algorithm = all("").replace("\"sliding-window-log\"\nlimit = 9\n", "\"fixed-window\"\nlimit = 9\n");
    for (text, what, place) in [
        (all("key_cap = 10"), "`key_cap` can't change from 9 to 10 in use: write 9, or", None),
        (
            all("").replace("\"address\"", "\"adress\""),
            "no limiter has the dimension \"adress\": remove it",
            Some("adress"),
        ),
        (
            all("").split("\n[[dimension]]\nname = \"address\"").next().unwrap().to_owned(),
            "the policy lacks",
            Some("address"),
        ),
        (other_algorithm, "dimension \"address\": a sliding window log can't become a fixed window", Some("address")),
    ] {
        let error =
            text.parse::<Policy>().unwrap_or_else(|error| panic!("{error}: {text}")).apply(&limiter).unwrap_err();
        assert!(error.to_string().starts_with(what) && error.dimension() == place, "{error}");
    }
    assert_eq!(
        limiter.quotas_of((1, 1)).unwrap(),
        [[1], [9]].map(|it| it.map(Quota::per_minute)).map(|it| Some(it.into()))
    );
    assert_eq!(ask(&limiter, (1, 1), 5), [COUNTED, BY_QUOTA, BY_QUOTA, BY_QUOTA, BY_QUOTA]);
    // A key cap that the policy does not say is left to the program.
    policy("", "", 2).apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (1, 1), 2), [COUNTED, BY_QUOTA]);
}

#[test]
fn several_limiters_take_a_policy_on_together_or_not_at_all() {
    let text = |user: u32, address: &str| {
        format!(
            "[[dimension]]\nname = \"user\"\nquota = [{{ limit = {user}, per = \"1m\" }}]\n\
             [[dimension]]\nname = \"address\"\nquota = [{address}]"
        )
    };
    let policy = |user: u32, address: &str| text(user, address).parse::<Policy>().unwrap();
    let before = policy(1, "{ limit = 9, per = \"1m\" }");
    let users = Arc::new(before.builder_of::<str>("user").unwrap().build().unwrap());
    let addresses = Arc::new(before.builder_of::<u32>("address").unwrap().at_key_cap(AtKeyCap::Admit).build().unwrap());
    let both: Vec<Arc<dyn Target>> = vec![
        Arc::new(OfDimension::new("user", Arc::clone(&users))),
        Arc::new(OfDimension::new("address", Arc::clone(&addresses))),
    ];
    let limits = || (users.quotas()[0].limit(), addresses.quotas()[0].limit());
    policy(2, "{ limit = 10, per = \"1m\" }").apply(&both).unwrap();
    assert_eq!(limits(), (2, 10));
    let bucket = r#"{ algorithm = "token-bucket", capacity = 5, refill = 1, per = "1s" }"#;
    assert!(
        matches!(policy(3, bucket).apply(&both), Err(ApplyError::Change { dimension, .. }) if dimension == "address")
    );
    assert_eq!(limits(), (2, 10));
}

/// Quotas that change read the clock, so this request comes in the middle.
#[test]
fn shadow_mode_is_on_while_the_quotas_change() {
    let enforced = policy("", "", 5);
    let shadowed = policy("shadow = true", "", 1);
    for (before, after) in [(&enforced, &shadowed), (&shadowed, &enforced)] {
        let limiter = Arc::new(before.builder::<(u32, u32)>().unwrap().clock(HookedClock::new()).build().unwrap());
        let asked = Arc::new(AtomicBool::new(false));
        let hook = {
            let (limiter, asked) = (Arc::clone(&limiter), Arc::clone(&asked));
            move || {
                assert!(limiter.try_acquire_n((1, 1), 6).is_ok_and(|decision| decision.is_admitted()));
                asked.store(true, Ordering::Relaxed);
            }
        };
        limiter.check(after).unwrap();
        limiter.clock().at_next_reading(hook);
        limiter.set(after).unwrap();
        assert!(asked.load(Ordering::Relaxed));
    }
}

#[test]
fn dimensions_in_another_order_keep_their_penalties() {
    let text = |first: &str, second: &str| format!("{first}\n{second}").parse::<Policy>().unwrap();
    let user = format!("[[dimension]]\nname = \"user\"\nquota = [{{ limit = 1, per = \"1m\" }}]\n{PENALTY}");
    let address = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 2, per = \"1m\" }]";
    let limiter = limiter(&text(&user, address));
    text(address, &user).apply(&limiter).unwrap();
    assert_eq!(ask(&limiter, (1, 1), 3), [COUNTED, BY_QUOTA, BLOCKED]);
    assert_eq!(ask(&limiter, (2, 1), 1), [COUNTED]);
    assert_eq!(ask(&limiter, (3, 1), 3), [BY_QUOTA, BY_QUOTA, BY_QUOTA], "by the address, which has no penalty");
}

#[test]
fn a_limiter_of_one_dimension_has_all_that_the_policy_says() {
    let policy = policy("key_cap = 1\nat_key_cap = \"deny\"", PENALTY, 2);
    let limiter: Limiter<str, MockClock> = policy.builder_of("user").unwrap().clock(MockClock::new()).build().unwrap();
    assert_eq!(*limiter.quotas(), [Quota::per_minute(2)]);
    let reasons: Vec<_> =
        (0..4).map(|_| limiter.try_acquire("alice").into_result().err().map(|denial| denial.reason())).collect();
    assert_eq!(reasons, [None, None, Some(DenialReason::Quota), Some(DenialReason::Penalty)]);
    assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(3600)));
    let denial = limiter.try_acquire("bob").into_result().unwrap_err();
    assert_eq!(denial.reason(), DenialReason::KeyCap);
    limiter.set_quotas(policy.dimension("address").unwrap().quotas()).unwrap();
    assert_eq!(*limiter.quotas(), [Quota::per_minute(9)]);
}

#[test]
fn shadow_mode_and_several_quotas_are_those_of_the_policy() {
    let text = "shadow = true\nat_key_cap = \"admit\"\n[[dimension]]\nname = \"user\"\n\
        quota = [{ limit = 1, per = \"1s\" }, { limit = 3, per = \"1m\" }]";
    let policy = text.parse::<Policy>().unwrap();
    let limiter = policy.builder_of::<u64>("user").unwrap().key_cap(1).build().unwrap();
    assert_eq!(*limiter.quotas(), [Quota::per_second(1), Quota::per_minute(3)]);
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
    assert!(matches!(&error, BuilderError::UnknownDimension(error) if error.dimension() == "adress"));
    assert_eq!(error.to_string(), "the policy has no dimension \"adress\", only \"user\", \"address\"");
}

/// A file for a store is never decided in process by mistake.
#[test]
fn limiters_in_process_refuse_a_policy_for_a_store() {
    let policy = policy("[store]\nurl = \"redis://host\"\nsecret = { env = \"S\" }", "", 5);
    let refused = Some(BuilderError::ForStore);
    assert_eq!(policy.builder::<(u32, u32)>().err(), refused);
    assert_eq!(policy.builder_of::<u32>("user").err(), refused);
    assert_eq!(policy.only(["user"]).unwrap().builder::<(u32,)>().err(), refused);
    let limiter = policy.without_store().builder::<(u32, u32)>().unwrap().build().unwrap();
    assert_eq!(policy.apply(&limiter), Err(ApplyError::ForStore));
    assert_eq!(policy.without_store().apply(&limiter), Ok(()));
}
