//! The warm-up, beside the formulas of its source in floating point, and what follows from them.

use core::time::Duration;

use proptest::prelude::*;

use super::super::line::WarmUp;
use super::super::{Account, STATE_BITS, Verdict};
use super::any::AnyAccount;
use super::traffic::{END_OF_TIME, START_OF_TIME, period, permits};
use crate::decision::Left;
use crate::quota::Quota;

const SECOND: u64 = 1_000_000_000;
const START: u64 = START_OF_TIME + (1 << 40);

/// Permits stored, and when it is free: as the source has it, in nanoseconds since [`START`].
struct Floating {
    interval: f64,
    threshold: f64,
    most: f64,
    slope: f64,
    stored: f64,
    free_at: f64,
}

impl Floating {
    fn new(interval: f64, warm_up: f64) -> Self {
        let threshold = 0.5 * warm_up / interval;
        let most = threshold + 2.0 * warm_up / (interval + 3.0 * interval);
        let slope = (3.0 * interval - interval) / (most - threshold);
        Self { interval, threshold, most, slope, stored: most, free_at: 0.0 }
    }

    fn take(&mut self, now: f64, cost: u32) {
        let cool_down = self.interval * self.threshold * 2.0 / self.most;
        if now > self.free_at {
            self.stored = self.most.min(self.stored + (now - self.free_at) / cool_down);
            self.free_at = now;
        }
        let spent = self.stored.min(cost.into());
        let above = (self.stored - self.threshold).max(0.0);
        let slow = above.min(spent);
        let of = |permits: f64| self.interval + permits * self.slope;
        let time = slow * (of(above) + of(above - slow)) / 2.0 + (f64::from(cost) - slow) * self.interval;
        self.stored -= spent;
        self.free_at += time;
    }
}

/// That of such a quota, if it is valid.
fn limiter(limit: u32, permits: u32, period: u64, warm_up: u64) -> Option<WarmUp> {
    let quota = Quota::warm_up(limit, permits, Duration::from_nanos(period), Duration::from_nanos(warm_up));
    quota.validate().is_ok().then(|| WarmUp::new(limit, permits, period, warm_up))
}

fn admit(account: &WarmUp, state: u128, now: u64, cost: u32) -> u128 {
    match account.decide(state, now, cost, None) {
        Verdict::Admit { state, delay_ns: 0 } => state,
        verdict => panic!("{verdict:?} at {now}"),
    }
}

/// How long after `now` it is free.
fn busy(account: &WarmUp, state: u128, now: u64) -> u64 {
    account.left(state, now, None).next_after_ns
}

/// The permits of one each that a cold limiter admits within a time, to those who ask again as soon
/// as they may.
fn admitted_within(account: &WarmUp, time: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (0, START, 0);
    while now < START + time {
        state = admit(account, state, now, 1);
        now += busy(account, state, now);
        admitted += 1;
    }
    admitted
}

#[test]
fn a_cold_limiter_admits_a_third_of_its_rate_and_then_rises_to_it() {
    // 100 a second after 10 seconds. It stores 1000, and spends half of them on the way.
    let account = limiter(100, 100, SECOND, 10 * SECOND).expect("a warm-up");
    assert_eq!(admitted_within(&account, 10 * SECOND), 500);
    assert_eq!(admitted_within(&account, 12 * SECOND), 700);
    // A bit more than 33, as it has risen a bit within a second.
    assert_eq!(admitted_within(&account, SECOND), 35);
    // A large request is admitted at once, and the next one waits for as long as its permits take.
    let one_by_one = (0..100).fold((0, START), |(state, now), _| {
        let state = admit(&account, state, now, 1);
        (state, now + busy(&account, state, now))
    });
    let at_once = admit(&account, 0, START, 100);
    let took = [one_by_one.1 - START, busy(&account, at_once, START)];
    assert!(took[0].abs_diff(took[1]) <= 100, "{took:?} but for 100 roundings");
}

