//! Sync functions with a limiter of their own. Windows are so long that no test sees their end.

#![deny(warnings, clippy::pedantic, clippy::panic, clippy::unwrap_used)]

use std::time::Duration;

use tollgate::{CostExceedsLimit, Denial, DenialReason, Quota, ReserveError, rate_limit};

struct User {
    id: u64,
    name: String,
}

impl User {
    fn new(id: u64, name: &str) -> Self {
        Self { id, name: name.into() }
    }
}

#[rate_limit(limit = 2, per = "30m", key = (user.name, path))]
fn open(user: User, path: &str) -> Result<String, Denial> {
    // Neither argument was moved into the key.
    let User { name, .. } = user;
    Ok(name + " " + path)
}

#[test]
fn a_threshold_of_two_is_counted_by_user_and_path() {
    let open = |name, path| open(User::new(1, name), path);
    assert_eq!(open("alice", "/a").as_deref(), Ok("alice /a"));
    assert!(open("alice", "/a").is_ok());
    let denial = open("alice", "/a").expect_err("two in half an hour");
    assert_eq!(denial.reason(), DenialReason::Quota);
    assert!(denial.retry_after() <= Duration::from_secs(30 * 60));
    assert!(open("alice", "/b").is_ok());
    assert!(open("bob", "/a").is_ok());
}

#[rate_limit(limit = 2, per = "1h", key = (a, b))]
fn two_texts(a: &str, b: &str) -> Result<usize, Denial> {
    Ok(a.len() + b.len())
}

#[test]
fn the_values_of_a_key_are_not_strung_together() {
    assert!(two_texts("a", "bc").is_ok());
    assert!(two_texts("a", "bc").is_ok());
    assert!(two_texts("a", "bc").is_err());
    assert!(two_texts("ab", "c").is_ok());
}

#[rate_limit(limit = 1, per = "1h")]
fn once() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(limit = 1, per = "1h")]
fn once_as_well() -> Result<(), Denial> {
    Ok(())
}

#[test]
fn without_a_key_each_function_has_one_quota_of_its_own() {
    assert!(once().is_ok());
    assert!(once().is_err());
    assert!(once_as_well().is_ok());
}

#[rate_limit(limit = 1, per = "1h", key = ((user.name.to_lowercase(), [user.id]), (*path).len()))]
fn of_temporaries(user: &User, path: &str) -> Result<usize, Denial> {
    Ok(path.len() + user.name.len())
}

#[test]
fn a_key_can_borrow_from_temporary_values_and_be_nested() {
    assert!(of_temporaries(&User::new(1, "Alice"), "/a").is_ok());
    assert!(of_temporaries(&User::new(1, "alice"), "/b").is_err(), "the same text and length");
    assert!(of_temporaries(&User::new(2, "alice"), "/b").is_ok());
}

#[rate_limit(limit = 1, per = "1h", key = text.split_once(' ').ok_or(Unread::NoSpace)?.0)]
fn first_word(text: &str) -> Result<usize, Unread> {
    Ok(text.len())
}

#[derive(Debug, PartialEq, Eq)]
enum Unread {
    NoSpace,
    Denied,
}

impl From<Denial> for Unread {
    fn from(_: Denial) -> Self {
        Self::Denied
    }
}

#[test]
fn a_key_can_leave_the_function_by_a_question_mark() {
    assert_eq!(first_word("one"), Err(Unread::NoSpace));
    assert_eq!(first_word("one two"), Ok(7));
    assert_eq!(first_word("one three"), Err(Unread::Denied));
}

const LIMIT: u32 = 2;
const WINDOW: Duration = Duration::from_secs(3600);
const TWO: Quota = Quota::new(LIMIT, WINDOW);
const BUCKET: Quota = Quota::token_bucket(3, 1, WINDOW);

#[rate_limit(limit = LIMIT, per = WINDOW)]
fn of_constants() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = TWO, key = id)]
fn of_policy(id: u64) -> Result<u64, Denial> {
    Ok(id)
}

#[rate_limit(policy = [Quota::per_hour(3), TWO], key = id)]
fn of_two_quotas(id: u64) -> Result<u64, Denial> {
    Ok(id)
}

#[rate_limit(policy = [TWO, Quota::per_day(3)])]
fn of_two_quotas_without_a_key() -> Result<(), Denial> {
    Ok(())
}

#[rate_limit(policy = BUCKET)]
fn of_bucket() -> Result<(), Denial> {
    Ok(())
}

#[test]
fn quotas_are_constants_of_any_algorithm() {
    let admitted = |call: &dyn Fn() -> bool| (0..10).filter(|_| call()).count();
    assert_eq!(admitted(&|| of_constants().is_ok()), 2);
    assert_eq!(admitted(&|| of_policy(1).is_ok()), 2);
    assert_eq!(admitted(&|| of_policy(2).is_ok()), 2);
    assert_eq!(admitted(&|| of_two_quotas(1).is_ok()), 2);
    assert_eq!(of_two_quotas(1).map_err(|denial| denial.quota()), Err(1));
    assert_eq!(admitted(&|| of_two_quotas_without_a_key().is_ok()), 2);
    assert_eq!(admitted(&|| of_bucket().is_ok()), 3);
}

#[rate_limit(limit = 5, per = "1h", cost = 2, key = id)]
fn of_cost_two(id: u64) -> Result<u64, Denial> {
    Ok(id)
}

#[rate_limit(limit = 5, per = "1h", cost = cost)]
fn of_any_cost(cost: u32) -> Result<u32, ReserveError> {
    Ok(cost)
}

