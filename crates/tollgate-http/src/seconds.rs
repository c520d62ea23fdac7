//! Waits in whole seconds, as header fields carry them.

use core::time::Duration;

/// The largest integer of a structured field (RFC 9651, section 3.3.1).
pub(crate) const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Seconds, rounded up; at most [`MAX_INTEGER`].
pub(crate) fn ceil(wait: Duration) -> u64 {
    let started = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(started).min(MAX_INTEGER)
}

/// The value of `Retry-After` for this wait: whole seconds, rounded up, at least 1. `None` for
/// [`Duration::MAX`], which means that no wait helps: then leave the field out.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::retry_after;
///
/// assert_eq!(retry_after(Duration::from_millis(7_200)), Some(8));
/// assert_eq!(retry_after(Duration::from_nanos(1)), Some(1));
/// assert_eq!(retry_after(Duration::MAX), None);
/// ```
#[must_use]
pub fn retry_after(wait: Duration) -> Option<u64> {
    (wait != Duration::MAX).then(|| ceil(wait).max(1))
}

#[cfg(test)]
mod tests {
    use super::{Duration, MAX_INTEGER, ceil, retry_after};

    #[test]
    fn a_retry_after_is_rounded_up_and_is_at_least_one_second() {
        let seconds = |nanos| retry_after(Duration::from_nanos(nanos));
        assert_eq!(seconds(0), Some(1));
        assert_eq!(seconds(1), Some(1));
        assert_eq!(seconds(999_999_999), Some(1));
        assert_eq!(seconds(1_000_000_000), Some(1));
        assert_eq!(seconds(1_000_000_001), Some(2));
    }

    #[test]
    fn there_is_no_retry_after_where_no_wait_helps() {
        assert_eq!(retry_after(Duration::MAX), None);
        assert!(retry_after(Duration::MAX - Duration::from_nanos(1)).is_some());
    }

    #[test]
    fn seconds_stay_within_the_integers_of_structured_fields() {
        assert_eq!(ceil(Duration::ZERO), 0);
        assert_eq!(ceil(Duration::MAX), MAX_INTEGER);
    }
}
