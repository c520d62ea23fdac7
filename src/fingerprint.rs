//! Keys become 128-bit fingerprints; the keys themselves are never stored.
//!
//! A limiter hashes each key once, with a seed of its own drawn at random, and from then on knows
//! the fingerprint only. So any `Hash` key works in borrowed form, with no allocation and no
//! `Clone`, and names and addresses do not stay in memory. The price is that two keys with the same
//! fingerprint share their permits: among ten million live keys the chance that any two do is about
//! 2.4e-24 (n^2 / 2^125; four bits hold the number of its plan).

mod default;
mod kinds;

pub use default::DefaultFingerprinter;
pub(crate) use kinds::MOST_PLANS;
pub use kinds::{Fingerprint, Fingerprinter, HashTwice, SipFingerprinter};
