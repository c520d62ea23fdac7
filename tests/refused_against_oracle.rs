//! Logs that count refused requests, against a list of all requests: the answers must be the same, to the nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{DirectLimiter, Limiter, MockClock, Quota};

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

/// The time of each permit that was ever asked for, granted or not.
struct Naive {
    /// Limits and windows.
    quotas: Vec<(usize, u64)>,
    asked: Vec<u64>,
}

impl Naive {
    fn fits(&self, at: u64, cost: usize) -> bool {
        self.quotas
            .iter()
            .all(|&(limit, window)| self.asked.iter().filter(|&&time| at < time + window).count() + cost <= limit)
    }

    /// Nothing if it is admitted, or how long the same request would have to wait if nobody else came.
    fn ask(&mut self, now: u64, cost: usize) -> Option<u64> {
        let fits = self.fits(now, cost);
        self.asked.extend((0..cost).map(|_| now));
        (!fits).then(|| (0..).find(|&wait| self.fits(now + wait, cost)).expect("it fits once all have expired"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_requests_count(
        quotas in prop::collection::vec((1..10_usize, 1..60_u64), 1..4),
        requests in prop::collection::vec((1..5_usize, prop_oneof![0..3_u64, 0..30_u64, 0..200_u64]), 1..60),
    ) {
        let clock = MockClock::new();
        let given: Vec<Quota> = quotas
            .iter()
            .map(|&(limit, window)| Quota::new(u32::try_from(limit).expect("small"), nanos(window)).counting_refused())
            .collect();
        let mut builder = Limiter::<str>::builder(given[0]).clock(clock.clone());
        for &quota in &given[1..] {
            builder = builder.and(quota);
        }
        let (limiter, direct) = (builder.build().expect("logs"), DirectLimiter::with_quotas(&given, clock.clone()).expect("logs"));
        let (mut naive, mut now) = (Naive { quotas: quotas.clone(), asked: vec![] }, 0);
        let most = quotas.iter().map(|&(limit, _)| limit).min().expect("a quota");
        for (cost, pass) in requests {
            clock.advance(nanos(pass));
            now += pass;
            let cost = cost.min(most);
            let looks = naive.fits(now, cost);
            prop_assert_eq!(limiter.peek_n("alice", cost.try_into().expect("small")).expect("small").is_admitted(), looks);
            let expected = naive.ask(now, cost).map(nanos);
            for decision in [limiter.try_acquire_n("alice", cost.try_into().expect("small")), direct.try_acquire_n(cost.try_into().expect("small"))] {
                prop_assert_eq!(decision.expect("small").retry_after(), expected, "{} at {}", cost, now);
            }
        }
    }
}
