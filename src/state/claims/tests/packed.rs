//! What words of atomics hold.

use proptest::prelude::*;

use crate::state::claims::descriptor::State;
use crate::state::claims::*;

proptest! {
    #[test]
    fn what_is_packed_is_the_same_again(
        serial: u32,
        workers in 0..1_u32 << 26,
        parts in 0..=8_u32,
        descriptor: u32,
        installation in 0..1_u64 << 61,
        name: (u32, u64, u32),
        words in prop::array::uniform2(0..1_u128 << 126),
        life in prop::option::of(0..1_u64 << 62),
    ) {
        for phase in [Phase::Free, Phase::Undecided, Phase::Granted, Phase::Aborted] {
            let state = State { serial, workers, parts, phase };
            prop_assert_eq!(State::unpack(state.pack()), state);
        }
        let held = Held { claim: ClaimName { descriptor, serial }, installation };
        prop_assert_eq!(Held::of(held.pack()), Some(held));
        prop_assert!(Held::of(held.pack().frozen()).is_none() && Held::of(Word::of(words[0])).is_none());
        let name = CellName { shard: name.0, arena: name.1, index: name.2 };
        let [old, new] = words.map(Word::of);
        let unpacked = Part::unpack(Part { name, cell: None, old, new, life }.pack());
        prop_assert_eq!((unpacked.name, unpacked.old, unpacked.new, unpacked.life), (name, old, new, life));
    }
}
