//! Refunds of an account: permits that are free for others at once.
//!
//! `used` becomes less, so the account goes two eras on, to get a head that it has not had
//! (INV-HEAD). The parity stays, so nothing has to be published.
//!
//! The time at which an account opened does not return within an incarnation (INV-RISE). So it
//! tells whether the account that was charged is still running. So does the time to which it
//! advanced, once. After a second advance another account could have that time, so nothing comes
//! back.

use super::account_view::AccountState;
use super::view::Counter;
use crate::cell::algorithm::{Algorithm, Charge};
use crate::cell::memory::At;
use crate::cell::words::State;
use crate::clock::Clock;

impl<'a> Counter<'a> {
    /// One attempt at a refund; `None` if the cell changed.
    pub(super) fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        let head = at.head;
        if head.state() == State::Held {
            self.store.help_joint(head);
            return None;
        }
        let slot = at.cell.slot();
        // Read after the head (INV-CLOCK-LAST).
        let now = self.read(at, clock)?;
        let running = match self.view.state(head, slot) {
            AccountState::Running(running) => running,
            AccountState::Over(_) => return at.validate().then_some(0),
            AccountState::Unpublished => {
                self.help(at, at.cell.reference(), now);
                return None;
            }
        };
        let given = self
            .view
            .since(head, slot, &running, charge)
            .and_then(|since| self.view.rule().refund(running.account, now, cost, since))
            .filter(|given| given.permits > 0);
        match given {
            None => at.validate().then_some(0),
            Some(given) => at.claim(self.view.refunded(head, given.used)).map(|()| given.permits),
        }
    }
}
