//! Changes of quotas.

use core::time::Duration;

use proptest::prelude::*;

use super::super::bucket::Bucket;
use super::super::line::Queue;
use super::super::windows::{Counter, Window};
use super::super::{Account, STATE_BITS, Verdict};
use super::any::AnyAccount;
use super::traffic::{END_OF_TIME, START_OF_TIME, account, lengths, meter, origin, quota, requests};
use crate::decision::Left;
use crate::quota::Quota;

const START: u64 = START_OF_TIME + (1 << 40);
const SECOND: u64 = 1_000_000_000;

/// The state after a charge that is admitted at once.
fn charged(account: AnyAccount, state: u128, now: u64, cost: u32) -> u128 {
    match account.decide(state, now, cost, None) {
        Verdict::Admit { state, .. } => state,
        verdict => panic!("{verdict:?}"),
    }
}

fn remaining(account: AnyAccount, state: u128, now: u64) -> u32 {
    account.left(state, now, None).remaining
}

fn bucket(capacity: u32, permits: u32, period: u64) -> AnyAccount {
    AnyAccount::Bucket(Bucket::new(capacity, permits, period, capacity))
}

fn window(limit: u32, window: u64, boundary: Option<u64>) -> AnyAccount {
    AnyAccount::Window(Window::new(limit, window, boundary))
}

fn counter(limit: u32, window: u64, boundary: u64) -> AnyAccount {
    AnyAccount::Counter(Counter::new(limit, window, Some(boundary)))
}

#[test]
fn another_name_or_another_way_to_write_it_is_the_same_account() {
    let [of, other] = [
        Quota::token_bucket(60, 60, Duration::from_secs(60)).named("a"),
        Quota::token_bucket(60, 1, Duration::from_secs(1)).named("b"),
    ]
    .map(|quota| AnyAccount::of(quota, START).expect("an account"));
    assert_eq!(of, other);
    let state = charged(of, 0, START, 7);
    assert_eq!(other.converted(&of, state, START + 5), state);
}

#[test]
fn a_bucket_lacks_as_many_permits_as_before() {
    let (slow, fast) = (bucket(10, 1, 10), bucket(100, 3, 7));
    let state = charged(slow, 0, START, 8);
    // 7.7 are missing.
    let converted = fast.converted(&slow, state, START + 3);
    assert_eq!(remaining(fast, converted, START + 3), 92);
    assert_eq!(remaining(fast, converted, START + 4), 92);
    assert_eq!(remaining(fast, converted, START + 5), 93);
    // More than a small one holds is owed.
    let small = bucket(3, 1, 10);
    let converted = small.converted(&slow, state, START + 3);
    assert_eq!(
        small.left(converted, START + 3, None),
        Left { limit: 3, remaining: 0, next_after_ns: 57, reset_after_ns: 77 }
    );
    // So are reserved permits.
    let Verdict::Admit { state, .. } = slow.decide(state, START, 10, Some(u64::MAX)) else { panic!("to be had") };
    assert_eq!(small.left(small.converted(&slow, state, START), START, None).reset_after_ns, 180);
    assert_eq!(fast.left(fast.converted(&slow, state, START), START, None).remaining, 82);
    // A full one is full, and one that was never asked was never asked.
    assert_eq!(remaining(fast, fast.converted(&slow, state, START + 1000), START + 1000), 100);
    assert_eq!(fast.converted(&slow, 0, START), 0);
}

#[test]
fn changes_to_and_fro_keep_no_bucket_from_refilling_and_no_queue_from_draining() {
    let buckets = [bucket(10, 1, 10 * SECOND), bucket(10, 7, 70 * SECOND - 1)];
    let queues = [(3, 30 * SECOND), (7, 70 * SECOND - 1)]
        .map(|(leak, period)| AnyAccount::Queue(Queue::new(10, leak, period, 100 * SECOND)));
    for [one, other] in [buckets, queues] {
        let mut state = charged(one, 0, START, 10);
        let over_at = one.over_at(state);
        // Every 10 ms, for 100 s less a bit.
        for change in 0..9_990 {
            let now = START + change * SECOND / 100;
            let (from, to) = if change % 2 == 0 { (&one, &other) } else { (&other, &one) };
            state = to.converted(from, state, now);
        }
        assert!(one.over_at(state).abs_diff(over_at) < 10_000, "{} ns later", one.over_at(state).abs_diff(over_at));
    }
}

#[test]
fn permits_of_another_quota_are_not_refunded_to_a_bucket() {
    let (mut one, mut other) = (bucket(10, 1, 10), bucket(10, 1, 20));
    let mut state = 0;
    for _ in 0..3 {
        let receipt = charged(one, state, START, 2);
        state = other.converted(&one, receipt, START);
        assert_eq!(other.refund(state, START, receipt, 2, 0), None);
        (one, other) = (other, one);
    }
}

