//! Keys become fingerprints; the keys themselves are never stored.
//!
//! A limiter hashes each key once, with a seed of its own drawn at random, and from then on knows
//! the fingerprint only. So any `Hash` key works in borrowed form, with no allocation and no
//! `Clone`, and names and addresses do not stay in memory. The price is that two keys with the same
//! fingerprint share their permits. A table keeps 59 bits of each: among a million live keys, some
//! two share them with a probability of 10^-6.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::hash::RandomState;

use siphasher::sip128::{Hasher128, SipHasher13};

/// The up to 128 bits that stand for a key. Limiters keep fingerprints and never keys.
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
    pub(crate) low: u64,
    /// Its lowest four bits are the number of the key's group, once [`of_group`](Self::of_group) has put
    /// it there.
    pub(crate) high: u64,
}

impl Fingerprint {
    /// The fingerprint with these halves.
    ///
    /// `low` must be spread evenly over all 64 bits. `high` may be zero, or has more such bits,
    /// independent of `low`. For an example, see [`Fingerprinter`].
    #[must_use]
    pub const fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The fingerprint of the same key, with the number of its group.
    #[inline]
    pub(crate) fn of_group(self, group: usize) -> Self {
        Self { high: (self.high & !GROUP) | (group as u64 & GROUP), ..self }
    }

    /// The fingerprint of the same key in one of several dimensions, each with a group of its own.
    /// The same key in two of them has two places in the table.
    pub(crate) fn in_dimension(self, dimension: usize) -> Self {
        let apart = (dimension as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { low: self.low ^ apart, ..self }.of_group(dimension)
    }

    /// A number for the key, without its group. Fingerprints of keys at equal distances may be at equal
    /// distances, too; these numbers are not, because the upper half is folded onto the lower before
    /// the product.
    #[inline]
    pub(crate) fn spread(self) -> u64 {
        let mixed = self.low ^ (self.high & !GROUP).rotate_left(32);
        (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The number of the key's group.
    #[inline]
    pub(crate) fn group(self) -> usize {
        (self.high & GROUP) as usize
    }
}

/// The bits of a fingerprint that hold the number of its group.
const GROUP: u64 = 0xf;

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
fn random_seed() -> [u64; 2] {
    [0_u8, 1].map(|tweak| RandomState::new().hash_one(tweak))
}

/// SipHash-1-3 with a 128-bit result and a random 128-bit seed, for keys of any kind.
///
/// The [default](DefaultFingerprinter) hashes short keys of integers in a faster way, and
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

/// The most words of a key that is hashed by multiply-shift.
const WORDS: usize = 3;

/// The default fingerprinter, which resists keys that an attacker chooses. Each has a random seed.
///
/// - Keys of **up to three words** are hashed by *multiply-shift* with secret numbers of 128 bits,
///   to a fingerprint of 64 bits. These are integers, `Ipv4Addr`, `Ipv6Addr`, `IpAddr`,
///   and tuples and enums of integers. 128 bits count as two words, and the tag of an enum as one.
///   Multiply-shift is *strongly universal* (M. Dietzfelbinger, "Universal hashing and k-wise
///   independent random variables via integer arithmetic without primes", 1996): without the seed,
///   any two keys share the 59 bits that a table keeps with a probability of 2^-59, and the place of
///   a key in the table says nothing about the place of another.
/// - **All other keys** (strings, byte slices, arrays) are hashed by SipHash-1-3 with a 128-bit
///   result, as by [`SipFingerprinter`].
///
/// SipHash resists an attacker who *sees* fingerprints; multiply-shift does not. No decision shows
/// a fingerprint. An attacker who can time single decisions to the nanosecond, such as other code
/// in the process, might still learn which keys lie close to each other in the table. Where that
/// matters, use [`SipFingerprinter`] for numbers too.
///
/// ```
/// use tollgate::{DefaultFingerprinter, Fingerprinter};
///
/// let fingerprinter = DefaultFingerprinter::new();
/// assert_eq!(fingerprinter.fingerprint(&7_u64), fingerprinter.fingerprint(&7_u64));
/// assert_ne!(fingerprinter.fingerprint(&7_u64), fingerprinter.fingerprint(&8_u64));
/// ```
#[derive(Clone)]
pub struct DefaultFingerprinter {
    seed: [u64; 2],
    multiply_shift: MultiplyShift,
    /// The key of the SipHash.
    sip: [u64; 2],
}

impl DefaultFingerprinter {
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
    /// use tollgate::{DefaultFingerprinter, Fingerprinter};
    ///
    /// let of_run = || DefaultFingerprinter::with_seed(1, 2).fingerprint("alice");
    /// assert_eq!(of_run(), of_run());
    /// ```
    #[must_use]
    pub fn with_seed(seed0: u64, seed1: u64) -> Self {
        let source = SipHasher13::new_with_keys(seed0, seed1);
        let mut drawn = 0_u64;
        let mut draw = || {
            drawn += 1;
            let hash = source.hash(&drawn.to_le_bytes());
            (u128::from(hash.h1) << 64) | u128::from(hash.h2)
        };
        let multiply_shift = MultiplyShift::drawn_from(&mut draw);
        // Keys of its own, so that nothing has the fingerprint that a `SipFingerprinter` with this
        // seed gives it.
        let sip = [upper(draw()), upper(draw())];
        Self { seed: [seed0, seed1], multiply_shift, sip }
    }
}

impl Default for DefaultFingerprinter {
    fn default() -> Self {
        Self::new()
    }
}

impl Fingerprinter for DefaultFingerprinter {
    #[inline]
    fn fingerprint<Q: Hash + ?Sized>(&self, key: &Q) -> Fingerprint {
        let mut words = Words { sip: self.sip, words: [0; WORDS], count: 0, long: None };
        key.hash(&mut words);
        if let Some(long) = &words.long {
            let hash = long.finish128();
            return Fingerprint::new(hash.h1, hash.h2);
        }
        let words = &words.words[..words.count];
        Fingerprint::new(self.multiply_shift.hash(words), 0)
    }

    fn secret(&self) -> Option<[u64; 2]> {
        Some(self.seed)
    }

    fn with_secret(self, [seed0, seed1]: [u64; 2]) -> Self {
        Self::with_seed(seed0, seed1)
    }
}

impl fmt::Debug for DefaultFingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seed is left out: with it, one can make keys collide.
        f.debug_struct("DefaultFingerprinter").finish_non_exhaustive()
    }
}

/// Multiply-shift: each word is multiplied by a number of its own, the products and one more number
/// are added modulo 2^128, and the upper half is the result. The number of words is one more word.
#[derive(Clone, Copy)]
struct MultiplyShift {
    by: [u128; WORDS],
    by_count: u128,
    plus: u128,
}

impl MultiplyShift {
    fn drawn_from(draw: &mut impl FnMut() -> u128) -> Self {
        Self { by: core::array::from_fn(|_| draw()), by_count: draw(), plus: draw() }
    }

