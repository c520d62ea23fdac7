//! A quota in words, for reports and messages.

use core::fmt;

use super::value::{Kind, Quota};
use crate::duration::Plain;

/// Writes the numbers of the quota: `100 per 1m`. The name of the algorithm comes before them,
/// unless it is the sliding window log. The [name](Quota::named) of the quota comes first:
/// `user-1m: 100 per 1m`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// assert_eq!(Quota::per_minute(100).to_string(), "100 per 1m");
/// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
/// assert_eq!(bucket.to_string(), "token bucket of 20, refilled by 5 per 1s");
/// ```
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, limit, window) = (self.algorithm(), self.limit, Plain(self.window));
        if let Some(name) = self.name() {
            write!(f, "{name}: ")?;
        }
        match self.kind {
            Kind::Log => write!(f, "{limit} per {window}")?,
            Kind::TokenBucket { refill, per } => {
                write!(f, "{algorithm} of {limit}, refilled by {refill} per {}", Plain(per))?;
            }
            Kind::LeakyBucket { leak, per } => write!(f, "{algorithm} of {limit}, leaking {leak} per {}", Plain(per))?,
            Kind::LeakyQueue { leak, per, max_delay } => {
                write!(f, "{algorithm}, {leak} per {}, delayed by at most {}", Plain(per), Plain(max_delay))?;
            }
            Kind::FixedWindow => write!(f, "{algorithm}, {limit} per {window}")?,
            Kind::SlidingCounter { window } => write!(f, "{algorithm}, {limit} per {}", Plain(window))?,
            Kind::QuantisedLog { window, resolution } => {
                write!(f, "{algorithm}, {limit} per {} in steps of {}", Plain(window), Plain(resolution))?;
            }
            Kind::WarmUp { rate, per, warm_up } => {
                write!(f, "{algorithm} of {} to {rate} per {}, at most {limit} at once", Plain(warm_up), Plain(per))?;
            }
        }
        if let Some(start) = self.start {
            write!(f, ", starting with {start}")?;
        }
        if let Some(phase) = self.phase {
            write!(f, ", aligned to {}", Plain(phase))?;
        }
        if self.counts_refused {
            f.write_str(", refused requests counted")?;
        }
        Ok(())
    }
}
