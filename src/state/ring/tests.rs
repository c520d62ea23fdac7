use super::*;

/// All names of the longest rings but one are taken: no slot of these is allocated.
fn nearly_full() -> Rings {
    let rings = Rings::with_room(8);
    (1..(1 << 31) / MAX_LEN).for_each(|ring| assert_eq!(rings.take(MAX_LEN), (ring - 1) * MAX_LEN));
    rings
}

#[test]
fn an_arena_has_names_for_16_gib() {
    let rings = nearly_full();
    assert_eq!(rings.take(MAX_LEN), (1 << 31) - MAX_LEN);
    assert_eq!(rings.slots() * 8, 16 << 30);
}

#[test]
#[should_panic(expected = "less than 16 GiB")]
fn a_ring_beyond_them_panics() {
    let rings = nearly_full();
    (0..2).for_each(|_| assert_eq!(rings.take(MAX_LEN) % MAX_LEN, 0));
}

/// Rings of any length lie beside one another, each short one in one page.
#[test]
fn no_slot_is_in_two_rings() {
    let rings = Rings::with_room(8);
    let lengths = (2..24).chain((2..9).rev()).chain([3, 2, 4, 5, 3, 8]);
    let taken: Vec<_> = lengths.map(|len| (rings.take(len), len)).collect();
    for &(start, len) in &taken {
        assert!(start % 2 == 0 && (!len.is_power_of_two() || start % len == 0), "{len} slots from {start} on");
    }
    let slots = taken.iter().flat_map(|&(start, len)| rings.get(start, len).0).map(core::ptr::from_ref);
    let mut slots: Vec<_> = slots.collect();
    let count = slots.len();
    assert_eq!(rings.slots(), count as u64);
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), count);
}