    #[inline]
    fn hash(&self, words: &[u64]) -> u64 {
        let products = self.by.iter().zip(words).map(|(by, &word)| by.wrapping_mul(word.into()));
        let count = self.by_count.wrapping_mul(words.len() as u128);
        upper(products.fold(self.plus.wrapping_add(count), u128::wrapping_add))
    }
}

#[inline]
fn upper(number: u128) -> u64 {
    (number >> 64) as u64
}

/// A hasher that collects integers as words. It changes to SipHash if there are more words, or if
/// the key has another part.
struct Words {
    sip: [u64; 2],
    words: [u64; WORDS],
    count: usize,
    long: Option<SipHasher13>,
}

impl Words {
    /// A SipHash that has hashed the words so far.
    #[inline]
    fn so_far(&self) -> SipHasher13 {
        let mut sip = SipHasher13::new_with_keys(self.sip[0], self.sip[1]);
        self.words[..self.count].iter().for_each(|&word| sip.write_u64(word));
        sip
    }

    // Out of line, so that the path of a key that is a number is a few multiplications.
    #[cold]
    #[inline(never)]
    fn write_one_too_many(&mut self, word: u64) {
        let so_far = self.so_far();
        self.long.get_or_insert(so_far).write_u64(word);
    }
}

impl Hasher for Words {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if self.long.is_none() {
            self.long = Some(self.so_far());
        }
        if let Some(long) = &mut self.long {
            long.write(bytes);
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        match self.words.get_mut(self.count) {
            Some(free) if self.long.is_none() => {
                *free = word;
                self.count += 1;
            }
            _ => self.write_one_too_many(word),
        }
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        match &mut self.long {
            // The byte that ends a string.
            Some(long) => long.write_u8(word),
            None => self.write_u64(word.into()),
        }
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write_u128(&mut self, word: u128) {
        self.write_u64(upper(word));
        self.write_u64(upper(word << 64));
    }

    /// For implementations of `Hash` that call it. Fingerprints do not.
    fn finish(&self) -> u64 {
        self.long.unwrap_or_else(|| self.so_far()).finish()
    }
}

#[cfg(test)]
mod tests;
