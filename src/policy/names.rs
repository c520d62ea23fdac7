//! The names of algorithms in a policy.

use crate::quota::Algorithm;

/// The names of the algorithms in policy files and in options of the program.
pub(super) const ALGORITHMS: [(&str, Algorithm); 7] = [
    ("sliding-window-log", Algorithm::SlidingWindowLog),
    ("token-bucket", Algorithm::TokenBucket),
    ("leaky-bucket", Algorithm::LeakyBucket),
    ("leaky-queue", Algorithm::LeakyQueue),
    ("fixed-window", Algorithm::FixedWindow),
    ("sliding-counter", Algorithm::SlidingCounter),
    ("quantised-log", Algorithm::QuantisedLog),
];
