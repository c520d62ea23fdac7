use std::sync::Arc;

use super::*;
use crate::sync::check_model;

#[test]
fn loom_rings_are_taken_once() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    check_model(&builder, || {
        let rings = Arc::new(Rings::with_room(32));
        let other = Arc::clone(&rings);
        let take = |rings: &Rings| [2, 4, 3].map(|len| (rings.take(len), len));
        let other = loom::thread::spawn(move || take(&other));
        let taken = [take(&rings), other.join().unwrap()].concat();
        let slots = |(start, len)| rings.get(start, len).0.iter().map(core::ptr::from_ref);
        let mut slots: Vec<_> = taken.into_iter().flat_map(slots).collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 2 * (2 + 4 + 3));
    });
}
