//! Texts and numbers of decisions.

use super::*;

#[test]
fn seconds_are_rounded_up_and_at_least_one_and_do_not_overflow() {
    let secs = |ns| Denial::new(ns, DenialReason::Quota, 0).retry_after_secs();
    let second = 1_000_000_000;
    assert_eq!([0, 1, second - 1, second].map(secs), [Some(1); 4]);
    assert_eq!([second + 1, 2 * second, 2 * second + 1].map(secs), [Some(2), Some(2), Some(3)]);
    assert_eq!(secs(Denial::NEVER - 1), Some(18_446_744_074));
    assert_eq!(secs(Denial::NEVER), None);
    assert_eq!(Decision::Admitted(Admission::delayed(0)).retry_after_secs(), None);
}

#[test]
fn a_decision_says_how_it_came_about() {
    let denied = |ns, reason| Decision::Denied(Denial::new(ns, reason, 0));
    let cases = [
        (Decision::Admitted(Admission::delayed(0)), "admitted"),
        (Decision::Admitted(Admission::delayed(2_500_000)), "admitted after a delay of 2.5ms"),
        (Decision::Admitted(Admission::UNCOUNTED), "admitted without a charge"),
        (
            denied(1, DenialReason::Quota).overrule(),
            "admitted in shadow mode in place of a denial (too many requests: try again in 1 s)",
        ),
        (denied(59_953_576_428, DenialReason::Quota), "too many requests: try again in 60 s"),
        (denied(1, DenialReason::KeyCap), "the limiter is at its key cap: try again in 1 s"),
        (denied(1, DenialReason::Penalty), "blocked after too many denied requests: try again in 1 s"),
        (denied(Denial::NEVER, DenialReason::DenyList), "on the deny list: trying again does not help"),
    ];
    for (decision, text) in cases {
        assert_eq!(decision.to_string(), text);
    }
}
