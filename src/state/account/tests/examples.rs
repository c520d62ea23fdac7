//! Examples worked out by hand, and one for each thing that went wrong before.

use super::super::bucket::Bucket;
use super::super::line::Queue;
use super::super::windows::{Counter, Window};
use super::super::{Account, STATE_BITS, Verdict};
use super::traffic::{END_OF_TIME, START_OF_TIME};
use crate::decision::Left;

const START: u64 = START_OF_TIME + (1 << 40);
const MOST: u32 = 1 << 30;

fn admit(account: &impl Account, state: u128, after: u64, cost: u32) -> u128 {
    match account.decide(state, START + after, cost, None) {
        Verdict::Admit { state, .. } => state,
        verdict => panic!("{verdict:?}"),
    }
}

fn wait(account: &impl Account, state: u128, after: u64, cost: u32) -> u64 {
    match account.decide(state, START + after, cost, None) {
        Verdict::Admit { .. } => 0,
        Verdict::Deny { wait_ns, .. } => wait_ns,
    }
}

fn remaining(account: &impl Account, state: u128, after: u64) -> u32 {
    account.left(state, START + after, None).remaining
}

#[test]
fn fractions_of_a_permit_are_kept() {
    // Three every ten nanoseconds.
    let bucket = Bucket::new(5, 3, 10, 5);
    let state = admit(&bucket, 0, 0, 5);
    assert_eq!([0, 3, 4, 16, 17].map(|after| remaining(&bucket, state, after)), [0, 0, 1, 4, 5]);
    let state = admit(&bucket, state, 4, 1);
    assert_eq!((wait(&bucket, state, 6, 1), wait(&bucket, state, 7, 1)), (1, 0));
}

#[test]
fn a_bucket_that_starts_low_begins_to_earn_when_it_is_first_asked() {
    let bucket = Bucket::new(5, 1, 10, 2);
    // Until then it earns nothing, and says so.
    let never = Left { limit: 5, remaining: 2, next_after_ns: u64::MAX, reset_after_ns: u64::MAX };
    assert_eq!([START, START + 1000].map(|now| bucket.left(0, now, None)), [never, never]);
    let Verdict::Deny { wait_ns: 10, state: Some(state) } = bucket.decide(0, START, 3, None) else {
        panic!("too many")
    };
    assert_eq!(
        bucket.left(state, START + 4, None),
        Left { limit: 5, remaining: 2, next_after_ns: 6, reset_after_ns: 26 }
    );
    assert_eq!((wait(&bucket, state, 9, 3), wait(&bucket, state, 10, 3)), (1, 0));
    assert_eq!(bucket.decide(state, START + 9, 4, None), Verdict::Deny { wait_ns: 11, state: None });
    assert_eq!(bucket.over_at(state), u64::MAX);
    // One that starts with all of it tells nothing of that kind.
    assert_eq!(Bucket::new(5, 1, 10, 5).left(0, START, None), Left::all(5));
}

#[test]
fn a_permit_is_refunded_until_the_bucket_has_been_full() {
    let bucket = Bucket::new(10, 1, 10, 10);
    let first = admit(&bucket, 0, 0, 3);
    let second = admit(&bucket, first, 5, 2);
    let (state, 3) = bucket.refund(second, START + 5, first, 3, 0).expect("it counts") else { panic!("fewer") };
    // Three more than the 5.5 that were left.
    assert_eq!([5, 9, 10].map(|after| remaining(&bucket, state, after)), [8, 8, 9]);
    assert_eq!(bucket.over_at(state), START + 20);
    // Full at 50: a charge after that is none of its own.
    let third = admit(&bucket, second, 50, 4);
    assert_eq!(bucket.refund(third, START + 50, second, 2, 0), None);
    assert_eq!(bucket.refund(third, START + 90, third, 4, 0), None);
    assert!(bucket.refund(third, START + 89, third, 4, 0).is_some());
}

