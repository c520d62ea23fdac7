//! Exports an account, and imports it under another clock.
//!
//! Aligned windows of the new clock may begin at other times. The one in which the account opened
//! may be over though the account's own window goes on. So the last moment of that window is
//! exported, too.

use super::layout::EraKind;
use super::view::{AccountState, Counter, Running, View};
use crate::cell::driver::{Driver, Portable};
use crate::cell::export::{Export, Import, age};
use crate::cell::memory::At;
use crate::cell::words::{Head, RingRef, Slot};
use crate::clock::Clock;

impl<'a> Portable<'a> for Counter<'a> {
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>> {
        let View { slot, time, state } = self.view(at, clock)?;
        // An account that is over and matters is like one of which nothing was used.
        let (opened, used) = match state {
            AccountState::Running(Running { account, is_moved: true, .. }) => (account.anchor, account.used),
            AccountState::Running(running) => (slot.time(), running.account.used),
            AccountState::Over(since) => (since, 0),
        };
        let last = match (self.plan.rule.grid(), state) {
            (Some(grid), AccountState::Running(running)) => Some(grid.last_of(running.account.anchor)),
            _ => None,
        };
        let matters = self.is_as_new_at(state) > time;
        let is_valid = at.validate() && at.cell.refers_to(RingRef(slot.0));
        let opened = age(time, opened);
        is_valid.then(|| {
            matters.then(|| match last {
                Some(last) => Export::Aligned { age: opened, last: age(time, last), used },
                None => Export::Account { age: opened, used },
            })
        })
    }

    /// A window may have used more than there is room for, under an earlier limit: it is as full
    /// with less.
    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head) {
        let (age, last, used) = match *export {
            Export::Account { age, used } => (age, None, used),
            Export::Aligned { age, last, used } => (age, Some(last), used),
            // Ruled out by `NewKeys::can_have`.
            _ => return self.first(opened, 0, false),
        };
        let (layout, rule) = (self.plan.layout, &self.plan.rule);
        let (mut at, mut used) = (import.at(age), used.min(layout.most_used()));
        if let Some((last, grid)) = last.zip(rule.grid()) {
            let last = import.at(last);
            // A window that goes on becomes the present one. Its last moment may be later than
            // every clock, and the timestamp floor must not rise to it (INV-FLOOR).
            let moment = last.min(import.now.max(at));
            at = if grid.start_at(at) == grid.start_at(moment) { at } else { moment };
            used = rule.ends_earlier(used, last.saturating_sub(grid.last_of(grid.start_at(at))));
        }
        let kind = if used == 0 { EraKind::Closes } else { EraKind::Opens };
        let head = layout.next(opened, self.versions.current.number, kind, used);
        let written = if used == 0 { Slot::over } else { Slot::running };
        (RingRef(written(at, layout.era(head)).0), head)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use core::time::Duration;

    use crate::{Absent, JointLimiter, Limiter, MockClock, Quota};

    const SECOND: Duration = Duration::from_secs(1);

    /// An hour at a time, the first from `phase` seconds after the origin.
    fn hours(phase: u64) -> Quota {
        Quota::fixed_window(5, 3600 * SECOND).aligned(Duration::from_secs(phase))
    }

    #[test]
    fn a_window_that_goes_on_becomes_the_present_one() {
        let build = || Limiter::<u32>::builder(hours(0)).clock(MockClock::new());
        let before = Limiter::<u32>::builder(hours(4)).clock(MockClock::new()).build().unwrap();
        assert!(before.try_acquire_n(1, 5).unwrap().is_admitted());
        let after = build().restore_after(&before.snapshot(), SECOND).unwrap();
        assert_eq!(after.peek(1).retry_after(), Some(3600 * SECOND));
        // The window has ended.
        let after = build().restore_after(&before.snapshot(), 4 * SECOND).unwrap();
        assert!(after.peek(1).is_admitted());
    }

    /// The timestamp floor stays at what clocks have shown (INV-FLOOR), or new keys of a log would
    /// wait for it.
    #[test]
    fn a_key_that_is_forgotten_after_a_restart_delays_no_other() {
        let build = |clock: &MockClock, phase| {
            JointLimiter::<(u32, u32)>::builder()
                .dimension("user", [hours(phase)])
                .dimension("address", [Quota::new(1, SECOND)])
                .clock(clock.clone())
        };
        let clock = MockClock::new();
        let before = build(&clock, 0).build().unwrap();
        assert!(before.try_acquire((1, Absent)).unwrap().is_admitted());
        // The next window begins in 10 s.
        let after = build(&clock, 10).restore_after(&before.snapshot(), Duration::ZERO).unwrap();
        assert!(after.forget((1, Absent)).unwrap());
        for key in 0..1000 {
            assert!(after.try_acquire((Absent, key)).unwrap().is_admitted());
            assert!(after.try_acquire((key, Absent)).unwrap().is_admitted());
        }
        assert_eq!(after.peek((Absent, 999)).unwrap().retry_after(), Some(SECOND));
    }
}