#[test]
fn a_limiter_that_was_idle_for_the_warm_up_is_as_new() {
    let account = limiter(10, 7, SECOND, 3 * SECOND).expect("a warm-up");
    let (mut state, mut now) = (0, START);
    for _ in 0..100 {
        state = admit(&account, state, now, 3);
        now += busy(&account, state, now);
    }
    // It is warm: three in 3/7 of a second.
    assert_eq!(busy(&account, admit(&account, state, now, 3), now), 3 * SECOND / 7 + 1);
    let over_at = account.over_at(state);
    assert!((now + 3 * SECOND).abs_diff(over_at) <= 1);
    assert_eq!(admit(&account, state, over_at, 1), admit(&account, 0, over_at, 1));
    assert_ne!(admit(&account, state, over_at - 1, 1), admit(&account, 0, over_at - 1, 1));
}

#[test]
fn a_limiter_that_stores_large_parts_is_as_new_at_the_first_time_that_it_says() {
    // 900 million permits are stored, in quarters: one takes some 250 ns.
    let account = limiter(10, 1_000_003, SECOND, 900 * SECOND).expect("a warm-up");
    let state = admit(&account, 0, START, 2);
    let over_at = account.over_at(state);
    assert_eq!(admit(&account, state, over_at, 1), admit(&account, 0, over_at, 1));
    assert_ne!(admit(&account, state, over_at - 1, 1), admit(&account, 0, over_at - 1, 1));
}

#[test]
fn it_admits_whoever_comes_when_it_is_free_and_nobody_before() {
    let account = limiter(5, 10, SECOND, SECOND).expect("a warm-up");
    let state = admit(&account, 0, START, 2);
    let wait_ns = busy(&account, state, START);
    assert_eq!(account.left(state, START, None), Left::none_for(5, wait_ns));
    assert_eq!(account.left(state, START + wait_ns, None), Left::all(5));
    assert_eq!(account.decide(state, START, 5, None), Verdict::Deny { wait_ns, state: None });
    assert_eq!(account.decide(state, START + wait_ns - 1, 1, None), Verdict::Deny { wait_ns: 1, state: None });
    assert!(matches!(account.decide(state, START + wait_ns, 5, None), Verdict::Admit { delay_ns: 0, .. }));
    // A reservation waits for it.
    assert_eq!(account.decide(state, START, 1, Some(wait_ns - 3)), Verdict::Deny { wait_ns: 3, state: None });
    let Verdict::Admit { state, delay_ns } = account.decide(state, START, 1, Some(wait_ns)) else { panic!("no wait") };
    assert_eq!(delay_ns, wait_ns);
    assert!(busy(&account, state, START) > wait_ns);
}

#[test]
fn reservations_wait_no_longer_than_a_request_of_the_limit_takes() {
    let account = limiter(5, 10, SECOND, SECOND).expect("a warm-up");
    let longest = busy(&account, admit(&account, 0, START, 5), START);
    let (mut state, mut delays) = (0, vec![]);
    while let Verdict::Admit { state: after, delay_ns } = account.decide(state, START, 1, Some(u64::MAX)) {
        (state, _) = (after, delays.push(delay_ns));
    }
    assert!(delays.iter().all(|&delay| delay <= longest) && delays.len() > 4, "{delays:?} of {longest}");
}

#[test]
fn the_last_request_can_be_refunded() {
    let account = limiter(50, 10, SECOND, SECOND).expect("a warm-up");
    let before = admit(&account, 0, START, 2);
    let now = START + busy(&account, before, START);
    let after = admit(&account, before, now, 3);
    let (state, permits) = account.refund(after, now, after, 3, 0).expect("the last");
    assert_eq!((state, permits), (before, 3));
    let other = admit(&account, before, now, 1);
    assert_eq!(account.refund(other, now, after, 3, 0), None);
    assert_eq!(account.refund(after, account.over_at(after), after, 3, 0), None);
    // What was not stored is stored: it is colder than before.
    let (state, _) =
        account.refund(admit(&account, 0, START, 50), START, admit(&account, 0, START, 50), 50, 0).expect("the last");
    assert!(busy(&account, state, START) > 0);
}

