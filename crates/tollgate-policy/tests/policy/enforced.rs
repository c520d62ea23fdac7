//! Files with a percentage of keys for which limits are enforced.

use tollgate::{DefaultFingerprinter, Limiter, MockClock, Quota};
use tollgate_policy::Policy;

const KEYS: u64 = 2_000;

fn seeded() -> DefaultFingerprinter {
    DefaultFingerprinter::with_seed(1, 7)
}

/// The keys of `0..KEYS` that a limiter without a file denies their second request.
fn denied_without_a_file(percent: u8) -> Vec<u64> {
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(percent).fingerprinter(seeded());
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    (0..KEYS).filter(|key| limiter.try_acquire_many([key; 2])[1].is_denied()).collect()
}

fn policy(head: &str) -> Policy {
    format!("{head}\n[[dimension]]\nname = \"key\"\nquota = [{{ limit = 1, per = \"1m\" }}]").parse().unwrap()
}

#[test]
fn a_file_has_the_percentage_and_it_changes_in_use() {
    let clock = MockClock::new();
    let built = policy("enforced_percent = 30");
    assert_eq!((built.enforced_percent(), built.shadow()), (Some(30), None));
    assert_eq!(built.to_string().parse(), Ok(built.clone()));
    let limiter = built.builder::<(u64,)>().unwrap().clock(clock.clone()).fingerprinter(seeded()).build().unwrap();
    let denied = || {
        limiter.clear();
        let second = |&key: &u64| limiter.try_acquire_many([(key,); 2])[1].as_ref().unwrap().is_denied();
        (0..KEYS).filter(second).collect::<Vec<_>>()
    };
    assert_eq!(denied(), denied_without_a_file(30));
    for (head, percent) in [
        ("enforced_percent = 60", 60),
        ("shadow = true", 0),
        ("enforced_percent = 1", 1),
        ("", 100),
        ("enforced_percent = 0", 0),
        ("shadow = false", 100),
    ] {
        policy(head).apply(&limiter).unwrap();
        assert_eq!(denied(), denied_without_a_file(percent), "{head:?}");
    }
}

#[test]
fn a_file_says_it_in_one_way() {
    let refused = |head: &str| {
        format!("{head}\n[[dimension]]\nname = \"key\"\nquota = []").parse::<Policy>().unwrap_err().to_string()
    };
    let both = refused("shadow = true\nenforced_percent = 5");
    assert!(both.starts_with("line 2, column 20: ") && both.contains("remove `shadow`"), "{both}");
    let much = refused("enforced_percent = 101");
    assert!(much.contains("101 % of the keys: give a number from 0 to 100"), "{much}");
}
