//! Each packed word returns its parts.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_head_gives_back_what_went_in(state in 0..8_u64, ring_parity: bool, incarnation in 0..1_u64 << 8, lap in 0..1_u64 << 28, pos in 0..1_usize << 24) {
        let all = [State::Free, State::Open, State::Resizing, State::Dead, State::Held, State::Reserved, State::ResizingReserved, State::ResizingToReserved];
        let state = all[usize::try_from(state).unwrap()];
        let head = Head::new(state, ring_parity, incarnation, lap, pos);
        prop_assert_eq!((head.state(), head.ring_parity(), head.incarnation(), head.lap(), head.pos()), (state, ring_parity, incarnation, lap, pos));
    }

    #[test]
    fn a_slot_gives_back_what_went_in(time in 0..=MAX_TIME, joined: bool, lap: u64) {
        let slot = Slot::new(time, joined, lap);
        prop_assert_eq!((slot.time(), slot.joined()), (time, joined));
        prop_assert!(slot.is_of_lap(lap) && !slot.is_of_lap(lap.wrapping_add(1)));
        prop_assert_eq!(RingRef(slot.0).is_ring(), joined);
        prop_assert!(slot.0 < crate::slab::LINK);
    }

    #[test]
    fn a_ring_reference_gives_back_what_went_in(ring_parity: bool, class in 1..32_usize, tag: u64, block: u32) {
        let ring = RingRef::new(ring_parity, class, tag, block);
        prop_assert!(ring.is_ring());
        prop_assert_eq!((ring.ring_parity(), ring.class(), ring.block()), (ring_parity, class, block));
    }
}

#[test]
fn what_was_never_used_has_expired_under_the_longest_window() {
    let longest = u64::try_from(crate::Quota::MAX_WINDOW.as_nanos()).unwrap();
    assert!(time_of(0) - (SENTINEL_END - 1) >= longest);
    assert_eq!(time_of(u64::MAX), MAX_TIME);
    assert!(Head::new(State::Open, true, u64::MAX, u64::MAX, 0).sentinel_number() < SENTINEL_END);
    assert!(Slot::new(u64::MAX, true, 1).0 < crate::slab::LINK);
    let century = 100 * 365 * 24 * 3600 * 1_000_000_000;
    assert!(time_of(century) < MAX_TIME);
}

#[test]
fn laps_wrap_without_changing_parity_order() {
    let last = Head::new(State::Open, false, 0, (1 << 28) - 1, 4);
    let next = last.advanced(1, 5);
    assert_eq!((next.lap(), next.pos(), next.incarnation()), (0, 0, 0));
}
