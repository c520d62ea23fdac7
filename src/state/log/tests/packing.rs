//! What is packed is the same again.

use super::*;

proptest! {
    #[test]
    fn a_packed_state_is_the_same_again(
        newest in 0..1_u64 << 62,
        run in 0..=MAX_RUN,
        position in 0..MAX_LEN,
        class in 0..=FULL_GROWN,
        start in 0..1_u32 << 30,
        reserved: bool,
    ) {
        let state = LogState { newest, run, position, ring: RingRef { class, start: 2 * start }, reserved };
        prop_assert_eq!(Permits::unpack(Permits::pack(state)), state);
        prop_assert_eq!(Permits::unpack(Permits::pack(state).frozen()), state);
        prop_assert!(Permits::pack(state).is_open());
        prop_assert!(!Permits::pack(state).frozen().is_open() && Permits::pack(state).frozen().is_frozen());
    }
}
