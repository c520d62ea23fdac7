//! The quota of a meter.

use super::*;

pub(super) fn period(meter: Meter) -> u64 {
    match meter {
        Meter::TokenBucket { per, .. } | Meter::LeakyBucket { per, .. } | Meter::LeakyQueue { per, .. } => per,
        Meter::FixedWindow { window, .. } | Meter::SlidingCounter { window, .. } => window,
        Meter::QuantisedLog { resolution, .. } => resolution,
    }
}

pub(crate) fn quota(meter: Meter) -> Quota {
    let long = Duration::from_nanos;
    match meter {
        Meter::TokenBucket { capacity, refill, per, start } if start == capacity => {
            Quota::token_bucket(capacity, refill, long(per))
        }
        Meter::TokenBucket { capacity, refill, per, start } => {
            Quota::token_bucket(capacity, refill, long(per)).starting_with(start)
        }
        Meter::LeakyBucket { capacity, leak, per } => Quota::leaky_bucket(capacity, leak, long(per)),
        Meter::LeakyQueue { leak, per, max_delay } => Quota::leaky_queue(leak, long(per), long(max_delay)),
        Meter::FixedWindow { limit, window, phase: None } => Quota::fixed_window(limit, long(window)),
        Meter::FixedWindow { limit, window, phase: Some(phase) } => {
            Quota::fixed_window(limit, long(window)).aligned(long(u64::try_from(phase).expect("short")))
        }
        Meter::SlidingCounter { limit, window, phase } => {
            Quota::sliding_counter(limit, long(window)).aligned(long(u64::try_from(phase).expect("short")))
        }
        Meter::QuantisedLog { limit, window, resolution } => {
            Quota::quantised_log(limit, long(window), long(resolution))
        }
    }
}