#[rate_limit(
    limit = 5,
    per = "1h",
    key = cost > 5,
    cost = cost,
    on_denied = |denial: Denial| format!("denied: {:?}", denial.reason()),
    on_error = |error: CostExceedsLimit| format!("{} of {}", error.cost(), error.limit()),
)]
fn of_any_cost_in_words(cost: u32) -> String {
    format!("cost {cost}")
}

#[test]
fn a_cost_is_charged_whole_or_not_at_all() {
    assert_eq!([(); 4].map(|()| of_cost_two(1).is_ok()), [true, true, false, false]);

    assert_eq!(of_any_cost(4), Ok(4));
    assert!(matches!(of_any_cost(2), Err(ReserveError::Denied(_))));
    assert_eq!(of_any_cost(1), Ok(1), "the denied call was not charged");
    assert_eq!(of_any_cost(0), Ok(0), "a call that costs nothing is free");
}

#[test]
fn a_cost_above_the_limit_is_an_error_of_its_own_and_charges_nothing() {
    assert!(matches!(of_any_cost(6), Err(ReserveError::CostExceedsLimit(error)) if error.cost() == 6));
    assert_eq!(of_any_cost_in_words(6), "6 of 5");
    assert_eq!(of_any_cost_in_words(5), "cost 5");
    assert_eq!(of_any_cost_in_words(1), "denied: Quota");
}

const fn seconds(denial: Denial) -> Option<u64> {
    denial.retry_after_secs()
}

#[rate_limit(limit = 1, per = "1h", on_denied = seconds)]
fn none_or_seconds() -> Option<u64> {
    None
}

#[rate_limit(limit = 1, per = "1h", on_denied = |_| denied.push(path))]
fn note<'a>(denied: &mut Vec<&'a str>, path: &'a str) {
    assert!(denied.is_empty(), "admitted once: {path}");
}

#[rate_limit(limit = 1, per = "1h", key = text, on_denied = |_| text)]
fn given_back(text: String) -> String {
    text + " once"
}

#[rate_limit(limit = 2, per = "1h", key = text.as_str(), cost = cost, on_denied = |_| text, on_error = |_| text + "!")]
fn given_back_by_cost(text: String, cost: u32) -> String {
    format!("{text} {cost}")
}

#[rate_limit(limit = 1, per = "1h", on_denied = |_| Box::new(std::iter::empty()) as Box<dyn Iterator<Item = u8>>)]
fn opaque() -> impl Iterator<Item = u8> {
    Box::new(std::iter::once(1_u8)) as Box<dyn Iterator<Item = u8>>
}

#[test]
fn a_function_without_a_result_answers_by_on_denied() {
    assert_eq!(none_or_seconds(), None);
    assert!(none_or_seconds().is_some_and(|seconds| (3_590..=3_600).contains(&seconds)));

    let mut denied = Vec::new();
    note(&mut denied, "/a");
    note(&mut denied, "/b");
    assert_eq!(denied, ["/b"]);

    assert_eq!(given_back("hello".into()), "hello once");
    assert_eq!(given_back("hello".into()), "hello");

    assert_eq!([2, 1, 3].map(|cost| given_back_by_cost("a".into(), cost)), ["a 2", "a", "a!"]);

    assert_eq!((opaque().count(), opaque().count()), (1, 0));
}

type Answer<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[rate_limit(limit = 1, per = "1h")]
fn of_alias() -> Answer<()> {
    Ok(())
}

#[rate_limit(limit = 1, per = "1h")]
fn opaque_result() -> Result<impl Iterator<Item = u8>, Denial> {
    Ok(std::iter::once(1))
}

#[test]
fn a_result_can_have_another_name_and_an_opaque_value() {
    assert!(of_alias().is_ok());
    assert!(of_alias().is_err_and(|error| error.downcast_ref::<Denial>().is_some()));
    assert_eq!(opaque_result().map(Iterator::count), Ok(1));
    assert!(opaque_result().is_err());
}

/// Names that an expansion could trip over.
#[rate_limit(limit = 1, per = "1h", key = (decision, denial, error, limiter))]
fn own_names(decision: u8, denial: u8, error: u8, limiter: u8) -> Result<u8, Denial> {
    #[allow(non_snake_case, clippy::unnecessary_wraps)]
    fn Ok<T>(value: T) -> std::result::Result<T, Denial> {
        std::result::Result::Ok(value)
    }
    Ok(decision + denial + error + limiter)
}

mod shadowed {
    #![allow(dead_code)]

    pub(super) struct Result;
    pub(super) struct LazyLock;
    pub(super) struct Quota;
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod tollgate {}

    #[::tollgate::rate_limit(limit = 1, per = "1h")]
    pub(super) fn call() -> ::core::result::Result<(), ::tollgate::Denial> {
        Ok(())
    }
}

mod renamed {
    pub(super) use ::tollgate as limits;
}

#[rate_limit(crate = renamed::limits, limit = 1, per = "1h")]
fn by_another_path() -> Result<(), renamed::limits::Denial> {
    Ok(())
}

#[test]
fn names_of_the_caller_keep_their_meaning() {
    assert_eq!(own_names(1, 2, 3, 4), Ok(10));
    assert!(own_names(1, 2, 3, 4).is_err());
    assert!(shadowed::call().is_ok() && shadowed::call().is_err());
    assert!(by_another_path().is_ok() && by_another_path().is_err());
}

macro_rules! limited {
    ($name:ident, $limit:expr, $per:literal, $key:expr) => {
        #[rate_limit(limit = $limit, per = $per, key = ($key))]
        fn $name(id: u64) -> Result<u64, Denial> {
            Ok(id)
        }
    };
}

const SEVEN: u64 = 7;

limited!(by_macro, 1, "1h", SEVEN);

#[test]
fn arguments_can_come_from_a_macro() {
    assert!(by_macro(1).is_ok());
    assert!(by_macro(2).is_err());
}