#[test]
fn a_change_keeps_the_time_at_which_it_is_free_and_how_cold_it_is() {
    let new =
        |permits, seconds| AnyAccount::WarmUp(limiter(100, permits, SECOND, seconds * SECOND).expect("a warm-up"));
    let (old, faster) = (new(10, 10), new(30, 10));
    let Verdict::Admit { state, .. } = old.decide(0, START, 40, None) else { panic!("free") };
    assert_eq!(old.converted(&new(10, 10), state, START), state);
    assert_eq!(old.converted(&faster, 0, START), 0);
    let converted = faster.converted(&old, state, START);
    assert_eq!(faster.left(converted, START, None).next_after_ns, old.left(state, START, None).next_after_ns);
    // 60 of 100 were left, so 180 of 300: an idle time of 4 of 10 seconds is missing in both.
    assert_eq!(faster.over_at(converted).abs_diff(old.over_at(state)), 0);
    // Also where no request takes it for as long.
    let small = AnyAccount::WarmUp(limiter(1, 1000, SECOND, SECOND).expect("a warm-up"));
    assert_eq!(
        small.left(small.converted(&old, state, START), START, None).next_after_ns,
        old.left(state, START, None).next_after_ns
    );
}

#[test]
fn what_can_not_be_counted_is_refused_by_the_quota() {
    for (limit, permits, period, warm_up) in [
        (0, 1, 1, 1),
        (1, 0, 1, 1),
        (1, 1, 0, 1),
        (1, 1, 1, 0),
        ((1 << 30) + 1, 1, 1, 1),
        (1, 1, 1, 1 << 60),
        (1, 1, 1 << 60, 1),
        // More than 2^30 permits are stored.
        (1, 1, 1, (1 << 30) + 1),
        // The last of them takes too long.
        (1 << 30, 1, 1 << 31, 1),
    ] {
        assert_eq!(limiter(limit, permits, period, warm_up), None, "{limit} {permits} {period} {warm_up}");
    }
    assert!(limiter(1, 1, 1, 1 << 30).is_some());
}

