//! Requests by a quota with a phase, which all that know the wall clock decide in the same way.

/// One request in each window of an hour, which begins 40 minutes past a full hour.
pub const POLICY: &str = r#"
[[dimension]]
name = "address"
key = ["client"]
quota = [{ algorithm = "fixed-window", limit = 1, per = "1h", phase = "40m" }]
"#;

/// A full hour, in seconds since 1970.
pub const HOUR: u64 = 1_800_000_000;

/// The minutes after [`HOUR`] at which one client asks, and whether it is admitted.
pub const REQUESTS: [(u64, bool); 6] = [(30, true), (39, false), (40, true), (99, false), (100, true), (101, false)];

/// The time of a minute, in nanoseconds since 1970.
#[must_use]
pub const fn nanos_at(minute: u64) -> u64 {
    (HOUR + 60 * minute) * 1_000_000_000
}
