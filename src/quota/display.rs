//! A quota in words, for reports and messages.

use core::fmt;

use tollgate_duration::format_duration as text;

use super::value::{Kind, Quota};

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
        let (algorithm, limit) = (self.algorithm(), self.limit);
        if let Some(name) = self.name() {
            write!(f, "{name}: ")?;
        }
        match self.kind {
            Kind::Log => write!(f, "{limit} per {}", text(self.window)),
            Kind::TokenBucket { refill, per } => {
                write!(f, "{algorithm} of {limit}, refilled by {refill} per {}", text(per))
            }
            Kind::LeakyBucket { leak, per } => write!(f, "{algorithm} of {limit}, leaking {leak} per {}", text(per)),
            Kind::LeakyQueue { leak, per, max_delay } => {
                write!(f, "{algorithm}, {leak} per {}, delayed by at most {}", text(per), text(max_delay))
            }
            Kind::FixedWindow => write!(f, "{algorithm}, {limit} per {}", text(self.window)),
            Kind::SlidingCounter { window } => write!(f, "{algorithm}, {limit} per {}", text(window)),
            Kind::QuantisedLog { window, resolution } => {
                write!(f, "{algorithm}, {limit} per {} in steps of {}", text(window), text(resolution))
            }
            Kind::WarmUp { rate, per, warm_up } => {
                write!(f, "{algorithm} of {} to {rate} per {}, at most {limit} at once", text(warm_up), text(per))
            }
        }?;
        if let Some(start) = self.start {
            write!(f, ", starting with {start}")?;
        }
        if let Some(phase) = self.phase {
            write!(f, ", aligned to {}", text(phase))?;
        }
        if self.counts_refused {
            f.write_str(", refused requests counted")?;
        }
        Ok(())
    }
}