#[test]
fn the_next_place_leaves_when_it_would_have() {
    let queue = |leak, period, delay| AnyAccount::Queue(Queue::new(5, leak, period, delay));
    let (old, new) = (queue(3, 10, 100), queue(2, 9, 50));
    let state = charged(old, 0, START, 4);
    let converted = new.converted(&old, state, START + 1);
    assert_eq!(new.over_at(converted), START + 14);
    let Verdict::Admit { delay_ns, .. } = new.decide(converted, START + 1, 1, None) else { panic!("a place") };
    assert_eq!(delay_ns, 13);
    // Also if that is later than one can be told to wait.
    let fast = queue(2, 2, 0);
    assert_eq!(fast.over_at(fast.converted(&old, state, START + 1)), START + 14);
}

#[test]
fn a_queue_that_was_idle_knows_that_its_quota_has_changed() {
    let queue = |permits, period| AnyAccount::Queue(Queue::new(10, permits, period, 10 * period));
    // A nanosecond has two ticks of the one, and one of the other.
    let (old, new) = (queue(2, 15), queue(1, 20));
    let receipt = charged(old, 0, START, 1);
    // By the other the line is free after as many ticks.
    let now = 2 * START + 15 - 20;
    let state = charged(new, new.converted(&old, receipt, START), now, 1);
    assert_eq!(new.refund(state, now, receipt, 1, 0), None);
}

#[test]
fn a_window_keeps_its_permits_and_its_start_if_it_can() {
    let boundary = START - 30;
    for (from, start) in [(window(5, 100, Some(boundary)), boundary), (window(5, 100, None), START)] {
        let (state, now) = (charged(from, 0, START, 3), START + 60);
        for other in [None, Some(boundary), Some(boundary + 50), Some(START + 1)] {
            let to = window(7, 100, other);
            // The start of the aligned window of the change, if the present one is not aligned.
            let keeps = other.is_none_or(|other| start.abs_diff(other) % 100 == 0);
            let start = if keeps { start } else { now - (now - other.expect("aligned")) % 100 };
            let converted = to.converted(&from, state, now);
            let left = Left { remaining: 4, ..Left::none_for(7, start + 100 - now) };
            assert_eq!(to.left(converted, now, None), left, "{from:?} to {to:?}");
            assert_eq!(remaining(to, converted, start + 100), 7, "and ends");
            // Receipts are of a window.
            let refunded =
                to.refund(converted, now, state, 3, 0).map(|(state, permits)| (permits, remaining(to, state, now)));
            assert_eq!(refunded, keeps.then_some((3, 7)));
        }
        // By its new length.
        let longer = window(2, 300, Some(start));
        let left = Left::none_for(2, start + 300 - now);
        assert_eq!(longer.left(longer.converted(&from, state, now), now, None), left);
        let shorter = window(2, now - start, None);
        assert_eq!(shorter.converted(&from, state, now), 0);
        // What is over stays over.
        assert_eq!(longer.converted(&from, state, start + 100), 0);
    }
}

#[test]
fn a_receipt_of_before_a_change_of_the_phase_is_worth_nothing_after_a_change_back() {
    let (from, to) = (window(5, 100, Some(START)), window(5, 100, Some(START + 30)));
    let receipt = charged(from, 0, START + 40, 2);
    let back = from.converted(&to, to.converted(&from, receipt, START + 50), START + 60);
    assert_eq!(from.left(back, START + 60, None), Left { remaining: 3, ..Left::none_for(5, 40) });
    assert_eq!(from.refund(back, START + 60, receipt, 2, 0), None);
}

#[test]
fn a_receipt_of_before_a_change_of_the_length_is_worth_nothing_in_a_window_that_begins_alike() {
    let pairs =
        [[window(5, 10, Some(START)), window(5, 1000, Some(START))], [counter(5, 10, START), counter(5, 1000, START)]];
    for [from, to] in pairs {
        let receipt = charged(from, 0, START + 1, 2);
        let state = to.converted(&from, receipt, START + 20);
        assert_eq!(state, 0, "over");
        let state = charged(to, state, START + 21, 3);
        assert_eq!(to.refund(state, START + 22, receipt, 2, 0), None);
    }
}

/// Seconds, as they are usual.
#[test]
fn usual_lengths_of_fixed_windows_have_numbers_that_differ() {
    let lengths =
        [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 21_600, 43_200, 86_400, 604_800];
    let opened = |seconds: u64| charged(window(5, seconds * SECOND, Some(0)), 0, START, 1) >> 93;
    let mut numbers = lengths.map(opened);
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
}

/// The window before the current one has another start under another length.
#[test]
fn a_receipt_of_two_windows_ago_refunds_nothing_after_a_change_of_the_length() {
    let (short, long) = (counter(10, 10, START), counter(10, 20, START));
    let receipt = charged(short, 0, START + 5, 3);
    let state = charged(short, receipt, START + 19, 5);
    let state = long.converted(&short, state, START + 25);
    assert_eq!(long.refund(state, START + 25, receipt, 3, 0), None);
}

