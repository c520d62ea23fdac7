//! Exports a log, and imports it under another clock.

use super::view::Log;
use crate::cell::driver::Portable;
use crate::cell::export::{Export, Import, age};
use crate::cell::memory::At;
use crate::cell::words::{Head, RingRef, Slot, State};
use crate::clock::Clock;

impl<'a> Portable<'a> for Log<'a> {
    fn export(self, at: At<'a>, clock: &impl Clock) -> Option<Option<Export>> {
        let view = self.view(at, clock)?;
        // Reserved stamps are exported beside live ones.
        let live = view.live(self.plan.live_from(view.live_at()));
        let ages: Vec<i64> = view.last(live).map(|stamp| age(view.reading, stamp)).collect();
        view.validate().then(|| (!ages.is_empty()).then_some(Export::Stamps(ages)))
    }

    fn import(self, opened: Head, export: &Export, import: Import) -> (RingRef, Head) {
        let ages: &[i64] = if let Export::Stamps(ages) = export { ages } else { &[] };
        let is_reserved = ages.last().is_some_and(|&age| import.at(age) > import.now);
        let opened = if is_reserved { opened.with_state(State::Reserved) } else { opened };
        match ages {
            [] => (RingRef(Slot::sentinel(opened.sentinel_number(), opened.lap()).0), opened),
            [age] if !is_reserved => (RingRef(Slot::new(import.at(*age), false, opened.lap() + 1).0), opened),
            _ => {
                // A reserved stamp is no word of a cell: if a thread stalls before it replaces
                // that word, the key may be forgotten, and no timestamp floor keeps the word from
                // returning (INV-REFERENCE).
                let (reference, ring) = self.store.new_ring(false, ages.len().max(2), opened.lap());
                ring.write_last(ages.len(), ages.iter().map(|&age| import.at(age)), opened.lap());
                (reference, opened)
            }
        }
    }
}
