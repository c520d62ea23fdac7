//! Pages, numbers and the free stack.

use super::*;

#[test]
fn every_block_has_a_place_of_its_own_and_pages_grow_by_an_eighth() {
    for words in [1, 4, 100, 1000] {
        let slab = <Slab>::new(words, 20_000);
        let mut expected = (0, 0);
        for block in 0..20_000 {
            assert_eq!(slab.locate(block), expected, "block {block} of {words} words");
            assert_eq!(<Slab>::page_and_place(slab.nth(block)), (expected.0, expected.1 as usize));
            assert_eq!(slab.number_of(slab.nth(block)), block);
            expected.1 += 1;
            if expected.1 as usize * words == slab.page_length(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}

/// Four words, of which the third holds the link.
struct Four([AtomicU64; 4]);

impl Element for Four {
    const BYTES: usize = 32;

    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 4])
    }

    fn link(&self) -> &AtomicU64 {
        &self.0[2]
    }
}

#[test]
fn elements_lie_where_blocks_of_words_do() {
    let (slab, other) = (Slab::<Four, FIRST_PAGES>::new(1, 20_000), <Slab>::new(4, 20_000));
    for number in 0..20_000 {
        let block = slab.alloc().unwrap();
        assert_eq!(other.alloc(), Some(block));
        slab.element(block).0[3].store(number, Ordering::Relaxed);
    }
    for number in 0..20_000 {
        let block = slab.nth(low_half(number));
        let [element] = slab.block(block) else { panic!("not one element") };
        assert!(core::ptr::eq(element, slab.element(block)));
        assert_eq!(element.0[3].load(Ordering::Relaxed), number);
    }
    // The near pages need no slices that say where they are.
    assert_eq!(other.bytes() - slab.bytes(), FIRST_PAGES * (size_of::<Page<Four>>() + size_of::<usize>()));
    let beyond = slab.nth(20_000) | ((1 << PLACE_BITS) - 1);
    assert!(slab.element_if_there(beyond).is_none() && slab.element_if_there(64).is_none());
}

#[test]
fn the_last_block_fits_in_its_word_and_there_is_no_block_beyond_a_page() {
    for words in [1, 4, 100, 1000] {
        let slab = <Slab>::new(words, u32::MAX);
        let last = slab.nth(MOST_BLOCKS - 1);
        let largest_place = (1 << PLACE_BITS) - 1;
        assert_eq!((last & largest_place, slab.number_of(last)), (largest_place, MOST_BLOCKS - 1), "{words} words");
        assert!(last < u32::MAX);
        let first = slab.alloc().unwrap();
        assert!(slab.block_if_there(first).is_some());
        assert!(slab.block_if_there(first + (1 << first_page_bits::<AtomicU64>(words))).is_none());
        assert!(slab.block_if_there(last).is_none() && slab.block_if_there(u32::MAX).is_none());
    }
}

#[test]
fn blocks_are_used_again_and_run_out_at_the_maximum() {
    let slab = Slab::<Four>::new(1, 3);
    let taken = [slab.alloc(), slab.alloc(), slab.alloc()];
    assert_eq!(taken, [Some(0), Some(1), Some(2)]);
    assert_eq!(slab.alloc(), None);
    slab.free(1);
    slab.free(2);
    assert!(slab.has_room());
    assert_eq!([0, 1, 2, 3].map(|most| slab.room_up_to(most)), [0, 1, 2, 2]);
    assert_eq!([slab.alloc(), slab.alloc(), slab.alloc()], [Some(2), Some(1), None]);
    assert_eq!((slab.room_up_to(3), <Slab>::new(4, 3).room_up_to(5)), (0, 3));
    assert_eq!(slab.handed_out(), 3);
}
