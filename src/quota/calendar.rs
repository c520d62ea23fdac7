//! Days, weeks and months of the calendar, in a time zone.
//!
//! Days have numbers: 0 is 1969-12-01, a Monday and the first of a month. A week is seven days from
//! a multiple of 7, and a month begins where the Gregorian calendar says. A [`Zone`] tells when a day
//! begins. So a month in a zone is exact if its days are.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Range;
use core::time::Duration;

use crate::texts::texts;

/// The seconds of a day without a change of daylight saving.
const DAY: u64 = 24 * 60 * 60;
/// The number of 1970-01-01.
const DAY_OF_1970: u64 = 31;
/// The last day whose start is in a table: 2106-01-01.
#[cfg(feature = "calendar")]
const LAST_DAY: u64 = DAY_OF_1970 + 136 * 365 + 33;

/// A window of the calendar, for [`Quota::calendar`](crate::Quota::calendar).
///
/// ```
/// use tollgate::Calendar;
///
/// assert_eq!(Calendar::from_name("month"), Some(Calendar::Month));
/// assert_eq!(Calendar::Week.to_string(), "week");
/// ```
// A snapshot has their numbers in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From Monday to Sunday, as in ISO 8601.
    Week,
    /// From the first day of a month to its last.
    Month,
}

texts! { Calendar {
    Day => "day";
    Week => "week";
    Month => "month";
} }

impl Calendar {
    /// All of them.
    ///
    /// ```
    /// use tollgate::Calendar;
    ///
    /// assert_eq!(Calendar::ALL.len(), 3);
    /// ```
    pub const ALL: &'static [Self] = &[Self::Day, Self::Week, Self::Month];

    /// Its name in files and options.
    ///
    /// ```
    /// use tollgate::Calendar;
    ///
    /// assert_eq!(Calendar::Day.name(), "day");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The window of this name.
    ///
    /// ```
    /// use tollgate::Calendar;
    ///
    /// assert_eq!(Calendar::from_name("week"), Some(Calendar::Week));
    /// assert_eq!(Calendar::from_name("1w"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|calendar| calendar.name() == name)
    }

    /// The window that a time lies in: its start and its end. All are times since the start of 1970
    /// (UTC). A window that began before that has zero as its start.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Calendar, Zone};
    ///
    /// let day = Duration::from_secs(86_400);
    /// assert_eq!(Calendar::Month.window(Zone::UTC, day * 40), day * 31..day * 59);
    /// ```
    #[must_use]
    pub fn window(self, zone: Zone, since_1970: Duration) -> Range<Duration> {
        let first = self.first_day(zone.day(since_1970.as_secs()));
        let [start, end] = [first, self.next(first)].map(|day| Duration::from_secs(zone.start(day)));
        start..end
    }

    /// The first day of the window with this day.
    fn first_day(self, day: u64) -> u64 {
        match self {
            Self::Day => day,
            Self::Week => day - day % 7,
            Self::Month => first_of_month(day),
        }
    }

    /// The first day of the window after the one with this first day.
    fn next(self, first: u64) -> u64 {
        match self {
            Self::Day => first + 1,
            Self::Week => first + 7,
            // No month has more than 31 days, and none has fewer than 28.
            Self::Month => first_of_month(first + 31),
        }
    }
}

/// The first day of the month of a day, in years that begin on the first of March: the leap day is
/// the last of its year.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn first_of_month(day: u64) -> u64 {
    /// The days from 0000-03-01 to day 0.
    const SINCE_MARCH: u64 = 719_468 - DAY_OF_1970;
    let of_era = (day + SINCE_MARCH) % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    day + (153 * month + 2) / 5 - of_year
}

/// A time zone, for [`Quota::calendar`](crate::Quota::calendar).
///
/// Zones other than [`UTC`](Self::UTC) need the feature `calendar`. It brings the time zone database
/// of the crate `jiff`, so all machines have the same zones, whatever their systems know.
///
/// A day begins at midnight of the zone's clocks. If they skip midnight, it begins when they jump. If
/// they show midnight twice, it begins the first time. So a day may have 23 or 25 hours. A zone knows
/// the days until the end of 2105; each day after that has 24 hours.
///
/// A zone is read once in a process, and then kept: it takes 200 kB. `UTC` takes nothing.
///
/// ```
/// use tollgate::{Zone, ZoneError};
///
/// # if cfg!(feature = "calendar") {
/// assert_eq!(Zone::named("Europe/Berlin")?.name(), "Europe/Berlin");
/// assert_eq!(Zone::named("Europe/Bärlin"), Err(ZoneError::Unknown));
/// # }
/// # Ok::<(), ZoneError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Zone(Option<&'static Rules>);

/// When each day begins.
struct Rules {
    name: Box<str>,
    /// In seconds since 1970, by the number of the day; zero for days that began before.
    starts: Box<[u32]>,
    /// The longest day, week and month, in seconds.
    longest: [u64; 3],
}

impl Zone {
    /// Coordinated universal time, whose days have 24 hours.
    ///
    /// ```
    /// use tollgate::{Calendar, Quota, Zone};
    ///
    /// const TOKENS: Quota = Quota::calendar(1000, Calendar::Month, Zone::UTC);
    /// ```
    pub const UTC: Self = Self(None);

