use super::*;

/// All names of the longest rings but one are taken: no slot of these is allocated.
fn nearly_full() -> Rings {
    let rings = Rings::with_room(8);
    (1..1 << (31 - MAX_CLASS)).for_each(|_| assert_eq!(rings.take(MAX_CLASS).len(), 1 << MAX_CLASS));
    rings
}

#[test]
fn an_arena_has_names_for_16_gib() {
    let rings = nearly_full();
    let last = rings.take(MAX_CLASS);
    assert_eq!(u64::from(last.start) + (1 << MAX_CLASS), 1 << 31);
    assert_eq!(rings.slots() * 8, 16 << 30);
}

#[test]
#[should_panic(expected = "less than 16 GiB")]
fn a_ring_beyond_them_panics() {
    let rings = nearly_full();
    (0..2).for_each(|_| assert_eq!(rings.take(MAX_CLASS).len(), 1 << MAX_CLASS));
}
