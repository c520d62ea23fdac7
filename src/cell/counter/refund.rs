//! Refunds of an account: permits that are free for others at once.
//!
//! `used` becomes less, so the account goes two eras on, to get a head that it has not had
//! (INV-HEAD). The parity stays, so nothing has to be published.
//!
//! The time at which an account opened does not return within an incarnation (INV-RISE). So it
//! tells whether the account that was charged is still running. So does the time to which it
//! advanced, once. After a second advance another account could have that time, so nothing comes
//! back.

use super::view::{AccountState, Counter, View};
use crate::cell::descriptor::Part;
use crate::cell::driver::{Charge, Refund};
use crate::cell::memory::{At, Cell};
use crate::clock::Clock;

impl<'a> Refund<'a> for Counter<'a> {
    fn charge_of(self, cell: &'a Cell, part: &Part) -> Charge {
        match part.mark {
            0 => self.charge_in_era(cell, part.next, None),
            mark => Charge { head: part.next, mark },
        }
    }

    fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        let (head, layout) = (at.head, self.plan.layout);
        let View { slot, time, state } = self.view(at, clock)?;
        let given = match state {
            AccountState::Running(running) => self
                .since(head, slot, &running, charge)
                .and_then(|since| self.plan.rule.refund(running.account, time, cost, since))
                .filter(|given| given.permits > 0),
            AccountState::Over(_) => None,
        };
        let Some(given) = given else { return at.validate().then_some(0) };
        at.claim(layout.two_eras_on(head, layout.version(head), given.used))?;
        Some(given.permits)
    }
}
