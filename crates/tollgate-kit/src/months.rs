//! Requests by a quota of a calendar month, which all that know the wall clock decide in the same way.

/// One request a month, in Berlin.
pub const POLICY: &str = r#"
[[dimension]]
name = "address"
key = ["client"]
quota = [{ algorithm = "fixed-window", limit = 1, per = "month", zone = "Europe/Berlin" }]
"#;

/// The midnight with which March 2026 begins in Berlin, in seconds since 1970.
pub const MARCH: u64 = 1_772_319_600;
/// April. In March clocks go forward, so it has an hour less than 31 days.
const APRIL: u64 = MARCH + 31 * DAY - HOUR;
const MAY: u64 = APRIL + 30 * DAY;
const OCTOBER: u64 = MAY + (31 + 30 + 31 + 31 + 30) * DAY;
/// November. In October clocks go back.
const NOVEMBER: u64 = OCTOBER + 31 * DAY + HOUR;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The seconds since 1970 at which one client asks, and whether it is admitted.
pub const REQUESTS: [(u64, bool); 12] = [
    (MARCH - 1, true),
    (MARCH, true),
    (MARCH + 28 * DAY, false),
    (APRIL - 1, false),
    (APRIL, true),
    (APRIL + HOUR, false),
    (MAY - 1, false),
    (MAY, true),
    (NOVEMBER - HOUR, true),
    (NOVEMBER - 1, false),
    (NOVEMBER, true),
    (NOVEMBER + 1, false),
];
