//! The algorithms in a policy.

use tollgate::Algorithm;

/// The name of each algorithm in policy files and in options of the program, and in words its
/// fields besides `name` and `algorithm`.
pub(crate) const ALGORITHMS: [(&str, Algorithm, &str); 8] = [
    ("sliding-window-log", Algorithm::SlidingWindowLog, "`limit` and `per`"),
    ("token-bucket", Algorithm::TokenBucket, "`capacity`, `refill`, `per` and optionally `start`"),
    ("leaky-bucket", Algorithm::LeakyBucket, "`capacity`, `leak` and `per`"),
    ("leaky-queue", Algorithm::LeakyQueue, "`leak`, `per` and `max_delay`"),
    ("fixed-window", Algorithm::FixedWindow, "`limit`, `per` and optionally `phase`"),
    ("sliding-counter", Algorithm::SlidingCounter, "`limit`, `per` and optionally `phase`"),
    ("quantised-log", Algorithm::QuantisedLog, "`limit`, `per` and `resolution`"),
    ("warm-up", Algorithm::WarmUp, "`limit`, `rate`, `per` and `warm_up`"),
];
