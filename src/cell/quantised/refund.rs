//! Refunds of a quantised log: exactly the permits of the charged step.
//!
//! In the newest step the head says less, in another era (INV-HEAD). In an older one, the block is
//! replaced by one with fewer permits before each later step. A step without permits is left out.

use super::view::{Contents, Newest, Quantised, View};
use crate::cell::descriptor::Part;
use crate::cell::driver::{Charge, Driver, Refund};
use crate::cell::memory::{At, Cell};
use crate::cell::words::State;
use crate::clock::Clock;

impl<'a> Refund<'a> for Quantised<'a> {
    fn charge_of(self, _cell: &'a Cell, part: &Part) -> Charge {
        Charge { head: part.next, mark: part.mark }
    }

    fn refund(self, at: At<'a>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        let view = self.view(at, clock)?;
        let (View { reference, history, time, .. }, plan) = (view, self.plan);
        let nothing = || view.validate().then_some(0);
        let step = charge.mark - 1;
        // No charge is later than the newest step.
        let Some(age) = history.step.checked_sub(step) else { return nothing() };
        let begun = time.max(plan.steps.begin_of(history.step));
        if begun >= plan.steps.free_at(step) {
            return nothing();
        }
        let place = match age {
            0 => history.entries.len(),
            age => history.younger(age + 1),
        };
        let of_step = match age {
            0 => history.used,
            age if place < history.entries.len() && history.entry(place).age(history.step) == age => {
                history.permits(place)
            }
            _ => 0,
        };
        if of_step < cost {
            return nothing();
        }
        if age == 0 && at.head.state().is_open() {
            return at.claim(plan.refunded(at.head, cost)).map(|()| cost);
        }
        let resizing = at.begin_resize(State::Resizing)?;
        let used = if age == 0 { history.used - cost } else { history.used };
        let start = if age == 0 { history.start } else { history.start.wrapping_sub(cost) };
        let entries = (0..history.entries.len()).filter(|&other| other != place || of_step > cost);
        let entries = entries.map(|other| match history.entry(other) {
            later if other > place => later.less(cost),
            earlier => earlier,
        });
        let opened = plan.opened(resizing.head, !resizing.head.ring_parity(), used);
        let newest = Newest::known(history.step);
        let contents = Contents { newest, start, used, most: history.entries.len(), entries };
        let offer = self.new_block(opened, contents);
        self.offer(resizing, reference, 0, offer).then_some(cost)
    }
}
