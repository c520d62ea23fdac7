//! The list of denied keys, behind limiters of each kind.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Absent, DirectLimiter, JointLimiter, Limiter, MockClock, Penalty, Quota};
use tollgate_observe::{DeniedKey, TopDenied};

fn shown(denied: &TopDenied) -> Vec<String> {
    denied.top(9).iter().map(DeniedKey::to_string).collect()
}

#[test]
fn the_key_that_decides_the_wait_is_counted_in_its_dimension() {
    let denied = Arc::new(TopDenied::new(9));
    let limiter = JointLimiter::<(String, IpAddr)>::builder()
        .dimension("user", [Quota::per_minute(3)])
        .dimension("address", [Quota::per_hour(5)])
        .observer(Arc::clone(&denied))
        .clock(MockClock::new())
        .build()
        .unwrap();
    let address = |last| IpAddr::from([203, 0, 113, last]);
    let _ = limiter.try_acquire_many([("alice", address(1)); 5]);
    let _ = limiter.try_acquire_many([("bob", address(1)); 9]);
    assert!(limiter.try_acquire((Absent, address(1))).unwrap().is_denied());
    // Two of the user, and of the address those of bob and of nobody.
    assert_eq!(shown(&denied), ["8 address 203.0.113.1", "2 user alice"]);
    let top = denied.top(1);
    assert_eq!((top[0].key(), top[0].dimension()), ("203.0.113.1", Some("address")));
    assert_eq!(denied.denials(), 10);
}

#[test]
fn shadow_mode_penalties_and_lists_are_seen() {
    let denied = Arc::new(TopDenied::new(9));
    let limiter = Limiter::<str>::builder(Quota::per_minute(1))
        .shadow(true)
        .list_cap(1)
        .penalty(Penalty::new(2, Duration::from_secs(60), Duration::from_secs(600)))
        .observer(Arc::clone(&denied))
        .clock(MockClock::new())
        .build()
        .unwrap();
    limiter.deny("mallory").unwrap();
    let requests = ["alice", "mallory", "alice", "alice", "alice", "bob"];
    assert!(limiter.try_acquire_many(requests).iter().all(|decision| decision.is_admitted()));
    assert_eq!(shown(&denied), ["3 alice", "1 mallory"]);
}

#[test]
fn a_limiter_without_keys_has_nobody_to_name() {
    let denied = Arc::new(TopDenied::new(9));
    let limiter = DirectLimiter::builder(Quota::per_minute(1)).observer(Arc::clone(&denied)).build().unwrap();
    assert!(limiter.try_acquire().is_admitted());
    assert!(limiter.try_acquire().is_denied());
    assert_eq!((shown(&denied), denied.denials()), (vec![], 0));
}

#[test]
fn a_key_is_shown_as_the_caller_says() {
    let denied = Arc::new(TopDenied::new(9).text(|_| "(hidden)".to_owned()));
    let builder = Limiter::<str>::builder(Quota::per_minute(1)).observer(Arc::clone(&denied));
    let _ = builder.build().unwrap().try_acquire_many(["alice", "alice", "bob", "bob", "bob"]);
    assert_eq!(shown(&denied), ["2 (hidden)", "1 (hidden)"]);
    assert!(!format!("{denied:?}").contains("hidden"));
}

/// With more keys than there is room for, each count is right to within its error, and the keys
/// with most denials are listed.
#[test]
fn threads_with_a_thousand_keys_lose_no_denial() {
    let denied = Arc::new(TopDenied::new(50));
    let builder = Limiter::<u64>::builder(Quota::per_hour(1)).observer(Arc::clone(&denied));
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let limiter = &limiter;
            scope.spawn(move || {
                for round in 0..3_000 {
                    let _ = limiter.try_acquire(1_000 + thread % 2);
                    let _ = limiter.try_acquire((round * 4 + thread) % 997);
                }
            });
        }
    });
    // Of 24,000 requests the first of each of 999 keys was admitted.
    assert_eq!(denied.denials(), 24_000 - 999);
    let top = denied.top(2);
    let mut keys: Vec<&str> = top.iter().map(DeniedKey::key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["1000", "1001"]);
    for key in &top {
        assert!((key.count() - key.error()..=key.count()).contains(&5_999), "{key}");
        assert!(key.error() <= denied.denials() / 50, "{key}");
    }
    denied.clear();
    assert_eq!((shown(&denied), denied.denials()), (vec![], 0));
}

proptest! {
    /// What the authors of Space-Saving prove, against exact counts.
    #[test]
    fn counts_are_within_their_errors_and_frequent_keys_are_listed(
        room in 1_usize..8,
        // Small numbers come more often.
        keys in prop::collection::vec((0_u32..20).prop_map(|key| key * key / 20), 0..400),
    ) {
        let denied = Arc::new(TopDenied::new(room));
        let builder = Limiter::<u32>::builder(Quota::per_hour(1)).observer(Arc::clone(&denied));
        let limiter = builder.clock(MockClock::new()).build().unwrap();
        let mut exact = HashMap::<String, u64>::new();
        for key in keys {
            if limiter.try_acquire(key).is_denied() {
                *exact.entry(key.to_string()).or_default() += 1;
            }
        }
        let all: u64 = exact.values().sum();
        let top = denied.top(usize::MAX);
        prop_assert_eq!(denied.denials(), all);
        prop_assert_eq!(top.iter().map(DeniedKey::count).sum::<u64>(), all);
        prop_assert_eq!(top.len(), room.min(exact.len()));
        prop_assert!(top.is_sorted_by(|one, next| one.count() >= next.count()));
        for key in &top {
            prop_assert!((key.count() - key.error()..=key.count()).contains(&exact[key.key()]), "{}", key);
            prop_assert!(key.error() <= all / room as u64, "{}", key);
        }
        for (key, is) in exact {
            prop_assert!(is <= all / room as u64 || top.iter().any(|listed| listed.key() == key), "{} is not listed", key);
        }
    }
}