/// Requests, each so many thousandths of the last one's wait or of the warm-up later.
fn requests() -> impl Strategy<Value = Vec<(bool, u64, u32)>> {
    proptest::collection::vec((any::<bool>(), prop_oneof![Just(1000), 1000..1500_u64, Just(0)], 1..2000_u32), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn it_is_free_when_the_formulas_of_the_source_say(
        permits in prop_oneof![1..20_u32, 1..5000_u32, Just(99_991), Just(1_000_003)],
        milliseconds in 1..20_000_u64, warm_up in 1..900_u64, requests in requests(),
    ) {
        let (period, warm_up) = (milliseconds * 1_000_000, warm_up * SECOND);
        let Some(account) = limiter(2000, permits, period, warm_up) else { return Ok(()) };
        let interval = period as f64 / f64::from(permits);
        let mut floating = Floating::new(interval, warm_up as f64);
        let (mut state, mut now) = (0, START);
        for (of_warm_up, thousandths, cost) in requests {
            let wait = busy(&account, state, now);
            let gap = if of_warm_up { warm_up * (thousandths % 1000) / 1000 } else { wait * thousandths / 1000 };
            now += gap.max(wait);
            state = admit(&account, state, now, cost);
            floating.take((now - START) as f64, cost);
            let free_at = (now - START + busy(&account, state, now)) as f64;
            // A part of a permit that was rounded makes little difference; so do nanoseconds.
            let close = 100.0 + interval * 1e-4 + floating.free_at * 1e-9;
            prop_assert!((free_at - floating.free_at).abs() < close, "{} and not {}", free_at, floating.free_at);
        }
    }

    /// However the permits are grouped, they take as long as the area says, and not more than a
    /// tick longer for each request.
    #[test]
    fn the_time_of_permits_is_that_of_their_area(
        period in 1..2_000_000_000_u64, warm_up in 1..1_u64 << 40, costs in proptest::collection::vec(1..100_u32, 1..50),
    ) {
        // With one permit a period, a tick is a nanosecond.
        let Some(account) = limiter(100, 1, period, warm_up) else { return Ok(()) };
        let (mut state, mut permits, mut requests) = (0, 0_u128, 0);
        for cost in costs {
            let Verdict::Admit { state: after, .. } = account.decide(state, START, cost, Some(u64::MAX)) else { break };
            (state, permits, requests) = (after, permits + u128::from(cost), requests + 1);
        }
        let [period, warm_up] = [period, warm_up].map(u128::from);
        // Twice the stored time above the half, before and after.
        let after = (warm_up * 2).saturating_sub(2 * permits * period).saturating_sub(warm_up);
        let extra = warm_up * warm_up - after * after;
        let took = u128::from(busy(&account, state, START)) - permits * period;
        prop_assert!(2 * warm_up * took >= extra, "never earlier");
        prop_assert!(2 * warm_up * took < extra + 2 * warm_up * requests, "a tick for each request at most");
    }

    #[test]
    fn extreme_numbers_are_answered_exactly_and_without_a_panic(
        limit in permits(), permits in permits(), period in period(), warm_up in period(),
        start in prop_oneof![Just(START_OF_TIME), Just(END_OF_TIME - (1 << 60)), START_OF_TIME..1 << 61],
        requests in requests(), within: u64,
    ) {
        let Some(account) = limiter(limit, permits, period, warm_up) else { return Ok(()) };
        let (mut state, mut now) = (0, start);
        for (ahead, thousandths, cost) in requests {
            let wait = busy(&account, state, now);
            now += u64::try_from(u128::from(wait) * u128::from(thousandths) / 1000).expect("short");
            if now > END_OF_TIME {
                break;
            }
            let cost = cost.min(limit);
            let verdict = account.decide(state, now, cost, ahead.then_some(within));
            match verdict {
                Verdict::Admit { state: after, delay_ns } => {
                    prop_assert!(after > 0 && after < 1 << STATE_BITS);
                    prop_assert_eq!(delay_ns, busy(&account, state, now));
                    prop_assert!(busy(&account, after, now) > delay_ns || period < u64::from(permits));
                    let (refunded, permits) = account.refund(after, now, after, cost, 0).unwrap_or((after, 0));
                    prop_assert!(permits == cost || busy(&account, after, now) == 0);
                    prop_assert!(busy(&account, refunded, now) >= delay_ns, "never more than before");
                    state = after;
                }
                Verdict::Deny { wait_ns, .. } => {
                    let ask = |now| account.decide(state, now, cost, ahead.then_some(within));
                    let passes = [now + wait_ns - 1, now + wait_ns].map(|now| matches!(ask(now), Verdict::Admit { .. }));
                    prop_assert_eq!(passes, [false, true]);
                }
            }
            let over_at = account.over_at(state).max(now);
            prop_assert_eq!(account.decide(state, over_at, cost, None), account.decide(0, over_at, cost, None));
        }
        let other = limiter(limit, 1, period, 1000).map(AnyAccount::WarmUp);
        if let Some(other) = other {
            let account = AnyAccount::WarmUp(account);
            prop_assert!(other.converted(&account, state, now) < 1 << STATE_BITS);
            let back = account.converted(&other, other.converted(&account, state, now), now);
            prop_assert!(back < 1 << STATE_BITS);
            let _ = (account.left(back, now, None), account.decide(back, now, 1, None));
        }
    }

    #[test]
    fn nonsense_is_answered_without_a_panic(
        limit in permits(), permits in permits(), period in period(), warm_up in period(),
        state in 0..1_u128 << STATE_BITS, now: u64, cost: u32, within: u64,
    ) {
        let Some(account) = limiter(limit, permits, period, warm_up) else { return Ok(()) };
        let _ = (account.decide(state, now, cost, None), account.decide(state, now, cost, Some(within)));
        let _ = (account.refund(state, now, state, cost, 0), account.left(state, now, None), account.over_at(state));
    }
}

/// Reservations fill a line up to its longest delay, which need not be whole nanoseconds.
#[cfg(feature = "snapshot")]
#[test]
fn a_restore_leaves_a_line_as_long_as_reservations_made_it() {
    let mut full = 0;
    for (permits, period, warm_up) in (1..40).flat_map(|r| (20..60).flat_map(move |p| [1, 2, 5].map(|w| (r, p, w)))) {
        let Some(account) = limiter(1, permits, period, warm_up) else { continue };
        let (mut state, mut now) = (0, 1 << 60);
        for _ in 0..4 {
            match account.decide(state, now, 1, Some(u64::MAX)) {
                Verdict::Admit { state: reserved, .. } => state = reserved,
                Verdict::Deny { wait_ns, .. } => {
                    // As soon as it fits.
                    now += wait_ns;
                    full += 1;
                    continue;
                }
            }
            assert_eq!(account.moved_in_time(state, 0, now), state, "{permits} per {period}, {warm_up} to warm up");
        }
    }
    assert!(full > 100, "{full} full lines");
}
