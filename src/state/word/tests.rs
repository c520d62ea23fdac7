use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_packed_state_is_the_same_again(
        newest in 0..1_u64 << 62,
        run in 0..=MAX_RUN,
        position in 0..1_u32 << POSITION_BITS,
        class in 0..=MAX_CLASS,
        number in 0..1_u32 << 30,
        reserved: bool,
    ) {
        let state = LogState { newest, run, position, ring: RingRef { class, number }, reserved };
        prop_assert_eq!(LogState::unpack(state.pack()), state);
        prop_assert_eq!(LogState::unpack(state.pack().frozen()), state);
        prop_assert!(state.pack().is_open());
        prop_assert!(!state.pack().frozen().is_open() && state.pack().frozen().is_frozen());
    }
}
