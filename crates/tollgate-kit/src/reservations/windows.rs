//! Windows that are counted: fixed, and the sliding counter.

use super::{Answer, Naive, Number};

/// What was granted since an account opened, and in the window before.
pub struct Windows {
    limit: u32,
    window: i128,
    kind: Kind,
    /// When the account opened, or the window began that it has gone on into.
    opened: Option<i128>,
    current: Vec<(Number, u32)>,
    previous: Vec<(Number, u32)>,
    charges: usize,
    /// How often the quota has changed, and had when each charge was made.
    changes: usize,
    changes_at: Vec<usize>,
    /// And when the account was last asked.
    changes_then: usize,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// Windows begin with a request.
    Floating,
    Aligned(i128),
    /// And the one before counts for as much as a window that ends now covers of it.
    Counter(i128),
}

/// What counts at a time, and when the window ends that it lies in.
pub struct View {
    previous: i128,
    current: i128,
    end: i128,
    /// The window that the account was last charged in has ended.
    is_next: bool,
}

fn sum(grants: &[(Number, u32)]) -> i128 {
    grants.iter().map(|&(_, cost)| i128::from(cost)).sum()
}

impl Windows {
    pub fn new(limit: u32, window: u64, kind: Kind) -> Self {
        Self {
            limit,
            window: window.into(),
            kind,
            opened: None,
            current: vec![],
            previous: vec![],
            charges: 0,
            changes: 0,
            changes_at: vec![],
            changes_then: 0,
        }
    }

    /// The end of the window that a time lies in.
    fn end_of(&self, time: i128) -> i128 {
        match self.kind {
            Kind::Floating => time + self.window,
            Kind::Aligned(phase) | Kind::Counter(phase) => time + self.window - (time - phase).rem_euclid(self.window),
        }
    }

    /// Nothing if nothing counts any more.
    fn view(&self, now: i128) -> Option<View> {
        let end = self.end_of(self.opened?);
        let (previous, current) = (sum(&self.previous), sum(&self.current));
        match self.kind {
            // What was all given back might as well not have been taken.
            _ if current + previous == 0 => None,
            Kind::Counter(_) if end <= now && now < end + self.window => {
                Some(View { previous: current, current: 0, end: end + self.window, is_next: true })
            }
            _ if end <= now => None,
            _ => Some(View { previous, current, end, is_next: false }),
        }
    }

    fn fits(&self, now: i128, cost: u32) -> bool {
        let Some(view) = self.view(now) else { return true };
        let left = if matches!(self.kind, Kind::Counter(_)) { (view.end - now).min(self.window) } else { 0 };
        view.previous * left + (view.current + i128::from(cost)) * self.window <= i128::from(self.limit) * self.window
    }

    /// What was in the window before a change counts, and does not come back.
    fn asked(&mut self) {
        if self.changes_then != self.changes {
            self.previous.iter_mut().for_each(|grant| grant.0 = 0);
            self.changes_then = self.changes;
        }
    }

    fn charge(&mut self, now: i128, cost: u32) {
        match self.view(now) {
            None => {
                (self.opened, self.previous, self.current) = (Some(now), vec![], vec![]);
            }
            Some(view) if view.is_next => {
                self.previous = std::mem::take(&mut self.current);
                self.opened = Some(view.end - self.window);
                // What was charged under another quota counts, and does not come back.
                let (changes, changes_at) = (self.changes, &self.changes_at);
                let is_old = |number: Number| number > 0 && changes_at[number - 1] != changes;
                self.previous.iter_mut().filter(|grant| is_old(grant.0)).for_each(|grant| grant.0 = 0);
            }
            Some(_) => {}
        }
        self.charges += 1;
        self.changes_at.push(self.changes);
        self.current.push((self.charges, cost));
    }
}

impl Naive for Windows {
    fn request(&mut self, now: u64, cost: u32, _within: Option<u64>) -> Answer {
        let now = i128::from(now);
        self.asked();
        if !self.fits(now, cost) {
            let mut wait = 1;
            while !self.fits(now + wait, cost) {
                wait += 1;
            }
            return Err(u64::try_from(wait).expect("soon"));
        }
        self.charge(now, cost);
        Ok((0, self.charges))
    }

    fn owe(&mut self, now: u64, cost: u32) {
        self.asked();
        self.charge(now.into(), cost);
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        let Some(view) = self.view(now.into()) else { return 0 };
        let grants =
            if view.is_next { [&mut self.current, &mut vec![]] } else { [&mut self.current, &mut self.previous] };
        for grants in grants {
            if let Some(place) = grants.iter().position(|&(charge, _)| charge == number) {
                let permits = grants[place].1;
                grants[place] = (0, kept);
                return permits - kept;
            }
        }
        0
    }

    fn remaining(&self, now: u64) -> u32 {
        (1..=self.limit).take_while(|&cost| self.fits(now.into(), cost)).last().unwrap_or(0)
    }

    fn changed(self, now: u64, fresh: Self) -> Self {
        let now = i128::from(now);
        let is_same = self.window == fresh.window
            && match (self.kind, fresh.kind) {
                (Kind::Floating, Kind::Floating) => true,
                (Kind::Aligned(before), Kind::Aligned(phase)) | (Kind::Counter(before), Kind::Counter(phase)) => {
                    (before - phase).rem_euclid(self.window) == 0
                }
                _ => false,
            };
        if is_same {
            return Self { limit: fresh.limit, ..self };
        }
        let charges = self.charges;
        let Some(view) = self.view(now) else { return Self { charges, changes_at: self.changes_at, ..fresh } };
        let start =
            if let Kind::Floating = self.kind { self.opened.expect("it is open") } else { view.end - self.window };
        if !matches!(self.kind, Kind::Counter(_)) {
            let mut after = Self { limit: fresh.limit, window: fresh.window, kind: fresh.kind, ..self };
            if start + after.window <= now {
                return Self { charges, changes_at: after.changes_at, ..Self::new(after.limit, 1, after.kind) }
                    .of(fresh.window);
            }
            after.opened = Some(start);
            let begins = |time: i128| matches!(after.kind, Kind::Floating) || after.end_of(time) == time + after.window;
            if !begins(start) {
                // The permits count in the window of the change, and do not come back.
                after.current.iter_mut().for_each(|grant| grant.0 = 0);
                after.opened = Some(now);
            }
            return after;
        }
        let mut after = Self { limit: fresh.limit, window: fresh.window, kind: fresh.kind, ..self };
        if view.is_next {
            after.previous = std::mem::take(&mut after.current);
        }
        let mut end = start + after.window;
        if end <= now {
            after.previous = std::mem::take(&mut after.current);
            end += after.window;
        }
        let previous = sum(&after.previous);
        if end <= now || previous + sum(&after.current) == 0 {
            return Self { charges, changes_at: after.changes_at, ..Self::new(after.limit, 1, after.kind) }
                .of(fresh.window);
        }
        let earlier = (end - after.end_of(now)).max(0);
        let lost = (previous * earlier + after.window - 1) / after.window;
        if start != after.end_of(now) - after.window {
            after.previous.iter_mut().chain(&mut after.current).for_each(|grant| grant.0 = 0);
        }
        after.current.push((0, u32::try_from(lost).expect("few")));
        after.opened = Some(now);
        after
    }
}

impl Windows {
    /// With windows of another length.
    fn of(self, window: i128) -> Self {
        Self { window, ..self }
    }
}
