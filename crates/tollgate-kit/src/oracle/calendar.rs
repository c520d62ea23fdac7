//! Windows of the calendar, worked out the naive way: a list of the times at which they begin, by the
//! crate `chrono-tz`, and a list of everything that was granted.
//!
//! A key whose clock was set back counts a time as no earlier than the start of the newest window in
//! which anything was granted.

use chrono::offset::{LocalResult, TimeZone};
use chrono::{Datelike, NaiveDate, TimeDelta, Weekday};
use chrono_tz::Tz;

/// The last year whose windows are known. The library's database has other rules for some zones in
/// the years after it.
pub const LAST_YEAR: i32 = 2025;

/// The names of all zones.
pub fn zones() -> impl Iterator<Item = &'static str> {
    chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
}

/// When the days, weeks or months (`"day"` and so on) from 1970 to [`LAST_YEAR`] begin, in nanoseconds
/// since 1970.
pub fn starts(per: &str, zone: &str) -> Vec<u64> {
    let zone: Tz = zone.parse().expect("a zone");
    let begins = |date: &NaiveDate| match per {
        "day" => true,
        "week" => date.weekday() == Weekday::Mon,
        "month" => date.day() == 1,
        _ => unreachable!("no window of the calendar"),
    };
    let first = NaiveDate::from_ymd_opt(1970, 1, 2).expect("a date");
    let dates = first.iter_days().take_while(|date| date.year() <= LAST_YEAR);
    let mut starts: Vec<u64> = dates.filter(begins).map(|date| start(zone, date)).collect();
    // A day that a zone skipped begins with the next one.
    starts.dedup();
    starts
}

/// The first moment of a date that the zone's clocks show.
fn start(zone: Tz, date: NaiveDate) -> u64 {
    let mut shown = date.and_hms_opt(0, 0, 0).expect("a time");
    loop {
        match zone.from_local_datetime(&shown) {
            LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => {
                return u64::try_from(time.timestamp()).expect("after 1970") * 1_000_000_000;
            }
            // Clocks jump by multiples of this.
            LocalResult::None => shown += TimeDelta::seconds(30),
        }
    }
}

/// One key.
#[derive(Debug, Clone)]
pub struct Naive {
    limit: u32,
    starts: Vec<u64>,
    /// Every grant: when, and how much.
    grants: Vec<(u64, u32)>,
}

impl Naive {
    /// A key with so many permits in each window. Windows begin at these times.
    pub fn new(limit: u32, starts: Vec<u64>) -> Self {
        Self { limit, starts, grants: vec![] }
    }

    fn window(&self, time: u64) -> usize {
        self.starts.partition_point(|start| *start <= time)
    }

    /// The time, or the newest grant if that is in a later window.
    fn base(&self, time: u64) -> u64 {
        let newest = self.grants.iter().map(|(time, _)| *time).max().unwrap_or(0);
        if self.window(newest) > self.window(time) { newest } else { time }
    }

    /// The permits left.
    pub fn remaining(&self, time: u64) -> u32 {
        let window = self.window(self.base(time));
        let granted: u32 =
            self.grants.iter().filter(|(time, _)| self.window(*time) == window).map(|(_, cost)| cost).sum();
        self.limit - granted
    }

    /// The wait of a request, if it is denied: until the next window.
    pub fn wait(&self, time: u64, cost: u32) -> Option<u64> {
        let end = self.starts[self.window(self.base(time))];
        (cost > self.remaining(time)).then(|| end - time)
    }

    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Charges what was admitted.
    pub fn grant(&mut self, time: u64, cost: u32) {
        self.grants.push((self.base(time), cost));
    }

    /// Takes back what was granted then, if its window has not ended. Returns the permits.
    pub fn refund(&mut self, time: u64, granted: (u64, u32)) -> u32 {
        let place = self.grants.iter().position(|grant| *grant == granted);
        match place.filter(|_| self.window(granted.0) == self.window(time)) {
            Some(place) => self.grants.remove(place).1,
            None => 0,
        }
    }
}
