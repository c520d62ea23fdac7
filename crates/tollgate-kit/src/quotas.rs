//! The quota of a meter.

use std::time::Duration;

use tollgate::Quota;

use crate::oracle::Rule;
use crate::oracle::meter::Meter;

/// The quota that has the meter, whose times `$long` makes a `Duration` of. A macro, since the
/// library's own tests have another type `$Quota` than this crate.
///
/// Of the buckets that start full, those of an even capacity don't say so.
#[macro_export]
macro_rules! quota_of {
    ($Quota:ident, $meter:expr, $long:expr) => {{
        use $crate::oracle::meter::Meter;
        let long = $long;
        let phase_of = |phase: u128| long(u64::try_from(phase).expect("short"));
        match $meter {
            Meter::TokenBucket { capacity, refill, per, start } => {
                let bucket = $Quota::token_bucket(capacity, refill, long(per));
                if start == capacity && capacity % 2 == 0 { bucket } else { bucket.starting_with(start) }
            }
            Meter::LeakyBucket { capacity, leak, per } => $Quota::leaky_bucket(capacity, leak, long(per)),
            Meter::LeakyQueue { leak, per, max_delay } => $Quota::leaky_queue(leak, long(per), long(max_delay)),
            Meter::FixedWindow { limit, window, phase: None } => $Quota::fixed_window(limit, long(window)),
            Meter::FixedWindow { limit, window, phase: Some(phase) } => {
                $Quota::fixed_window(limit, long(window)).aligned(phase_of(phase))
            }
            Meter::SlidingCounter { limit, window, phase } => {
                $Quota::sliding_counter(limit, long(window)).aligned(phase_of(phase))
            }
            Meter::QuantisedLog { limit, window, resolution } => {
                $Quota::quantised_log(limit, long(window), long(resolution))
            }
        }
    }};
}

impl Meter {
    /// Times are in nanoseconds.
    pub fn quota(self) -> Quota {
        quota_of!(Quota, self, Duration::from_nanos)
    }

    /// The length of time that the quota is made of.
    pub fn period(self) -> u64 {
        match self {
            Self::TokenBucket { per, .. } | Self::LeakyBucket { per, .. } | Self::LeakyQueue { per, .. } => per,
            Self::FixedWindow { window, .. } | Self::SlidingCounter { window, .. } => window,
            Self::QuantisedLog { resolution, .. } => resolution,
        }
    }
}

impl Rule {
    /// Times are in nanoseconds.
    pub fn quota(self) -> Quota {
        Quota::new(self.limit, Duration::from_nanos(self.window))
    }
}