    /// The zone of this name in the IANA time zone database: `UTC`, or with the feature `calendar`
    /// one such as `Europe/Berlin`. The case of letters does not count.
    ///
    /// ```
    /// use tollgate::Zone;
    ///
    /// assert_eq!(Zone::named("utc"), Ok(Zone::UTC));
    /// ```
    ///
    /// # Errors
    ///
    /// [`ZoneError`] when there is no such zone, or the feature is off.
    pub fn named(name: &str) -> Result<Self, ZoneError> {
        if name.eq_ignore_ascii_case("UTC") { Ok(Self::UTC) } else { zoned(name) }
    }

    /// Its name in the IANA time zone database.
    ///
    /// ```
    /// use tollgate::Zone;
    ///
    /// assert_eq!(Zone::UTC.name(), "UTC");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            None => "UTC",
            Some(rules) => &rules.name,
        }
    }

    /// The longest window in this zone.
    pub(super) const fn longest(self, calendar: Calendar) -> Duration {
        let of_utc = [DAY, 7 * DAY, 31 * DAY];
        let longest = if let Some(rules) = self.0 { rules.longest } else { of_utc };
        Duration::from_secs(longest[calendar as usize])
    }

    /// When a day begins, in seconds since 1970; zero if it began before.
    fn start(self, day: u64) -> u64 {
        let Some(Rules { starts, .. }) = self.0 else { return day.saturating_sub(DAY_OF_1970).saturating_mul(DAY) };
        match usize::try_from(day).ok().and_then(|day| starts.get(day)) {
            Some(&start) => start.into(),
            None => {
                let (last, past) = (starts.last().copied().unwrap_or(0), day + 1 - starts.len() as u64);
                past.saturating_mul(DAY).saturating_add(last.into())
            }
        }
    }

    /// The day that so many seconds since 1970 lie in.
    fn day(self, seconds: u64) -> u64 {
        // No zone is a day ahead of UTC.
        let mut day = seconds / DAY + DAY_OF_1970 + 1;
        while self.start(day) > seconds {
            day -= 1;
        }
        day
    }
}

// A zone is read once, so one name has one address.
impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name()).finish()
    }
}

/// Writes its name.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(not(feature = "calendar"))]
fn zoned(_: &str) -> Result<Zone, ZoneError> {
    Err(ZoneError::OnlyUtc)
}

#[cfg(feature = "calendar")]
fn zoned(name: &str) -> Result<Zone, ZoneError> {
    use std::sync::{Mutex, PoisonError};

    use jiff::tz::TimeZoneDatabase;

    static READ: Mutex<Vec<Zone>> = Mutex::new(Vec::new());
    // What the lock guards is whole after each step, so a panic leaves it as it should be.
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(zone) = read.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)) {
        return Ok(*zone);
    }
    let zone = TimeZoneDatabase::bundled().get(name).map_err(|_| ZoneError::Unknown)?;
    // There are as many as the database has names.
    let rules = Box::leak(Box::new(Rules::of(&zone).ok_or(ZoneError::Unknown)?));
    read.push(Zone(Some(rules)));
    Ok(Zone(Some(rules)))
}

#[cfg(feature = "calendar")]
impl Rules {
    fn of(zone: &jiff::tz::TimeZone) -> Option<Self> {
        let first = jiff::civil::date(1969, 12, 1);
        let start = |day: u64| {
            let midnight = first.checked_add(jiff::Span::new().try_days(i64::try_from(day).ok()?).ok()?).ok()?;
            let start = zone.to_ambiguous_timestamp(midnight.at(0, 0, 0, 0)).compatible().ok()?;
            u32::try_from(start.as_second().max(0)).ok()
        };
        let starts = (0..=LAST_DAY).map(start).collect::<Option<_>>()?;
        let rules = Self { name: zone.iana_name()?.into(), starts, longest: [0; 3] };
        Some(Self { longest: [Calendar::Day, Calendar::Week, Calendar::Month].map(|it| rules.longest(it)), ..rules })
    }

    /// The longest window until the last day.
    fn longest(&self, calendar: Calendar) -> u64 {
        let start = |day: u64| usize::try_from(day).ok().and_then(|day| self.starts.get(day)).copied();
        let firsts = core::iter::successors(Some(0), |&first| Some(calendar.next(first)));
        let starts = firsts.map_while(start).collect::<Vec<_>>();
        starts.windows(2).map(|pair| u64::from(pair[1] - pair[0])).max().unwrap_or(0)
    }
}

/// Why there is no [`Zone`] of a name.
///
/// ```
/// use tollgate::ZoneError;
///
/// assert!(ZoneError::Unknown.to_string().ends_with("such as Europe/Berlin"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZoneError {
    /// The database has no zone of this name.
    Unknown,
    /// The feature `calendar` is off, so only `UTC` is known.
    OnlyUtc,
}

texts! { ZoneError {
    Unknown => "there is no such time zone: give a name of the IANA database, such as Europe/Berlin";
    OnlyUtc => "time zones other than UTC need the feature `calendar`";
} }

impl core::error::Error for ZoneError {}

#[cfg(all(test, feature = "calendar", not(tollgate_loom)))]
mod tests;
