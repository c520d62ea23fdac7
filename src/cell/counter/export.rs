//! Exports an account, and imports it under another clock.

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
        let matters = self.is_as_new_at(state) > time;
        let is_valid = at.validate() && at.cell.refers_to(RingRef(slot.0));
        is_valid.then(|| matters.then(|| Export::Account { age: age(time, opened), used }))
    }

    /// A window may have used more than there is room for, under an earlier limit: it is as full
    /// with less.
    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head) {
        // Others are ruled out by `NewKeys::can_have`.
        let Export::Account { age, used } = *export else { return self.first(opened, 0, false) };
        let layout = self.plan.layout;
        let used = used.min(layout.most_used());
        let kind = if used == 0 { EraKind::Closes } else { EraKind::Opens };
        let head = layout.next(opened, self.versions.current.number, kind, used);
        let written = if used == 0 { Slot::over } else { Slot::running };
        (RingRef(written(import.at(age), layout.era(head)).0), head)
    }
}
