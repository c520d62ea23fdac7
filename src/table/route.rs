//! The packed words that name the current generation, and counts of one generation.

/// The number of index sizes (log2 of the slots): a power of two, so that a mask selects one.
pub(super) const SIZES: usize = 32;

/// Names the current generation.
///
/// ```text
/// Route { generation: 32, unused: 19, turning: 1, old_size: 6, size: 6 }
/// ```
///
/// Sizes are log2 of the slots. While the table is `turning`, lookups read the previous
/// generation's index, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route(pub(super) u64);

impl Route {
    const TURNING: u64 = 1 << 12;

    /// The first generation has number two, so that its predecessor's words differ from new memory.
    pub(super) fn first(size: u32) -> Self {
        Self((2 << 32) | u64::from(size))
    }

    /// The next generation, with an index of the given size, before its sweep.
    pub(super) fn turned(self, size: u32) -> Self {
        let generation = u64::from(self.generation().wrapping_add(1));
        Self((generation << 32) | Self::TURNING | (u64::from(self.size()) << 6) | u64::from(size))
    }

    /// The same generation, once the old one is swept.
    pub(super) fn swept(self) -> Self {
        Self(self.0 & !Self::TURNING)
    }

    #[inline]
    pub(super) fn generation(self) -> u32 {
        upper(self.0)
    }

    #[inline]
    pub(super) fn is_turning(self) -> bool {
        self.0 & Self::TURNING != 0
    }

    #[inline]
    pub(super) fn size(self) -> u32 {
        lower(self.0 & 0x3f)
    }

    pub(super) fn old_size(self) -> u32 {
        lower((self.0 >> 6) & 0x3f)
    }
}

/// A count that belongs to one generation.
///
/// ```text
/// Counted { generation: 32, count: 32 }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted(pub(super) u64);

impl Counted {
    pub(super) fn new(generation: u32, count: u32) -> Self {
        Self((u64::from(generation) << 32) | u64::from(count))
    }

    /// The count, if it is of this generation. Zero if it is of an earlier one; `None` if of a
    /// later one.
    pub(super) fn of(self, generation: u32) -> Option<u32> {
        let ahead = upper(self.0).wrapping_sub(generation);
        match ahead {
            0 => Some(lower(self.0)),
            _ if ahead > u32::MAX / 2 => Some(0),
            _ => None,
        }
    }
}

#[inline]
fn upper(word: u64) -> u32 {
    (word >> 32) as u32
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
fn lower(word: u64) -> u32 {
    word as u32
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_the_size_and_counts_on() {
        let first = Route::first(6);
        assert_eq!((first.generation(), first.size(), first.is_turning()), (2, 6, false));
        let second = first.turned(29);
        assert_eq!((second.generation(), second.size(), second.old_size(), second.is_turning()), (3, 29, 6, true));
        assert_eq!((second.swept().size(), second.swept().is_turning()), (29, false));
    }

    #[test]
    fn a_count_is_of_its_generation_only() {
        let count = Counted::new(7, 9);
        assert_eq!((count.of(7), count.of(8), count.of(6)), (Some(9), Some(0), None));
        assert_eq!(Counted::new(u32::MAX, 9).of(0), Some(0));
    }
}
