//! Permits of an account that are given back, and are at once there for others.
//!
//! What has been used becomes less, which no claim does, so the head must be told from what it was before: an account that is given
//! something back goes two eras on. The parity stays, so the anchor that was published stays the anchor, and nothing has to be
//! published. The time at which an account opened never returns in a key's life (see the essay on accounts), so it says whether the
//! account that was charged is still the one that runs; and so does the one to which an account advanced, once. After a second advance
//! an account that opened in between could be at the same time, so nothing is given back.

use super::books::Seen;
use super::view::Counter;
use crate::cell::algorithm::{Algorithm, Charged};
use crate::cell::memory::At;
use crate::cell::words::{State, time_of};
use crate::clock::Clock;

impl<'a> Counter<'a> {
    /// One attempt to make less of what the account has used; `None` if it came to nothing.
    pub(super) fn refund(self, at: At<'a>, charged: Charged, cost: u32, clock: &impl Clock) -> Option<u32> {
        let head = at.head;
        if head.state() == State::Held {
            self.store.help(head);
            return None;
        }
        let slot = at.cell.slot();
        // Read after the head.
        let now = time_of(clock.now());
        let running = match self.books.seen(head, slot) {
            Seen::Running(running) => running,
            Seen::Over(_) => return at.stands().then_some(0),
            Seen::Unpublished => {
                self.settle(at, at.cell.reference(), now);
                return None;
            }
        };
        let given = self
            .books
            .since(head, slot, &running, charged)
            .and_then(|since| self.books.rule().give_back(running.account, now, cost, since))
            .filter(|given| given.permits > 0);
        match given {
            None => at.stands().then_some(0),
            Some(given) => at.claim(self.books.given_back(head, given.used)).map(|()| given.permits),
        }
    }
}
