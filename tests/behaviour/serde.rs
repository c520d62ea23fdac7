//! Quotas to serde formats and back, and decisions as they are written.
use std::time::Duration;

use serde_json::{from_str, to_string};
use tollgate::{Calendar, JointLimiter, Limiter, MockClock, Penalty, Quota, Zone};

const SECOND: Duration = Duration::from_secs(1);

fn quotas() -> Vec<(Quota, &'static str)> {
    let bucket = Quota::token_bucket(20, 5, SECOND);
    let window = Quota::fixed_window(9, Duration::from_nanos(1));
    vec![
        (Quota::per_minute(5), r#"{"algorithm":"sliding-window-log","limit":5,"per":"1m"}"#),
        (
            Quota::new(5, Duration::from_millis(1500)).counting_refused().named("n 1"),
            r#"{"name":"n 1","algorithm":"sliding-window-log","limit":5,"per":"1s500ms","counting_refused":true}"#,
        ),
        (bucket, r#"{"algorithm":"token-bucket","capacity":20,"refill":5,"per":"1s"}"#),
        (bucket.starting_with(0), r#"{"algorithm":"token-bucket","capacity":20,"refill":5,"per":"1s","start":0}"#),
        (Quota::leaky_bucket(3, 7, SECOND), r#"{"algorithm":"leaky-bucket","capacity":3,"leak":7,"per":"1s"}"#),
        (
            Quota::leaky_queue(10, SECOND, SECOND / 2),
            r#"{"algorithm":"leaky-queue","leak":10,"per":"1s","max_delay":"500ms"}"#,
        ),
        (window, r#"{"algorithm":"fixed-window","limit":9,"per":"1ns"}"#),
        (
            Quota::calendar(9, Calendar::Month, Zone::UTC),
            r#"{"algorithm":"fixed-window","limit":9,"per":"month","zone":"UTC"}"#,
        ),
        (window.aligned(Duration::ZERO), r#"{"algorithm":"fixed-window","limit":9,"per":"1ns","phase":"0s"}"#),
        (
            Quota::sliding_counter(50, SECOND).aligned(SECOND),
            r#"{"algorithm":"sliding-counter","limit":50,"per":"1s","phase":"1s"}"#,
        ),
        (
            Quota::quantised_log(50, SECOND, SECOND / 10),
            r#"{"algorithm":"quantised-log","limit":50,"per":"1s","resolution":"100ms"}"#,
        ),
        (
            Quota::warm_up(5, 2, SECOND, 4 * SECOND),
            r#"{"algorithm":"warm-up","limit":5,"per":"1s","rate":2,"warm_up":"4s"}"#,
        ),
    ]
}

#[test]
fn every_kind_of_quota_goes_to_json_and_back() {
    for (quota, text) in quotas() {
        assert_eq!(to_string(&quota).unwrap(), text);
        assert_eq!(from_str::<Quota>(text).unwrap(), quota);
        assert_eq!(to_string(&quota.algorithm()).unwrap(), format!("{:?}", quota.algorithm().name()));
    }
    assert_eq!(from_str::<Quota>(r#"{"limit":5,"per":"1m"}"#).unwrap(), Quota::per_minute(5));
}

#[test]
fn every_kind_of_quota_goes_to_bytes_and_back() {
    for (quota, text) in quotas() {
        let bytes = postcard::to_allocvec(&quota).unwrap();
        assert_eq!(postcard::from_bytes::<Quota>(&bytes).unwrap(), quota, "{text}");
    }
}

#[test]
fn an_invalid_quota_is_an_error_with_its_reason() {
    for (text, words) in [
        (r#"{"limit":5}"#, "`per` is missing"),
        (r#"{"per":"1s"}"#, "`limit` is missing"),
        (r#"{"limit":5,"per":"10"}"#, "`per`: a unit is missing: write \"10s\" for seconds"),
        (r#"{"limit":5,"per":10}"#, "`per`: a unit is missing: write \"10s\" for seconds"),
        (r#"{"limit":5,"per":-1}"#, "`per`: a duration can't be negative"),
        (r#"{"limit":5,"per":true}"#, "such as \"10s\""),
        (r#"{"limit":5,"per":"1s","refill":1}"#, "a sliding window log has no field `refill`"),
        (r#"{"algorithm":"leaky-queue","leak":1,"per":"1s","max_delay":"1s","limit":1}"#, "has no field `limit`"),
        (
            r#"{"algorithm":"token-bucket","capacity":5,"refill":1,"per":"1s","resolution":"1s"}"#,
            "no field `resolution`",
        ),
        (r#"{"limit":0,"per":"1s"}"#, "the limit is zero"),
        (r#"{"limit":5,"per":"1s","start":1}"#, "only a token bucket"),
        (r#"{"limit":5,"per":"1s","name":"é"}"#, "printable ASCII"),
        (r#"{"limit":5,"per":"1s","limits":5}"#, "unknown field"),
        (r#"{"limit":5,"per":"month"}"#, "a sliding window log has no window of a calendar month"),
        (r#"{"algorithm":"fixed-window","limit":5,"per":"1d","zone":"UTC"}"#, "`zone` is for windows of the calendar"),
        (r#"{"algorithm":"fixed-window","limit":5,"per":"day","zone":"Mars"}"#, "`zone`: "),
        (r#"{"algorithm":"log","limit":5,"per":"1s"}"#, "unknown variant"),
    ] {
        let error = from_str::<Quota>(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn decisions_are_written_with_their_numbers() {
    let limiter = Limiter::<str>::builder(Quota::new(1, SECOND)).clock(MockClock::new()).list_cap(1).build().unwrap();
    let admitted = limiter.try_acquire_status("alice");
    let numbers = r#"{"dimension":0,"quota":0,"is_violated":false,"limit":1,"remaining":0,"next_after_ns":1000000000,"reset_after_ns":1000000000}"#;
    let decision = r#"{"admitted":{"delay_ns":0,"is_counted":true,"overruled":null}}"#;
    assert_eq!(to_string(&admitted).unwrap(), format!(r#"{{"decision":{decision},"quotas":[{numbers}]}}"#));
    assert_eq!(to_string(&admitted.decision()).unwrap(), decision);
    let denial = limiter.try_acquire("alice").into_result().unwrap_err();
    let text = r#"{"reason":"quota","retry_after_ns":1000000000,"dimension":0,"quota":0,"block":null,"violated":[0]}"#;
    assert_eq!(to_string(&denial).unwrap(), text);
    limiter.deny("mallory").unwrap();
    let never = to_string(&limiter.try_acquire_status("mallory")).unwrap();
    assert!(never.contains(r#""reason":"deny-list","retry_after_ns":null"#), "{never}");
    assert!(never.contains(r#""remaining":0,"next_after_ns":null,"reset_after_ns":null"#), "{never}");
}

#[test]
fn a_denial_by_a_penalty_is_written_with_the_number_of_the_block() {
    let penalty = Penalty::new(1, SECOND, 60 * SECOND);
    let builder = Limiter::<str>::builder(Quota::new(1, SECOND)).penalty(penalty).clock(MockClock::new());
    let limiter = builder.build().unwrap();
    let _ = [(); 2].map(|()| limiter.try_acquire("alice"));
    let denial = limiter.peek("alice").decision().into_result().unwrap_err();
    let text = r#"{"reason":"penalty","retry_after_ns":60000000000,"dimension":0,"quota":0,"block":1,"violated":[0]}"#;
    assert_eq!(to_string(&denial).unwrap(), text);
}

#[test]
fn joint_statuses_are_written_quota_by_quota() {
    let clock = MockClock::new();
    let builder = JointLimiter::<[u8]>::builder().clock(clock.clone()).shadow(true);
    let builder = builder.dimension("user", [Quota::per_second(2), Quota::per_minute(3)]);
    let limiter = builder.dimension("path", [Quota::per_minute(2)]).build().unwrap();
    let _ = limiter.try_acquire([1, 2]).unwrap();
    clock.advance(Duration::from_nanos(5));
    let _ = limiter.try_acquire([1, 2]).unwrap();
    // The limiter is in shadow mode: the admission has the denial that it overrules.
    let written = to_string(&limiter.try_acquire_status([1, 2]).unwrap()).unwrap();
    let denial =
        r#"{"reason":"quota","retry_after_ns":59999999995,"dimension":1,"quota":0,"block":null,"violated":[0,1]}"#;
    let decision = format!(r#"{{"admitted":{{"delay_ns":0,"is_counted":false,"overruled":{denial}}}}}"#);
    let left = |dimension: u8, quota: u8, is_violated: bool, numbers: &str| {
        format!(r#"{{"dimension":{dimension},"quota":{quota},"is_violated":{is_violated},{numbers}}}"#)
    };
    let quotas = [
        left(0, 0, true, r#""limit":2,"remaining":0,"next_after_ns":999999995,"reset_after_ns":1000000000"#),
        left(0, 1, false, r#""limit":3,"remaining":1,"next_after_ns":59999999995,"reset_after_ns":60000000000"#),
        left(1, 0, true, r#""limit":2,"remaining":0,"next_after_ns":59999999995,"reset_after_ns":60000000000"#),
    ];
    assert_eq!(written, format!(r#"{{"decision":{decision},"quotas":[{}]}}"#, quotas.join(",")));
}