#[test]
fn refunds_without_end_make_no_bucket_that_owes_give_back_more() {
    let bucket = Bucket::new(4, 1, 1000, 4);
    let mut state = admit(&bucket, 0, 0, 1);
    let reserve = |state| match bucket.decide(state, START, 3, Some(u64::MAX)) {
        Verdict::Admit { state, .. } => state,
        verdict @ Verdict::Deny { .. } => panic!("{verdict:?}"),
    };
    state = reserve(state);
    let held = reserve(state);
    for _ in 0..600 {
        // One more that is taken back at once, which leaves the count of refunds.
        let Verdict::Admit { state: one_more, .. } = bucket.decide(state, START, 1, Some(u64::MAX)) else {
            panic!("full")
        };
        if let Some((back, _)) = bucket.refund(one_more, START, one_more, 1, 0) {
            state = back;
        }
    }
    // By now it knows no longer that nothing was refunded since.
    let last = reserve(state);
    assert_eq!(bucket.refund(last, START, last, 3, 0), None);
    assert_eq!(bucket.refund(last, START, held, 3, 0), None);
}

#[test]
fn refunds_without_end_are_no_wait() {
    let bucket = Bucket::new(4, 1, 1000, 4);
    let mut state = admit(&bucket, 0, 0, 1);
    for _ in 0..200 {
        let one_more = admit(&bucket, state, 0, 1);
        state = bucket.refund(one_more, START, one_more, 1, 0).expect("it counts").0;
    }
    let receipt = admit(&bucket, state, 0, 2);
    // Nobody waits for a cost that is settled, so all is given back.
    let debt = bucket.owe(receipt, START, 10);
    assert_eq!(bucket.refund(debt, START, receipt, 2, 0).map(|(_, permits)| permits), Some(2));
}

#[test]
fn each_place_of_a_queue_leaves_after_the_one_before() {
    // Three every ten nanoseconds, a delay of up to seven: three places.
    let queue = Queue::new(3, 3, 10, 7);
    let mut state = 0;
    for delay in [0, 4, 7] {
        let Verdict::Admit { state: after, delay_ns } = queue.decide(state, START, 1, None) else { panic!("a place") };
        assert_eq!(delay_ns, delay);
        state = after;
    }
    assert_eq!(queue.left(state, START, None), Left::none_for(3, 3));
    assert_eq!([0, 2, 3].map(|after| wait(&queue, state, after, 1)), [3, 1, 0]);
    assert_eq!(queue.over_at(state), START + 10);
}

#[test]
fn a_queue_of_which_all_is_left_has_nothing_to_wait_for() {
    let queue = Queue::new(6, 1, 100, 500);
    let state = admit(&queue, 0, 0, 5);
    assert_eq!(queue.left(state, START, None), Left::all(6));
    let state = admit(&queue, state, 0, 6);
    assert_eq!(queue.left(state, START, None), Left::none_for(6, 600));
}

#[test]
fn no_clock_is_told_a_delay_above_the_maximum() {
    let queue = Queue::new(6, 1, 100, 500);
    let state = admit(&queue, 0, 1000, 1);
    let Verdict::Admit { delay_ns: 500, .. } = queue.decide(state, START + 600, 1, None) else { panic!("a place") };
    assert_eq!(queue.decide(state, START + 599, 1, None), Verdict::Deny { wait_ns: 1, state: None });
    assert_eq!(queue.decide(state, START + 700, 1, Some(300)), Verdict::Deny { wait_ns: 100, state: None });
}

#[test]
fn only_the_last_place_of_a_queue_is_refunded() {
    let queue = Queue::new(6, 1, 100, 500);
    let first = admit(&queue, 0, 0, 1);
    let second = admit(&queue, first, 10, 2);
    assert_eq!(queue.refund(second, START + 10, first, 1, 0), None);
    assert_eq!(queue.refund(second, START + 10, second, 2, 0), Some((first, 2)));
    assert_eq!(queue.refund(first, START + 100, first, 1, 0), None);
    let (empty, 1) = queue.refund(first, START + 99, first, 1, 0).expect("it has not left") else { panic!("all") };
    assert_eq!(wait(&queue, empty, 0, 1), 0);
}

#[test]
fn a_window_is_half_open() {
    let window = Window::new(3, 10, None);
    let state = admit(&window, 0, 7, 2);
    assert_eq!([16, 17].map(|after| remaining(&window, state, after)), [1, 3]);
    assert_eq!([16, 17].map(|after| wait(&window, state, after, 2)), [1, 0]);
    // A clock that lags does not open another.
    assert_eq!(wait(&window, state, 0, 2), 17);
    assert_eq!(window.over_at(state), START + 17);
    assert_eq!(window.refund(state, START + 16, state, 2, 0).map(|(_, permits)| permits), Some(2));
    assert_eq!(window.refund(state, START + 17, state, 2, 0), None);
}

