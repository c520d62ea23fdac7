//! The default fingerprinter: multiply-shift for keys of a few integers, SipHash for all else.

use core::fmt;
use core::hash::{Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::kinds::{Fingerprint, Fingerprinter, random_seed};

/// The most words of a key that is hashed by multiply-shift.
const WORDS: usize = 3;

/// The default fingerprinter, which resists keys that an attacker chooses. Each has a random seed.
///
/// - Keys of **up to three words** are hashed by *multiply-shift* with secret numbers of 128 bits,
///   once for each half of the fingerprint. These are integers, `Ipv4Addr`, `Ipv6Addr`, `IpAddr`,
///   and tuples and enums of integers. 128 bits count as two words, and the tag of an enum as one.
///   Multiply-shift is *strongly universal* (M. Dietzfelbinger, "Universal hashing and k-wise
///   independent random variables via integer arithmetic without primes", 1996): without the seed,
///   any two keys share a fingerprint with a probability of 2^-124, and the place of a key in the
///   table says nothing about the place of another.
/// - **All other keys** (strings, byte slices, arrays) are hashed by SipHash-1-3 with a 128-bit
///   result, as by [`SipFingerprinter`](super::SipFingerprinter).
///
/// SipHash resists an attacker who *sees* fingerprints; multiply-shift does not. No decision shows
/// a fingerprint. An attacker who can time single decisions to the nanosecond, such as other code
/// in the process, might still learn which keys lie close to each other in the table. Where that
/// matters, use [`SipFingerprinter`](super::SipFingerprinter) for numbers too.
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
    low: MultiplyShift,
    high: MultiplyShift,
    /// The key of the SipHash.
    sip: [u64; 2],
}

impl DefaultFingerprinter {
    /// A fingerprinter with a random seed from the operating system, by way of
    /// [`RandomState`](std::hash::RandomState).
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
        let (low, high) = (MultiplyShift::drawn_from(&mut draw), MultiplyShift::drawn_from(&mut draw));
        // Keys of its own, so that nothing has the fingerprint that a `SipFingerprinter` with this
        // seed gives it.
        let sip = [upper(draw()), upper(draw())];
        Self { seed: [seed0, seed1], low, high, sip }
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
        Fingerprint::new(spread(self.low.hash(words)), self.high.hash(words))
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

/// Spreads a half of a fingerprint. Products of keys at equal distances are at equal distances,
/// too, and would fill some stretches of the table and leave others empty. This function is a
/// bijection, so the hash stays universal. The upper bits of a product are the better ones, while
/// the lower bits choose the place in the table.
#[inline]
fn spread(half: u64) -> u64 {
    (half ^ (half >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
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
            Some(place) if self.long.is_none() => {
                *place = word;
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
