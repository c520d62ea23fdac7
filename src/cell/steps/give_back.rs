//! Permits of a quantised log that are given back: exactly those of the step that they were charged in.
//!
//! Of the newest step, the head says less, in another era: so heads still only grow. Of an older one, the block is replaced by one in which
//! less had been granted before every later step. A step that nothing is left of is left out.

use super::{Contents, Newest, Stepped, View};
use crate::cell::memory::Cell;
use crate::cell::words::Head;
use crate::cell::{Cells, State};
use crate::clock::Clock;

impl Cells {
    /// One attempt to give back permits that were charged in the step of this mark; `None` if it came to nothing.
    pub(in crate::cell) fn give_back_steps(
        &self,
        stepped: &Stepped,
        cell: &Cell,
        head: Head,
        mark: u64,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<u32> {
        let (view, time) = self.steps_view(stepped, cell, head, clock)?;
        let View { reference, history } = view;
        let nothing = || view.stands(cell, head).then_some(0);
        let step = mark - 1;
        // No step that is later than the newest can have been charged.
        let Some(age) = history.step.checked_sub(step) else { return nothing() };
        let begun = time.max(stepped.steps.begin_of(history.step));
        if begun >= stepped.steps.free_at(step) {
            return nothing();
        }
        let at = match age {
            0 => history.entries.len(),
            age => history.younger(age + 1),
        };
        let of_step = match age {
            0 => history.used,
            age if at < history.entries.len() && history.entry(at).age(history.step) == age => history.permits(at),
            _ => 0,
        };
        if of_step < cost {
            return nothing();
        }
        if age == 0 && head.state().is_open() {
            return cell.claim(head, stepped.given_back(head, cost)).map(|()| cost);
        }
        let growing = head.with_state(State::Growing);
        cell.begin_resize(head, growing)?;
        let used = if age == 0 { history.used - cost } else { history.used };
        let start = if age == 0 { history.start } else { history.start.wrapping_sub(cost) };
        let entries = (0..history.entries.len()).filter(|&other| other != at || of_step > cost);
        let entries = entries.map(|other| match history.entry(other) {
            later if other > at => later.less(cost),
            earlier => earlier,
        });
        let opened = stepped.opened(growing, !growing.epoch(), used);
        let newest = Newest::known(history.step);
        let contents = Contents { newest, start, used, most: history.entries.len(), entries };
        let offer = self.new_block(stepped, opened, contents);
        self.offer(cell, growing, reference, 0, offer).then_some(cost)
    }
}
