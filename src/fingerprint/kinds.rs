//! Fingerprints, and ways to make them by a standard hasher.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::hash::RandomState;

use siphasher::sip128::{Hasher128, SipHasher13};

/// The 128 bits that stand for a key. Limiters keep fingerprints and never keys.
///
/// ```
/// use tollgate::{DefaultFingerprinter, Fingerprint, Fingerprinter};
///
/// let fingerprinter = DefaultFingerprinter::new();
/// let alice: Fingerprint = fingerprinter.fingerprint("alice");
/// assert_eq!(alice, fingerprinter.fingerprint(&String::from("alice")));
/// assert_ne!(alice, fingerprinter.fingerprint("bob"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The half that chooses the place in the table.
    pub(crate) low: u64,
    /// The half that only tells keys apart.
    pub(crate) high: u64,
}

impl Fingerprint {
    /// The fingerprint with these halves.
    ///
    /// Both must be spread evenly over all 64 bits, and be independent of each other. For an
    /// example, see [`Fingerprinter`].
    #[must_use]
    pub const fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The fingerprint of the same key, with the number of its plan. The number replaces bits of
    /// the half that only tells keys apart.
    #[inline]
    pub(crate) fn of_plan(self, plan: usize) -> Self {
        Self { high: (self.high & !PLAN) | (plan as u64 & PLAN), ..self }
    }

    /// The fingerprint of the same key in one of several dimensions, each with a plan of its own.
    /// The same key in two of them has two places in the table.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let apart = (dimension as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { low: self.low ^ apart, ..self }.of_plan(dimension)
    }

    /// The number of the key's plan.
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

/// The bits of a fingerprint that hold the number of its plan.
const PLAN: u64 = 0xf;

/// The most plans of a limiter.
pub(crate) const MOST_PLANS: usize = 16;

/// Turns keys into fingerprints. Equal keys, borrowed or owned, must have equal fingerprints.
///
/// Implement it to hash keys in your own way, and pass it to
/// [`LimiterBuilder::fingerprinter`](crate::LimiterBuilder::fingerprinter).
///
/// ```
/// use std::hash::{BuildHasher, Hash, RandomState};
/// use tollgate::{Fingerprint, Fingerprinter, Limiter, Quota};
///
/// /// Hashes a key with two seeds of the standard library.
/// struct TwoSeeds(RandomState, RandomState);
///
/// impl Fingerprinter for TwoSeeds {
///     fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
///         Fingerprint::new(self.0.hash_one(key), self.1.hash_one(key))
///     }
/// }
///
/// let seeds = TwoSeeds(RandomState::new(), RandomState::new());
/// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).fingerprinter(seeds).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_denied());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Fingerprinter {
    /// The fingerprint of `key`.
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint;

    /// The secret that a snapshot keeps, so that keys have the same fingerprints after a restart.
    ///
    /// `None` by default: then the caller has to restore with the fingerprinter that the limiter
    /// had.
    ///
    /// ```
    /// use tollgate::{DefaultFingerprinter, Fingerprinter};
    ///
    /// let before = DefaultFingerprinter::new();
    /// let secret = before.secret().expect("it has a seed");
    /// let after = DefaultFingerprinter::new().with_secret(secret);
    /// assert_eq!(before.fingerprint("alice"), after.fingerprint("alice"));
    /// ```
    fn secret(&self) -> Option<[u64; 2]> {
        None
    }

    /// This fingerprinter with the [secret](Self::secret) of another. By default, the secret is
    /// ignored.
    ///
    /// ```
    /// use tollgate::{Fingerprinter, SipFingerprinter};
    ///
    /// let fingerprinter = SipFingerprinter::new().with_secret([1, 2]);
    /// assert_eq!(fingerprinter.secret(), Some([1, 2]));
    /// ```
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

/// SipHash-1-3 with a 128-bit result and a random 128-bit seed, for keys of any kind.
///
/// The [default](crate::DefaultFingerprinter) hashes short keys of integers in a faster way, and
/// all other keys like this.
///
/// SipHash is a keyed pseudo-random function (Aumasson and Bernstein, "SipHash: a fast short-input
/// PRF", 2012). Without the seed, an attacker cannot construct two keys that share a fingerprint.
/// So no client can spend the permits of another key, or crowd keys into one place of the table.
///
/// ```
/// use tollgate::{Limiter, Quota, SipFingerprinter};
///
/// let builder = Limiter::<u64>::builder(Quota::per_minute(1));
/// let limiter = builder.fingerprinter(SipFingerprinter::new()).build()?;
/// assert!(limiter.try_acquire(&7).is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone)]
pub struct SipFingerprinter {
    hasher: SipHasher13,
}

impl SipFingerprinter {
    /// A fingerprinter with a random seed from the operating system, by way of [`RandomState`].
    #[must_use]
    pub fn new() -> Self {
        let [seed0, seed1] = random_seed();
        Self::with_seed(seed0, seed1)
    }

    /// A fingerprinter with a given seed, for runs that must repeat.
    ///
    /// Keep the seed secret where keys come from outside.
    ///
    /// ```
    /// use tollgate::{Fingerprinter, SipFingerprinter};
    ///
    /// let of_run = || SipFingerprinter::with_seed(1, 2).fingerprint("alice");
    /// assert_eq!(of_run(), of_run());
    /// ```
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
        // The seed is left out: with it, one can make keys collide.
        f.debug_struct("SipFingerprinter").finish_non_exhaustive()
    }
}

/// Hashes a key twice with a standard [`BuildHasher`], once for each half of the fingerprint.
///
/// The two hashes differ by a prefix, so the halves are as independent as the hasher is good. For
/// keys that come from outside, choose a hasher that has a random seed and resists chosen keys.
/// [`LimiterBuilder::hasher`](crate::LimiterBuilder::hasher) makes one.
///
/// ```
/// use std::hash::RandomState;
/// use tollgate::{HashTwice, Limiter, Quota};
///
/// let hashed = HashTwice::new(RandomState::new());
/// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).fingerprinter(hashed).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct HashTwice<S>(S);

impl<S> HashTwice<S> {
    /// A fingerprinter that uses `hasher`.
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
mod tests;
