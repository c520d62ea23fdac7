//! Which quotas the answer to a denied request names.

use std::time::Duration;

use tollgate_http::Usage;

const WAIT: Duration = Duration::from_secs(8);

fn left(remaining: u32) -> Usage {
    Usage { remaining, next_after: Duration::from_secs(1) }
}

#[test]
fn a_quota_with_fewer_permits_than_the_cost_is_named_as_it_is() {
    for remaining in 0..10 {
        for decides in [false, true] {
            let violated = left(remaining).violated(5, WAIT, decides);
            if remaining < 5 {
                assert_eq!(violated, Some(left(remaining)), "{remaining}");
            } else {
                assert_eq!(violated.is_some(), decides, "{remaining}");
            }
        }
    }
}

/// A refund came between the denial and the look.
#[test]
fn a_quota_that_decides_the_wait_is_named_though_it_has_enough_by_then() {
    for cost in 1..5 {
        let then = Usage { remaining: cost - 1, next_after: WAIT };
        assert_eq!(left(7).violated(cost, WAIT, true), Some(then));
    }
}
