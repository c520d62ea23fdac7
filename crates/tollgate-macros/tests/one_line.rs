//! Functions of one line. No lint fires on the expansion, be it of the compiler or of clippy.

#![deny(warnings, unused, future_incompatible, keyword_idents, nonstandard_style, rust_2018_idioms)]
#![deny(let_underscore, unused_lifetimes, unused_qualifications, trivial_casts, trivial_numeric_casts)]
#![deny(unreachable_pub, single_use_lifetimes, unit_bindings, variant_size_differences)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
// The module is only there for its attribute.
#![allow(clippy::redundant_pub_crate)]

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use tollgate::{Denial, JointError, JointLimiter, Limiter, Quota, ReserveError, rate_limit};

const ONCE: Quota = Quota::per_hour(1);

// rustfmt would write each function in several lines.
#[rustfmt::skip]
mod one_line {
    use super::*;

    #[rate_limit(limit = 1, per = "1h")]
    pub(super) fn unkeyed() -> Result<u8, Denial> { Ok(1) }

    #[rate_limit(limit = 1, per = "1h", key = x)]
    pub(super) fn keyed(x: u8) -> Result<u8, Denial> { Ok(x) }

    #[rate_limit(policy = [ONCE, Quota::per_day(2)], key = (x, text))]
    pub(super) fn keyed_by_two(x: u8, text: &str) -> Result<(u8, &str), Denial> { Ok((x, text)) }

    #[rate_limit(policy = ONCE, on_denied = |_| x + 100)]
    pub(super) fn with_an_answer(x: u8) -> u8 { x }

    #[rate_limit(policy = ONCE, on_denied = |_| ())]
    pub(super) fn without_a_value() {}

    #[rate_limit(policy = ONCE, cost = 1)]
    pub(super) fn with_a_cost() -> Result<u8, Denial> { Ok(1) }

    #[rate_limit(policy = ONCE, key = x, cost = cost)]
    pub(super) fn with_a_computed_cost(x: u8, cost: u32) -> Result<u8, ReserveError> { Ok(x) }

    #[rate_limit(limiter = limiter, key = x)]
    pub(super) fn by_a_limiter(limiter: &Limiter<u8>, x: u8) -> Result<u8, Denial> { Ok(x) }

    #[rate_limit(limiter = limiter, keys = (&x, &y), on_denied = |_| Ok(100), on_error = Err)]
    pub(super) fn by_dimensions(limiter: &JointLimiter<(u8, u8)>, x: u8, y: u8) -> Result<u8, JointError> { Ok(x + y) }

    #[rate_limit(limit = 1, per = "1h")]
    pub(super) async fn unkeyed_future() -> Result<u8, Denial> { std::future::ready(Ok(1)).await }

    #[rate_limit(limit = 1, per = "1h", key = x)]
    pub(super) async fn keyed_future(x: u8) -> Result<u8, Denial> { std::future::ready(Ok(x)).await }

    #[rate_limit(limit = 1, per = "1h", key = x, on_denied = |_| 100)]
    pub(super) async fn future_with_an_answer(x: u8) -> u8 { std::future::ready(x).await }

    #[rate_limit(limit = 1, per = "1h", key = x)]
    pub(super) fn boxed_future(x: u8) -> Pin<Box<dyn Future<Output = Result<u8, Denial>>>> { Box::pin(async move { Ok(x) }) }

    #[async_trait]
    pub(super) trait Boxed { async fn boxed(&self, x: u8) -> Result<u8, Denial>; }

    pub(super) struct Door(pub(super) u8);

    #[async_trait]
    impl Boxed for Door {
        #[rate_limit(limit = 1, per = "1h", key = x)]
        async fn boxed(&self, x: u8) -> Result<u8, Denial> { Ok(x) }
    }

    impl Door {
        #[rate_limit(limit = 1, per = "1h", key = x)]
        pub(super) fn method(&self, x: u8) -> Result<u8, Denial> { Ok(x + self.0) }
    }
}

use one_line::{Boxed as _, Door};

/// The value of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn each_is_limited() {
    assert!(one_line::unkeyed().is_ok() && one_line::unkeyed().is_err());
    assert!(one_line::keyed(1).is_ok() && one_line::keyed(1).is_err());
    assert!(one_line::keyed_by_two(1, "a").is_ok() && one_line::keyed_by_two(1, "a").is_err());
    assert_eq!((one_line::with_an_answer(1), one_line::with_an_answer(1)), (1, 101));
    one_line::without_a_value();
    assert!(one_line::with_a_cost().is_ok() && one_line::with_a_cost().is_err());
    assert!(one_line::with_a_computed_cost(1, 1).is_ok() && one_line::with_a_computed_cost(1, 1).is_err());
    assert!(now(one_line::unkeyed_future()).is_ok() && now(one_line::unkeyed_future()).is_err());
    assert!(now(one_line::keyed_future(1)).is_ok() && now(one_line::keyed_future(1)).is_err());
    assert_eq!(now(one_line::future_with_an_answer(1)), 1);
    assert_eq!(now(one_line::future_with_an_answer(1)), 100);
    assert!(now(one_line::boxed_future(1)).is_ok() && now(one_line::boxed_future(1)).is_err());
    assert!(now(Door(1).boxed(1)).is_ok() && now(Door(1).boxed(1)).is_err());
    assert!(Door(1).method(1).is_ok() && Door(1).method(1).is_err());
}

#[test]
fn each_asks_the_limiter_of_the_caller() {
    let limiter = Limiter::new(ONCE).expect("a limiter of one quota");
    assert!(one_line::by_a_limiter(&limiter, 1).is_ok() && one_line::by_a_limiter(&limiter, 1).is_err());
    let limiter =
        JointLimiter::builder().dimension("x", [ONCE]).dimension("y", [ONCE]).build().expect("two dimensions");
    assert_eq!(one_line::by_dimensions(&limiter, 1, 2), Ok(3));
    assert_eq!(one_line::by_dimensions(&limiter, 1, 2), Ok(100));
}
