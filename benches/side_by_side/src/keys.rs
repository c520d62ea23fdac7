//! Keys, and the order in which they ask: drawn beforehand, from fixed seeds, the same for every contender.

use std::hash::Hash;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

const SEED: u64 = 0x746f_6c6c_6761_7465;

/// A type of key that every contender can be asked about.
pub trait Key: Hash + Eq + Clone + Send + Sync + 'static {
    /// The key of a given rank; the most popular one has rank zero. Different ranks have different keys.
    fn of_rank(rank: u64) -> Self;

    /// The key's bytes, for limiters that take nothing else.
    fn bytes(&self) -> impl AsRef<[u8]> + '_;
}

impl Key for u64 {
    fn of_rank(rank: u64) -> Self {
        // The finaliser of splitmix64, a bijection: keys in a row would flatter weak hash functions.
        let mixed = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[inline]
    fn bytes(&self) -> impl AsRef<[u8]> + '_ {
        self.to_ne_bytes()
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
}

impl Popularity {
    /// How many keys there are.
    #[must_use]
    pub const fn keys(self) -> usize {
        match self {
            Self::OneKey => 1,
            Self::Zipf { keys, .. } | Self::Uniform { keys } => keys,
        }
    }

    /// The same shape over a tenth of the keys.
    #[must_use]
    pub const fn smaller(self) -> Self {
        match self {
            Self::OneKey => self,
            Self::Zipf { keys, exponent } => Self::Zipf { keys: keys / 10, exponent },
            Self::Uniform { keys } => Self::Uniform { keys: keys / 10 },
        }
    }

    /// Every key once, shuffled.
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
        }
    }
}

/// A rank that the distribution drew: a whole number of at least one and at most the number of keys.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are whole, positive and small")]
fn whole(rank: f64) -> usize {
    rank as usize
}
