//! Histories against a naive list of grants.

use super::*;
use proptest::prelude::*;

/// Grants as they were made: step and permits. Asked the naive way.
#[derive(Debug, Default)]
struct Naive(Vec<(u64, u32)>);

impl Naive {
    fn counting(&self, steps: &Steps, time: u64) -> u32 {
        let newest = self.0.last().map_or(0, |&(step, _)| step);
        // A lagging time counts as the first moment of the newest step.
        let begun = if newest > 0 { steps.origin + (newest - 1) * steps.resolution + 1 } else { steps.origin };
        let time = time.max(begun);
        let counts = |&&(step, _): &&(u64, u32)| time < steps.origin + (step + steps.window) * steps.resolution;
        self.0.iter().filter(counts).map(|(_, permits)| permits).sum()
    }

    fn words(&self) -> (u64, u32, u32, Vec<AtomicU64>) {
        let mut before = 0_u32.wrapping_sub(5);
        let mut words = vec![];
        let Some((&(step, used), older)) = self.0.split_last() else { return (0, 0, before, words) };
        for &(step, permits) in older {
            words.push(AtomicU64::new(Entry::new(step, before).0));
            before = before.wrapping_add(permits);
        }
        (step, used, before, words)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn it_is_what_a_list_of_grants_says(
        resolution in 1_u64..6, window in 1_u64..9, limit in 1_u32..12, origin in 0_u64..20,
        // Around a number at which the lower halves of steps begin again.
        first in prop_oneof![0_u64..3, (1_u64 << 32) - 4..(1 << 32) + 2],
        asks in prop::collection::vec((0_u64..30, 0_u64..10, 1_u32..5), 1..40),
    ) {
        let steps = Steps { limit, resolution, window, origin };
        let (mut naive, mut latest) = (Naive::default(), origin + first * resolution);
        for (pass, lag, cost) in asks {
            let cost = cost.min(limit);
            latest += pass;
            let time = latest.saturating_sub(lag).max(origin);
            let (step, used, start, words) = naive.words();
            let history = History { step, used, start, entries: &words };
            let fits = |time| naive.counting(&steps, time) + cost <= limit;
            let left = history.left(&steps, time);
            let remaining = |time| limit.saturating_sub(naive.counting(&steps, time));
            prop_assert_eq!((left.limit, left.remaining), (limit, remaining(time)));
            prop_assert_eq!(left.reset_after_ns, history.reset_after(&steps, time));
            let next = time + left.next_after_ns;
            prop_assert!(match left.remaining == limit {
                true => next == time,
                false => remaining(next) > left.remaining && remaining(next - 1) == left.remaining,
            }, "{:?}", left);
            let reset = time + history.reset_after(&steps, time);
            prop_assert!(naive.counting(&steps, reset) == 0 && (reset == time || naive.counting(&steps, reset - 1) > 0));
            // The first step that ends no earlier, found one by one from near it.
            let near = (time - origin) / resolution;
            let belongs = (near..).find(|step| origin + step * resolution >= time).unwrap();
            match history.verdict(&steps, time, cost) {
                Verdict::Deny(until) => {
                    prop_assert!(!fits(time) && until > time && fits(until) && !fits(until - 1));
                }
                Verdict::Charge => {
                    prop_assert!(fits(time) && belongs <= step);
                    match naive.0.last_mut() {
                        Some((_, used)) => *used += cost,
                        None => naive.0.push((step, cost)),
                    }
                }
                Verdict::Begin(begun) => {
                    prop_assert!(fits(time) && begun == belongs && begun > step);
                    let kept: Vec<_> = history.kept(&steps, begun).map(|entry| entry.age(begun)).collect();
                    prop_assert!(kept.iter().all(|&age| (1..=window).contains(&age)) && kept.is_sorted_by(|a, b| a > b));
                    // A dropped step counts no more, even at the first moment of the new one.
                    let before = naive.0.len();
                    naive.0.retain(|&(step, _)| kept.contains(&(begun - step)));
                    prop_assert_eq!(kept.len(), naive.0.len());
                    prop_assert!(before >= naive.0.len());
                    naive.0.push((begun, cost));
                }
            }
        }
    }

    #[test]
    fn around_takes_a_short_way_to_the_same(resolution in 1_u64..1 << 40, passed in 0_u64..1 << 61, off in -3_i64..4) {
        let steps = Steps { limit: 1, resolution, window: 1, origin: 7 };
        let (down, up) = (passed / resolution, passed.div_ceil(resolution));
        prop_assert_eq!(steps.around(up.saturating_add_signed(off), passed + 7), (down, up));
        prop_assert_eq!(steps.step_of(passed + 7), up);
    }
}

#[test]
fn nothing_that_may_be_read_makes_it_panic() {
    let words = [AtomicU64::new(u64::MAX), AtomicU64::new(0), AtomicU64::new(7 << 32)];
    for step in [0, 1, u64::MAX, u64::MAX / 2] {
        for time in [0, 1, u64::MAX] {
            for (resolution, window) in [(1, 1), (1 << 59, 2), (7, 1 << 14)] {
                let steps = Steps { limit: 1 << 30, resolution, window, origin: 1 << 60 };
                let history = History { step, used: u32::MAX, start: 3, entries: &words };
                let _ = history.verdict(&steps, time, 1);
                let _ = (history.left(&steps, time), history.left_after(&steps, time, step, 1));
                let _ = history.kept(&steps, step.saturating_add(1)).count();
            }
        }
    }
}
