use tollgate_kit::oracle::calendar::{starts, zones};

use super::*;

/// Zones whose clocks do what is rare: change by half an hour, at midnight, a minute after it, by two
/// hours, twice in a Ramadan, skip a day, or differ from UTC by a part of an hour.
const ZONES: [&str; 14] = [
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "Antarctica/Troll",
];

const NANOSECOND: Duration = Duration::from_nanos(1);

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

fn time(text: &str) -> Duration {
    Duration::from_secs(text.parse::<jiff::Timestamp>().unwrap().as_second().unsigned_abs())
}

#[track_caller]
fn assert_window(calendar: Calendar, name: &str, [start, end]: [&str; 2]) {
    let (start, end) = (time(start), time(end));
    for time in [start, start + NANOSECOND, end - NANOSECOND] {
        assert_eq!(calendar.window(zone(name), time), start..end, "{calendar} in {name} at {time:?}");
    }
}

#[test]
fn windows_that_clocks_make_longer_or_shorter() {
    for (calendar, name, window) in [
        (Calendar::Day, "Europe/Berlin", ["2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"]),
        (Calendar::Day, "Europe/Berlin", ["2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"]),
        (Calendar::Week, "Europe/Berlin", ["2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00"]),
        (Calendar::Month, "Europe/Berlin", ["2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"]),
        (Calendar::Month, "Europe/Berlin", ["2028-02-01T00:00:00+01:00", "2028-03-01T00:00:00+01:00"]),
        (Calendar::Week, "UTC", ["2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"]),
        // Clocks go from midnight to one o'clock.
        (Calendar::Day, "America/Sao_Paulo", ["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"]),
        // Clocks went back a minute after midnight, so they showed midnight twice.
        (Calendar::Day, "America/St_Johns", ["2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"]),
        (Calendar::Day, "Australia/Lord_Howe", ["2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30"]),
        (Calendar::Day, "Pacific/Chatham", ["2026-04-05T00:00:00+13:45", "2026-04-06T00:00:00+12:45"]),
        // There was no 30 December 2011.
        (Calendar::Day, "Pacific/Apia", ["2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"]),
        (Calendar::Day, "Pacific/Apia", ["2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"]),
        (Calendar::Week, "Pacific/Apia", ["2011-12-26T00:00:00-10:00", "2012-01-02T00:00:00+14:00"]),
        (Calendar::Month, "Pacific/Apia", ["2011-12-01T00:00:00-10:00", "2012-01-01T00:00:00+14:00"]),
    ] {
        assert_window(calendar, name, window);
    }
}

#[test]
fn the_longest_window_is_told() {
    let hours = |calendar, name| zone(name).longest(calendar).as_secs() / 1800;
    for (name, [day, week, month]) in [
        ("UTC", [0, 0, 0]),
        ("Europe/Berlin", [2, 2, 2]),
        ("Australia/Lord_Howe", [2, 2, 2]),
        ("Antarctica/Troll", [4, 4, 4]),
    ] {
        let longest = [Calendar::Day, Calendar::Week, Calendar::Month].map(|calendar| hours(calendar, name));
        assert_eq!(longest, [48 + day, 7 * 48 + week, 31 * 48 + month], "{name}");
    }
}

#[test]
fn windows_before_1970_begin_at_zero_and_those_after_the_table_have_days_of_24_hours() {
    let (berlin, seconds) = (zone("Europe/Berlin"), Duration::from_secs);
    let from_zero = |end| Duration::ZERO..seconds(end);
    assert_eq!(Calendar::Month.window(berlin, Duration::ZERO), from_zero(31 * DAY - 3600));
    assert_eq!(Calendar::Week.window(Zone::UTC, Duration::ZERO), from_zero(4 * DAY));
    assert_eq!(Calendar::Day.window(zone("America/New_York"), NANOSECOND), from_zero(5 * 3600));
    assert_window(Calendar::Day, "Europe/Berlin", ["2105-12-31T00:00:00+01:00", "2106-01-01T00:00:00+01:00"]);
    assert_window(Calendar::Month, "Europe/Berlin", ["2105-12-01T00:00:00+01:00", "2106-01-01T00:00:00+01:00"]);
    assert_window(Calendar::Month, "Europe/Berlin", ["2108-02-01T00:00:00+01:00", "2108-03-01T00:00:00+01:00"]);
    assert_window(Calendar::Month, "Europe/Berlin", ["2109-07-01T00:00:00+01:00", "2109-08-01T00:00:00+01:00"]);
    let last = Duration::from_nanos(u64::MAX);
    assert!(Calendar::Month.window(berlin, last).contains(&last));
    let _ = [Zone::UTC, berlin].map(|zone| Calendar::Month.window(zone, Duration::MAX));
}

#[test]
fn zones_have_names() {
    assert_eq!(zone("europe/berlin"), zone("Europe/Berlin"));
    assert_eq!(zone("EUROPE/berlin").name(), "Europe/Berlin");
    assert_ne!(zone("Europe/Berlin"), zone("Europe/Paris"));
    for name in ["", "Europe", "Europe/Bärlin", "CEST", "+01:00", "Etc/Unknown", "../etc/passwd"] {
        assert_eq!(Zone::named(name), Err(ZoneError::Unknown), "{name}");
    }
}

/// By `chrono-tz`, which has a database of its own.
#[test]
fn windows_are_those_of_another_database() {
    for (name, calendar) in ZONES.iter().flat_map(|name| Calendar::ALL.iter().map(move |calendar| (name, calendar))) {
        for window in starts(calendar.name(), name).windows(2) {
            let [start, end] = [window[0], window[1]].map(Duration::from_nanos);
            for time in [start, start + NANOSECOND, (start + end) / 2, end - NANOSECOND] {
                assert_eq!(calendar.window(zone(name), time), start..end, "{calendar} in {name} at {time:?}");
            }
            assert!(end - start <= zone(name).longest(*calendar), "{calendar} in {name}");
        }
    }
}

/// Thirty years. What was before that has been corrected for three zones since.
#[test]
fn months_of_many_zones_are_those_of_another_database() {
    for name in zones().step_by(10) {
        let starts = starts("month", name).into_iter().map(Duration::from_nanos).collect::<Vec<_>>();
        for window in starts.windows(2).filter(|window| window[0] > time("1995-01-01T00:00:00Z")) {
            assert_eq!(Calendar::Month.window(zone(name), window[0]), window[0]..window[1], "{name}");
        }
    }
}
