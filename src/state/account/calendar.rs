//! The fixed window of the calendar: days, weeks and months of a time zone.
//!
//! A window of the calendar is a [fixed window](Window) whose length is that of this day, week or
//! month. So the state and each answer are those of that window: of the one whose permits still
//! count or, if none do, of the one that the time lies in.
//!
//! # Rounding
//!
//! Nothing is rounded. Windows begin at whole seconds.

use core::ops::Range;
use core::time::Duration;

use super::windows::Window;
use super::{Account, Verdict};
use crate::clock::nanos;
use crate::decision::Left;
use crate::quota::{Calendar, Zone};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CalendarWindow {
    limit: u32,
    per: Calendar,
    zone: Zone,
    /// A time, and the same in nanoseconds since 1970.
    origin: u64,
    since_1970: u64,
}

impl CalendarWindow {
    pub(crate) fn new(limit: u32, per: Calendar, zone: Zone, origin: u64, since_1970: u64) -> Self {
        Self { limit, per, zone, origin, since_1970 }
    }

    /// The times of the window that a time lies in.
    fn times(&self, time: u64) -> Range<u64> {
        let between = |time: u64, from: u64, to: u64| {
            let time = i128::from(time) - i128::from(from) + i128::from(to);
            u64::try_from(time.max(0)).unwrap_or(u64::MAX)
        };
        let since_1970 = Duration::from_nanos(between(time, self.origin, self.since_1970));
        let Range { start, end } = self.per.window(self.zone, since_1970);
        between(nanos(start), self.since_1970, self.origin)..between(nanos(end), self.since_1970, self.origin)
    }

    /// The window of these times.
    fn window(&self, Range { start, end }: Range<u64>) -> Window {
        Window::new(self.limit, end - start, Some(start))
    }

    /// The window whose permits count at a time, with the state; or that of the time, with none.
    fn of(&self, state: u128, now: u64) -> (Window, u128) {
        let counted = Window::start(state).map(|start| self.times(start)).filter(|times| now < times.end);
        match counted {
            Some(times) => (self.window(times), state),
            None => (self.window(self.times(now)), 0),
        }
    }

    /// The state under this quota of a key that was under a fixed window.
    pub(crate) fn converted_from(&self, from: &Window, state: u128, now: u64) -> u128 {
        let time = Window::start(state).map_or(now, |start| now.max(start));
        self.window(self.times(time)).converted(from, state, now)
    }

    /// The state under a fixed window of a key that was under this quota.
    pub(crate) fn converted_to(&self, to: &Window, state: u128, now: u64) -> u128 {
        let (from, state) = self.of(state, now);
        to.converted(&from, state, now)
    }
}

impl Account for CalendarWindow {
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let (window, state) = self.of(state, now);
        window.decide(state, now, cost, within)
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)> {
        let (window, state) = self.of(state, now);
        window.refund(state, now, after, cost, kept)
    }

    fn owe(&self, state: u128, now: u64, cost: u32) -> u128 {
        let (window, state) = self.of(state, now);
        window.owe(state, now, cost)
    }

    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        let (from, state) = from.of(state, now);
        self.converted_from(&from, state, now)
    }

    /// The permits are those of the window that begins nearest: two clocks that know the wall clock
    /// tell a boundary almost alike.
    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        let Some(start) = Window::start(state) else { return 0 };
        let start = u64::try_from((i128::from(start) + by).clamp(1, now.into())).unwrap_or(now);
        let times = self.times(start);
        let is_near = start - times.start < times.end - start;
        let times = if is_near { times } else { self.times(times.end) };
        if now < times.end { Window::starting_at(state, times.start) } else { 0 }
    }

    fn left(&self, state: u128, now: u64, within: Option<u64>) -> Left {
        let (window, state) = self.of(state, now);
        window.left(state, now, within)
    }

    fn over_at(&self, state: u128) -> u64 {
        Window::start(state).map_or(0, |start| self.times(start).end)
    }
}
