use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_packed_state_is_the_same_again(
        newest in 0..1_u64 << 62,
        used in 0..=MAX_TOTAL,
        slot in 0..1_u32 << SLOT_BITS,
        class in 0..16_u32,
    ) {
        let state = StepsState { newest, used, slot, class };
        prop_assert_eq!(StepsState::unpack(state.pack()), state);
        prop_assert_eq!(StepsState::unpack(state.pack().frozen()), state);
        prop_assert!(state.pack().is_open());
    }

    #[test]
    fn a_slot_names_its_ring(class in 1..16_u32, ring in 0..1_u32 << 14, newest in 0..1_u64 << 62, at in 0..1_u32 << 15) {
        let number = if class <= MAX_SHORT { ring << class >> 1 } else { ring };
        let (ring, len) = (RingRef { class, number }, 1 << class);
        let place = at as usize % len;
        let state = StepsState { newest, ..StepsState::default() }.in_ring(ring, place).unwrap();
        prop_assert_eq!(state.ring(), ring);
        prop_assert_eq!(state.place(0), place);
        let next = state.next(newest, 1);
        prop_assert_eq!((next.ring(), next.place(0), next.place(1)), (ring, (place + 1) % len, place));
    }

    #[test]
    fn entries_are_in_the_order_of_steps(
        newest in 1_u64..1 << 62, back in 0..1_u64 << 15, total in 0..=MAX_TOTAL, other in 0..=MAX_TOTAL,
    ) {
        let state = StepsState { newest, ..StepsState::default() };
        let older = newest.saturating_sub(back);
        let entry = |step, total| Entry::new(state.number_of(step), total);
        prop_assert_eq!(state.step_of(entry(older, total)), older);
        prop_assert_eq!(entry(older, total).total(), total);
        prop_assert!(entry(older, total) > Entry(0));
        if older < newest {
            prop_assert!(entry(older, total) < entry(newest, other));
        } else {
            prop_assert_eq!(entry(older, total) < entry(newest, other), total < other);
        }
    }
}
