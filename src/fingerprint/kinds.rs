//! Fingerprints, and ways to make them by a standard hasher.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::hash::RandomState;

use siphasher::sip128::{Hasher128, SipHasher13};

/// The 128 bits that stand for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The half that chooses the place in the table.
    pub(crate) low: u64,
    /// The half that only tells keys apart.
    pub(crate) high: u64,
}

impl Fingerprint {
    /// A fingerprint of the given halves. Both must be spread evenly over all 64 bits and independent of each other.
    #[must_use]
    pub const fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The fingerprint of the same key among the keys of one plan. What is given up for it are bits that only tell keys apart.
    #[inline]
    pub(crate) fn of_plan(self, plan: usize) -> Self {
        Self { high: (self.high & !PLAN) | (plan as u64 & PLAN), ..self }
    }

    /// The fingerprint of the same key in one of several dimensions, each with a plan of its own. The same key in two of them
    /// has two places in the table.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let apart = (dimension as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { low: self.low ^ apart, ..self }.of_plan(dimension)
    }

    /// The plan of the keys that the fingerprint is of.
    #[inline]
    pub(crate) fn plan(self) -> usize {
        Self::plan_in(self.high)
    }

    /// The same, from the half that tells keys apart.
    #[inline]
    pub(crate) fn plan_in(high: u64) -> usize {
        (high & PLAN) as usize
    }
}

/// The bits of a fingerprint that say how its key is limited.
const PLAN: u64 = 0xf;

/// How many plans can be told apart.
pub(crate) const MAX_PLANS: usize = 16;

/// Turns keys into fingerprints. Equal keys, borrowed or owned, must give equal fingerprints.
pub trait Fingerprinter {
    /// The fingerprint of `key`.
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint;

    /// What a snapshot has to keep so that keys get the same fingerprints after a restart; `None`, unless said, where that is up
    /// to whoever makes the fingerprinter.
    fn secret(&self) -> Option<[u64; 2]> {
        None
    }

    /// The same kind of fingerprinter with the secret of another.
    #[must_use]
    fn with_secret(self, _secret: [u64; 2]) -> Self
    where
        Self: Sized,
    {
        self
    }
}

/// A seed from the operating system's randomness.
pub(super) fn random_seed() -> [u64; 2] {
    [0_u8, 1].map(|tweak| RandomState::new().hash_one(tweak))
}

/// SipHash-1-3 with a 128-bit result and a random 128-bit seed, for keys of any kind. The [default](crate::DefaultFingerprinter) takes it
/// for all keys but short ones made of integers.
///
/// SipHash is a keyed pseudo-random function made to hold up against keys that an attacker chooses (Aumasson and Bernstein,
/// "SipHash: a fast short-input PRF", 2012): without the seed nobody can construct two keys that share a fingerprint, and
/// so nobody can spend another key's permits or pile keys onto one place in the table.
#[derive(Clone)]
pub struct SipFingerprinter {
    hasher: SipHasher13,
}

impl SipFingerprinter {
    /// A fingerprinter with a seed of its own, from the operating system's randomness by way of [`RandomState`].
    #[must_use]
    pub fn new() -> Self {
        let [seed0, seed1] = random_seed();
        Self::with_seed(seed0, seed1)
    }

    /// A fingerprinter with a given seed, for runs that must repeat. Keep the seed secret where keys come from outside.
    #[must_use]
    pub fn with_seed(seed0: u64, seed1: u64) -> Self {
        Self { hasher: SipHasher13::new_with_keys(seed0, seed1) }
    }
}

impl Default for SipFingerprinter {
    fn default() -> Self {
        Self::new()
    }
}

impl Fingerprinter for SipFingerprinter {
    #[inline]
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        let hash = hasher.finish128();
        Fingerprint::new(hash.h1, hash.h2)
    }

    fn secret(&self) -> Option<[u64; 2]> {
        let (seed0, seed1) = self.hasher.keys();
        Some([seed0, seed1])
    }

    fn with_secret(self, [seed0, seed1]: [u64; 2]) -> Self {
        Self::with_seed(seed0, seed1)
    }
}

impl fmt::Debug for SipFingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the seed: who has it can make keys collide.
        f.debug_struct("SipFingerprinter").finish_non_exhaustive()
    }
}

/// Any standard [`BuildHasher`], used twice: once for each half of the fingerprint.
///
/// The two halves differ by a prefix, so they are as independent as the hasher is good. For keys that come from outside
/// choose a hasher that is seeded and resists chosen keys.
#[derive(Debug, Clone, Default)]
pub struct HashTwice<S>(S);

impl<S> HashTwice<S> {
    /// Fingerprints by `hasher`.
    pub const fn new(hasher: S) -> Self {
        Self(hasher)
    }
}

impl<S: BuildHasher> Fingerprinter for HashTwice<S> {
    #[inline]
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
        let half = |prefix: u64| {
            let mut hasher = self.0.build_hasher();
            hasher.write_u64(prefix);
            key.hash(&mut hasher);
            hasher.finish()
        };
        Fingerprint::new(half(0x9e37_79b9_7f4a_7c15), half(0xc2b2_ae3d_27d4_eb4f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_and_owned_keys_agree_and_seeds_differ() {
        let one = SipFingerprinter::new();
        assert_eq!(one.fingerprint("alice"), one.fingerprint(&String::from("alice")));
        assert_ne!(one.fingerprint("alice"), one.fingerprint("bob"));
        assert_ne!(one.fingerprint("alice"), SipFingerprinter::new().fingerprint("alice"));
        let again = |key: &str| SipFingerprinter::with_seed(1, 2).fingerprint(key);
        assert_eq!(again("alice"), again("alice"));
    }

    #[test]
    fn the_halves_of_a_standard_hasher_differ() {
        let twice = HashTwice::new(RandomState::new());
        let fingerprint = twice.fingerprint(&7_u32);
        assert_ne!(fingerprint.low, fingerprint.high);
        assert_eq!(fingerprint, twice.fingerprint(&7_u32));
    }
}
