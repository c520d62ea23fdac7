//! Numbers that look like chance (xorshift), the same for the same seed.

/// See the module.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Numbers of their own for each thread of each round.
    #[must_use]
    pub fn new(seed: u64, thread: usize) -> Self {
        let mut chance = Self((seed ^ (thread as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9)).max(1));
        // The first ones of seeds that are alike are alike.
        for _ in 0..8 {
            chance.next();
        }
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        u32::try_from((self.next() >> 32) % u64::from(end)).expect("less than a u32")
    }

    /// Whether one chance in `of` has come up.
    pub fn one_in(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }
}