#[test]
fn a_window_whose_permits_were_all_refunded_is_like_none() {
    let window = Window::new(3, 10, None);
    let after = admit(&window, 0, 0, 3);
    let (state, 3) = window.refund(after, START + 5, after, 3, 0).expect("it is open") else { panic!("all") };
    assert_eq!((window.left(state, START + 5, None), window.over_at(state)), (Left::all(3), 0));
    let next = admit(&window, state, 5, 3);
    assert_eq!(window.over_at(next), START + 15);
    assert_eq!(window.refund(next, START + 6, after, 3, 0), None, "of another window");
}

#[test]
fn aligned_windows_lie_side_by_side() {
    let window = Window::new(3, 10, Some(START + 4));
    let state = admit(&window, 0, 3, 3);
    assert_eq!([3, 4].map(|after| wait(&window, state, after, 1)), [1, 0]);
    assert_eq!(window.over_at(admit(&window, state, 13, 1)), START + 14);
}

#[test]
fn the_example_of_the_counters_source() {
    // "A limit of 50 per minute, 42 in the previous minute, 18 in the current one, which started
    // 15 seconds ago": 42 * 45 / 60 + 18 = 49.5.
    let second = 1_000_000_000;
    let counter = Counter::new(50, 60 * second, Some(START));
    let full = admit(&counter, 0, 0, 42);
    let state = admit(&counter, full, 75 * second, 18);
    assert_eq!(remaining(&counter, state, 75 * second), 0);
    // 31 of 42 weigh 44.3 seconds.
    let passes_after = 120 * second - 31 * 60 * second / 42;
    assert_eq!(wait(&counter, state, 75 * second, 1), passes_after - 75 * second);
}

#[test]
fn the_next_window_of_a_counter_weighs_the_current_count() {
    let counter = Counter::new(10, 100, Some(START));
    let state = admit(&counter, 0, 0, 8);
    // The current count alone is in the way: half of it has to fade.
    assert_eq!([99, 149, 150].map(|after| wait(&counter, state, after, 6)), [51, 1, 0]);
    let full = admit(&counter, state, 0, 2);
    assert_eq!([0, 199, 200].map(|after| wait(&counter, full, after, 10)), [200, 1, 0]);
    assert_eq!(counter.over_at(full), START + 200);
    // Taken from the window that they were granted in.
    let next = admit(&counter, state, 150, 6);
    let refund =
        |after: u64, receipt, cost| counter.refund(next, START + after, receipt, cost, 0).map(|(_, back)| back);
    assert_eq!([199, 200].map(|after| refund(after, state, 8)), [Some(8), None]);
    assert_eq!([199, 299, 300].map(|after| refund(after, next, 6)), [Some(6), Some(6), None]);
    assert_eq!(counter.refund(admit(&counter, 0, 500, 1), START + 500, state, 8, 0), None);
}

#[test]
fn the_largest_counts_and_times_fit() {
    let window = (1 << 59) - 1;
    let limit = crate::Quota::MAX_COUNTER_LIMIT;
    let counter = Counter::new(limit, window, Some(START));
    let full = admit(&counter, 0, 0, limit);
    let state = admit(&counter, full, window + window / 2, limit / 2);
    assert_eq!(remaining(&counter, state, window + window / 2), 0);
    assert!(wait(&counter, state, window + window / 2, limit) > window);
    let late = END_OF_TIME - START;
    assert_eq!(counter.over_at(admit(&counter, state, late, limit)).div_ceil(1 << 40), {
        let start = (END_OF_TIME - START) / window * window + START;
        (start + 2 * window).div_ceil(1 << 40)
    });
    // It fills in a time that is not whole, and nobody waits for longer.
    let (bucket, most) = (Bucket::new(MOST, MOST - 1, MOST.into(), MOST), u64::from(MOST));
    let empty = admit(&bucket, 0, late, MOST);
    assert_eq!(bucket.left(empty, END_OF_TIME, None), Left { next_after_ns: 2, ..Left::none_for(MOST, most + 2) });
    assert_eq!(bucket.decide(empty, END_OF_TIME, MOST, Some(u64::MAX)), Verdict::Deny { wait_ns: 1, state: None });
    let Verdict::Admit { state, delay_ns } = bucket.decide(empty, END_OF_TIME, MOST - 1, Some(u64::MAX)) else {
        panic!("to be had")
    };
    assert_eq!((delay_ns, bucket.over_at(state)), (most, END_OF_TIME + 2 * most + 2));
    assert!(state < 1 << STATE_BITS);
}
