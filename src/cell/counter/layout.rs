//! The layout of an account in the lower bits of its head.

use crate::cell::words::Head;
use crate::rule::Rule;

/// The kind of an era, which determines its anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cell) enum EraKind {
    /// An account opens: at the time of the claim, or later.
    Opens = 0,
    /// It goes on under an anchor that is a function of the last one.
    Advances = 1,
    /// It was over; the anchor says since when.
    Closes = 2,
    /// It goes on under another version, from the time at which that began.
    Changes = 3,
    /// An account opens with one permit, in place of one that is over.
    Replaces = 4,
}

/// The fields below the incarnation, in a cell with an account. `used` takes little more than it
/// needs; the rest tells eras apart.
///
/// ```text
/// { era: 44 - used, version: 6, kind: 2, used: 20 or as many as the first rule needs }
/// ```
///
/// `version` is the number of the version modulo 64. The bit of the ring parity says that the
/// account *replaces* another: then `used` is what the old account had used, and this one has used
/// one permit. The next head of the account says how much it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cell) struct Layout {
    used_bits: u32,
}

impl Layout {
    /// A later version may have a larger limit.
    const LEAST_USED_BITS: u32 = 20;
    const VERSION_BITS: u32 = 6;
    const KIND_BITS: u32 = 2;

    pub(in crate::cell) fn of(rule: &Rule) -> Self {
        Self { used_bits: rule.used_below().next_power_of_two().ilog2().max(Self::LEAST_USED_BITS) }
    }

    /// The largest `used` of a head: no less than any limit that there is room for.
    pub(super) fn most_used(self) -> u64 {
        (1 << self.used_bits) - 1
    }

    pub(super) fn era_at(self) -> u32 {
        self.used_bits + Self::KIND_BITS + Self::VERSION_BITS
    }

    #[inline]
    pub(super) fn used(self, head: Head) -> u64 {
        if head.ring_parity() { 1 } else { self.used_before(head) }
    }

    /// The same number as the head has it: of an account that replaces another, what that had used.
    #[inline]
    pub(super) fn used_before(self, head: Head) -> u64 {
        head.low_bits() & self.most_used()
    }

    #[inline]
    pub(super) fn kind(self, head: Head) -> EraKind {
        match (head.low_bits() >> self.used_bits) & 3 {
            _ if head.ring_parity() => EraKind::Replaces,
            0 => EraKind::Opens,
            1 => EraKind::Advances,
            2 => EraKind::Closes,
            _ => EraKind::Changes,
        }
    }

    #[inline]
    pub(super) fn era(self, head: Head) -> u64 {
        head.low_bits() >> self.era_at()
    }

    /// The version of the account, as far as the head tells.
    #[inline]
    pub(super) fn version(self, head: Head) -> u64 {
        (head.low_bits() >> (self.used_bits + Self::KIND_BITS)) & Self::version_of(u64::MAX)
    }

    /// The bits of a version's number that a head has.
    #[inline]
    pub(super) fn version_of(number: u64) -> u64 {
        number & ((1 << Self::VERSION_BITS) - 1)
    }

    fn with(self, head: Head, era: u64, version: u64, kind: EraKind, used: u64) -> Head {
        let (is_replacing, kind) = if kind == EraKind::Replaces { (true, EraKind::Opens) } else { (false, kind) };
        let upper = ((era << Self::VERSION_BITS | version) << Self::KIND_BITS) | kind as u64;
        head.with_ring_parity(is_replacing).with_low_bits((upper << self.used_bits) | used)
    }

    /// The head of the next era.
    pub(in crate::cell) fn next(self, head: Head, version: u64, kind: EraKind, used: u64) -> Head {
        self.with(head, self.era(head) + 1, Self::version_of(version), kind, used)
    }

    /// The head of the next era if one permit opens it in place of an account that is over, under
    /// the same version.
    #[inline]
    pub(super) fn replaced(self, head: Head) -> Head {
        self.next(head, self.version(head), EraKind::Replaces, self.used(head))
    }

    /// The head of the same era with more used.
    #[inline]
    pub(super) fn charged(self, head: Head, used: u64) -> Head {
        head.with_ring_parity(false).with_low_bits((head.low_bits() >> self.used_bits << self.used_bits) | used)
    }

    /// The head with another `used` or version, under the same anchor: two eras on, which keeps the
    /// parity.
    pub(super) fn two_eras_on(self, head: Head, version: u64, used: u64) -> Head {
        let kind = if head.ring_parity() { EraKind::Opens } else { self.kind(head) };
        self.with(head, self.era(head) + 2, Self::version_of(version), kind, used)
    }

    /// The eras from one head to a later one of the same incarnation.
    pub(super) fn eras_between(self, earlier: Head, later: Head) -> u64 {
        self.era(later).wrapping_sub(self.era(earlier)) & ((1 << (52 - self.era_at())) - 1)
    }
}
