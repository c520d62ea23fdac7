//! Requests on several keys at once, which come and go at the key cap.

use std::time::Duration;

use stopped_threads::chance::Chance;
use stopped_threads::run::{Stops, run};
use tollgate::{Clock, Decision, DenialReason, JointLimiter, Quota};

use crate::Ticks;
use tollgate_kit::checker::{Event, Expiry, Limit, Run, Told};

const STOPS: u32 = 40;
const DIMENSIONS: usize = 2;

pub(crate) fn round(seed: u64) -> Stops {
    let mut chance = Chance::new(seed, usize::MAX / 2);
    let limits = [(); DIMENSIONS]
        .map(|()| Limit { permits: 1 + chance.below(4), window: [2, 10, 50][chance.below(3) as usize] });
    let least = limits.iter().map(|limit| limit.permits).min().expect("two");
    let (keys, cap) = (2 + chance.below(3), [3, 5, 16][chance.below(3) as usize]);
    let clock = Ticks::default();
    let quota = |limit: Limit| [Quota::new(limit.permits, Duration::from_nanos(limit.window))];
    let builder =
        JointLimiter::<[u32]>::builder().dimension("one", quota(limits[0])).dimension("other", quota(limits[1]));
    let limiter = builder.key_cap(cap).clock(clock.clone()).build().expect("good quotas");
    let (notes, stops) = run(
        seed,
        STOPS,
        |_| [(); DIMENSIONS].map(|()| Vec::new()),
        |notes: &mut [Vec<Event>; DIMENSIONS], chance| {
            clock.pass(chance, limits[0].window.max(limits[1].window));
            let mut asked = [(); DIMENSIONS].map(|()| (!chance.one_in(6)).then(|| chance.below(keys)));
            // A request has a key.
            asked[0] = asked[0].or_else(|| asked[1].is_none().then(|| chance.below(keys)));
            let cost = 1 + chance.below(least);
            let (before, is_peek) = (clock.now(), chance.one_in(6));
            let named = asked.each_ref().map(Option::as_ref);
            let decision = if is_peek {
                limiter.peek_n(named, cost).map(|it| it.decision())
            } else {
                limiter.try_acquire_n(named, cost)
            };
            let (decision, after) = (decision.expect("two keys, a small cost"), clock.now());
            let mut note = |dimension: usize, told| {
                let key = asked[dimension]
                    .unwrap_or_else(|| panic!("seed {seed}: {decision:?} names a key that was not asked"));
                notes[dimension].push(Event { key, cost, before, after, told });
            };
            match decision {
                Decision::Admitted(_) if is_peek => {}
                Decision::Admitted(_) => {
                    (0..DIMENSIONS)
                        .filter(|&dimension| asked[dimension].is_some())
                        .for_each(|it| note(it, Told::Admitted));
                }
                Decision::Denied(denial) if denial.reason() == DenialReason::Quota => {
                    denial.violated().for_each(|dimension| note(dimension, Told::InTheWay));
                }
                Decision::Denied(_) => {}
            }
        },
    );
    for (dimension, &limit) in limits.iter().enumerate() {
        let events = notes.iter().flat_map(|notes| &notes[dimension]).copied().collect();
        let run = Run { limits: vec![limit], events, reading_error: 0, expiry: Expiry::EachOnItsOwn };
        let about = format!("seed {seed}, dimension {dimension} of {limits:?}, {keys} keys, at most {cap}");
        run.check().unwrap_or_else(|fault| panic!("{about}: {fault:?}"));
        let not_in_the_way = run.not_in_the_way();
        assert!(not_in_the_way.is_empty(), "{about}: {:?}", not_in_the_way[0]);
    }
    stops
}
