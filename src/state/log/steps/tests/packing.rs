//! What is packed is the same again.

use super::*;

proptest! {
    #[test]
    fn a_packed_state_is_the_same_again(
        newest in 0..1_u64 << 62,
        run in 0..=MAX_TOTAL,
        slot in 0..1_u32 << SLOT_BITS,
        class in 0..16_u32,
    ) {
        let start = slot & !mask(class);
        let position = if class > 0 { slot - start + 1 } else { 1 };
        let ring = RingRef { class, start: if class > 0 { start } else { 0 } };
        let state = LogState { newest, run, position, ring, reserved: false };
        prop_assert_eq!(Steps::unpack(Steps::pack(state)), state);
        prop_assert_eq!(Steps::unpack(Steps::pack(state).frozen()), state);
        prop_assert!(Steps::pack(state).is_open());
        // Past the last slot of the ring comes the first.
        let next = Steps::unpack(Steps::pack(LogState { position: position + 1, ..state }));
        prop_assert_eq!((next.ring, next.position), (ring, if class == 0 || position == 1 << class { 1 } else { position + 1 }));
    }

    #[test]
    fn entries_are_in_the_order_of_steps(
        newest in 1_u64..1 << 62, back in 0..1_u64 << 15, total in 0..=MAX_TOTAL, other in 0..=MAX_TOTAL,
    ) {
        let state = LogState { newest, ..LogState::default() };
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
