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
        let take = |rings: &Rings| [1, 2, 1].map(|class| rings.take(class));
        let other = loom::thread::spawn(move || take(&other));
        let taken = [take(&rings), other.join().unwrap()].concat();
        let slots = |ring: RingRef| (0..1_u32 << ring.class).map(move |place| (ring, place));
        let slot = |(ring, place)| core::ptr::from_ref(rings.get(ring).slot(place));
        let mut slots: Vec<_> = taken.into_iter().flat_map(slots).map(slot).collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 2 * (2 + 4 + 2));
    });
}
