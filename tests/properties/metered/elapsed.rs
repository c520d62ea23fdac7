//! Grants by the time that has really passed.

use super::*;

/// What a key is known to have been granted by the time that has really passed: every step of the
/// clock forward, and none back.
#[derive(Debug)]
pub(super) struct Lived {
    naive: Naive,
    granted: Vec<(u64, u32)>,
}

impl<S: Facade> Pair<S> {
    /// By the time that has really passed, no more is granted than may be.
    pub(super) fn lives_up(&mut self, key: u32, cost: u32) -> Checked {
        let (passed, meter) = (self.passed, self.meter);
        let new = || Lived { naive: Naive::new(meter, 0, passed), granted: vec![] };
        let lived = self.lived.entry(key).or_insert_with(new);
        lived.granted.push((passed, cost));
        let right = match meter {
            // What such a bucket has earned began with a request that was denied, perhaps.
            Meter::TokenBucket { capacity, start, .. } if start < capacity => true,
            Meter::TokenBucket { .. } | Meter::LeakyBucket { .. } | Meter::LeakyQueue { .. } => {
                lived.naive.admits(passed, cost)
            }
            Meter::FixedWindow { limit, window, phase: None } => divides(&lived.granted, limit, window),
            Meter::FixedWindow { .. } | Meter::SlidingCounter { .. } => true,
            // No more than the exact log.
            Meter::QuantisedLog { limit, window, .. } => {
                let live = lived.granted.iter().filter(|(granted, _)| passed - granted < window);
                live.map(|&(_, cost)| u64::from(cost)).sum::<u64>() <= limit.into()
            }
        };
        lived.naive.grant(passed, cost);
        if right { Ok(()) } else { Err(format!("by the time that has passed it is too much: {lived:?}")) }
    }
}

/// Whether grants, in the order of their times, can be divided into windows that begin with one of
/// them, at least a window's length apart, and hold no more than the limit.
fn divides(granted: &[(u64, u32)], limit: u32, window: u64) -> bool {
    let mut begins = vec![false; granted.len()];
    begins[0] = true;
    for first in 0..granted.len() {
        if !begins[first] {
            continue;
        }
        let mut held = 0;
        for (next, &(time, cost)) in granted.iter().enumerate().skip(first) {
            if next > first && time - granted[first].0 >= window {
                begins[next] = true;
            }
            held += cost;
            if held > limit {
                break;
            }
            if next + 1 == granted.len() {
                return true;
            }
        }
    }
    false
}
