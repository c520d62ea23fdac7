//! Keys, and the order in which they ask: drawn beforehand, from fixed seeds, the same for every
//! contender.

use std::hash::Hash;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

const SEED: u64 = 0x746f_6c6c_6761_7465;

/// A type of key that every contender can be asked about.
pub trait Key: Hash + Eq + Clone + Send + Sync + 'static {
    /// The key of a given rank; the most popular one has rank zero. Different ranks have different
    /// keys.
    fn of_rank(rank: u64) -> Self;

    /// The key's bytes, for limiters that take nothing else.
    fn bytes(&self) -> impl AsRef<[u8]> + '_;
}

impl Key for u64 {
    fn of_rank(rank: u64) -> Self {
        // The finaliser of splitmix64, a bijection: keys in a row would flatter weak hash
        // functions.
        let mixed = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[inline]
    fn bytes(&self) -> impl AsRef<[u8]> + '_ {
        self.to_ne_bytes()
    }
}

/// Names of 8 to 64 bytes.
impl Key for String {
    fn of_rank(rank: u64) -> Self {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mixed = u64::of_rank(rank);
        let length = 8 + mixed % 57;
        // The rank itself in eight letters, so that no two keys are the same; the rest are letters
        // that look like any others.
        let letter = |place: u64| match place {
            0..8 => rank.wrapping_mul(0x9e_3779_b97f) >> (5 * place),
            _ => mixed.rotate_left(u32::try_from(5 * place % 64).expect("less than 64")),
        };
        (0..length)
            .map(|place| char::from(LETTERS[usize::try_from(letter(place) % 32).expect("less than 32")]))
            .collect()
    }

    #[inline]
    fn bytes(&self) -> impl AsRef<[u8]> + '_ {
        self.as_bytes()
    }
}

/// Which keys ask, and how often each.
#[derive(Debug, Clone, Copy)]
pub enum Popularity {
    /// One key asks all the time.
    OneKey,
    /// The key of rank r (from 1) asks in proportion to `r^-exponent`.
    Zipf {
        /// How many keys there are.
        keys: usize,
        /// How quickly popularity falls.
        exponent: f64,
    },
    /// All ask equally often.
    Uniform {
        /// How many keys there are.
        keys: usize,
    },
    /// Nine requests of ten come from so many keys, all equally often; each tenth comes from a key
    /// that was never seen.
    HotAndNew {
        /// How many keys come again.
        hot: usize,
    },
}

/// Each so many requests there is one from a new key.
const NEW_EVERY: usize = 10;

impl Popularity {
    /// How many keys there are that ask more than once.
    #[must_use]
    pub const fn keys(self) -> usize {
        match self {
            Self::OneKey => 1,
            Self::Zipf { keys, .. } | Self::Uniform { keys } | Self::HotAndNew { hot: keys } => keys,
        }
    }

    /// Whether there are keys that ask once and never again.
    #[must_use]
    pub const fn has_new_keys(self) -> bool {
        matches!(self, Self::HotAndNew { .. })
    }

    /// The same shape over a tenth of the keys, and no more than 100,000.
    #[must_use]
    pub fn smaller(self) -> Self {
        let fewer = |keys: usize| keys.div_ceil(10).min(100_000);
        match self {
            Self::OneKey => self,
            Self::Zipf { keys, exponent } => Self::Zipf { keys: fewer(keys), exponent },
            Self::Uniform { keys } => Self::Uniform { keys: fewer(keys) },
            Self::HotAndNew { hot } => Self::HotAndNew { hot: fewer(hot) },
        }
    }

    /// Every key that asks more than once, once, shuffled.
    #[must_use]
    pub fn everyone<K: Key>(self) -> Vec<K> {
        let mut keys: Vec<K> = (0..self.keys() as u64).map(K::of_rank).collect();
        keys.shuffle(&mut StdRng::seed_from_u64(SEED));
        keys
    }

    /// `length` requests.
    ///
    /// # Panics
    ///
    /// When there are no keys, or the exponent is not a number that a Zipf distribution can have.
    #[must_use]
    pub fn requests<K: Key>(self, length: usize) -> Vec<K> {
        let mut random = StdRng::seed_from_u64(SEED + 1);
        match self {
            Self::OneKey => vec![K::of_rank(0); length],
            Self::Uniform { keys } => (0..length).map(|_| K::of_rank(random.random_range(0..keys as u64))).collect(),
            Self::Zipf { keys, exponent } => {
                let everyone: Vec<K> = (0..keys as u64).map(K::of_rank).collect();
                let ranks = Zipf::new(keys as f64, exponent).expect("a Zipf distribution");
                (0..length).map(|_| everyone[whole(ranks.sample(&mut random)) - 1].clone()).collect()
            }
            Self::HotAndNew { hot } => {
                let rank = |request: usize| match request % NEW_EVERY {
                    0 => (hot + request) as u64,
                    _ => random.random_range(0..hot as u64),
                };
                (0..length).map(rank).map(K::of_rank).collect()
            }
        }
    }
}

/// A rank that the distribution drew: a whole number of at least one and at most the number of
/// keys.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are whole, positive and small")]
fn whole(rank: f64) -> usize {
    rank as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_have_8_to_64_bytes_and_differ() {
        let names: HashSet<String> = (0..200_000).map(String::of_rank).collect();
        assert_eq!(names.len(), 200_000);
        let lengths: HashSet<usize> = names.iter().map(String::len).collect();
        assert_eq!(lengths, (8..=64).collect());
    }

    #[test]
    fn one_request_of_ten_is_from_a_new_key() {
        let hot = Popularity::HotAndNew { hot: 100 };
        let everyone: HashSet<u64> = hot.everyone().into_iter().collect();
        let requests: Vec<u64> = hot.requests(10_000);
        let new: Vec<&u64> = requests.iter().filter(|key| !everyone.contains(key)).collect();
        assert_eq!(new.len(), 1_000);
        assert_eq!(new.iter().collect::<HashSet<_>>().len(), 1_000);
    }
}