/// Four in a second and two in a second are one in a period each.
#[test]
fn a_receipt_of_before_a_change_of_the_rate_is_worth_nothing_to_a_warm_up() {
    let of = |rate| {
        let quota = Quota::warm_up(40, rate, Duration::from_secs(1), Duration::from_secs(10));
        AnyAccount::of(quota, START_OF_TIME).expect("a warm-up")
    };
    let (fast, slow) = (of(4), of(2));
    let receipt = charged(fast, charged(fast, 0, START, 1), START + 10 * SECOND, 8);
    let state = slow.converted(&fast, receipt, START + 10 * SECOND);
    assert_eq!(slow.refund(state, START + 10 * SECOND, receipt, 8, 0), None);
}

#[test]
fn a_counters_window_that_is_over_counts_no_more() {
    let (from, to) = (counter(5, 10, START), counter(5, 1000, START));
    let state = charged(from, 0, START, 5);
    assert_eq!(to.converted(&from, state, START + 20), 0);
    // The previous count is over, the current one is not. As it is in another window now, it is
    // rounded up to a permit more.
    let state = charged(from, charged(from, 0, START, 4), START + 15, 1);
    let converted = to.converted(&from, state, START + 20);
    assert_eq!(remaining(to, converted, START + 20), 3);
}

#[test]
fn a_dropped_reservation_and_a_change_leave_all_of_a_counter() {
    let (from, to) = (counter(5, 10, START), counter(6, 10, START));
    let after = charged(from, 0, START + 1, 5);
    // Dropped before the change.
    let (dropped, 5) = from.refund(after, START + 2, after, 5, 0).expect("it counts") else { panic!("fewer") };
    assert_eq!(remaining(to, to.converted(&from, dropped, START + 12), START + 12), 6);
    // And after it: in the same window, and in the next.
    for now in [START + 2, START + 12] {
        let converted = to.converted(&from, after, now);
        let (state, permits) = to.refund(converted, now, after, 5, 0).expect("it counts");
        assert_eq!((permits, remaining(to, state, now)), (5, 6));
    }
}

#[test]
fn the_counts_of_a_counter_of_another_phase_are_in_the_aligned_window() {
    let (from, to) = (counter(8, 100, START), counter(8, 100, START + 30));
    let state = to.converted(&from, charged(from, 0, START + 10, 8), START + 20);
    let faded = |now| remaining(to, state, now);
    assert_eq!([20, 29, 30, 42, 43, 129, 130].map(|after| faded(START + after)), [0, 0, 0, 0, 1, 7, 8]);
    assert_eq!(to.decide(state, START + 20, 1, None), Verdict::Deny { wait_ns: 23, state: None });
    let state = charged(to, state, START + 43, 1);
    assert_eq!(to.over_at(state), START + 230);
    // A previous count that would end later is granted anew, as far as it would weigh.
    let state = charged(from, charged(from, 0, START + 10, 4), START + 120, 1);
    assert_eq!(remaining(from, state, START + 120), 3);
    let state = to.converted(&from, state, START + 120);
    assert_eq!(remaining(to, state, START + 120), 3);
}

#[test]
fn an_account_of_another_algorithm_is_new() {
    let state = charged(bucket(5, 1, 10), 0, START, 1);
    assert_eq!(window(5, 10, None).converted(&bucket(5, 1, 10), state, START), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_same_quota_keeps_the_state(meter in meter(), origin in origin(), state in 0..1_u128 << STATE_BITS, now: u64) {
        let Some(quota) = quota(meter) else { return Ok(()) };
        let [of, other] = [quota, quota.named("other")].map(|quota| AnyAccount::of(quota, origin).expect("an account"));
        prop_assert_eq!(other.converted(&of, state, now), state);
    }

    #[test]
    fn any_change_leaves_an_account_that_tells_its_waits(
        from in meter(), to in meter(), origin in origin(), requests in requests(), within: u64,
    ) {
        let (old, new) = (account(from, origin), account(to, origin));
        let (mut state, mut now) = (0, origin);
        for request in requests {
            now = request.gap.after(now, lengths(from), 0);
            if now > END_OF_TIME {
                return Ok(());
            }
            let cost = request.cost.permits(from.limit(), remaining(old, state, now));
            if let Verdict::Admit { state: after, .. } = old.decide(state, now, cost, Some(within)) {
                state = after;
            }
        }
        let converted = new.converted(&old, state, now);
        prop_assert!(converted < 1 << STATE_BITS);
        // A line or a bucket keeps its debt, up to 73 years of it.
        let longest = if matches!(new, AnyAccount::Window(_) | AnyAccount::Counter(_)) { lengths(to)[5] } else { 1 << 60 };
        let Left { reset_after_ns, .. } = new.left(converted, now, None);
        prop_assert!(converted == 0 || reset_after_ns <= 2 * longest + 1, "{} of {}", reset_after_ns, longest);
        if let Verdict::Deny { wait_ns, state } = new.decide(converted, now, 1, None) {
            let state = state.unwrap_or(converted);
            let passes = [wait_ns - 1, wait_ns].map(|wait| matches!(new.decide(state, now + wait, 1, None), Verdict::Admit { .. }));
            prop_assert_eq!(passes, [false, true]);
        }
    }
}
