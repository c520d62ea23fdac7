//! [`Told`]: the header fields of the response to an admitted request.

/// The values of header fields in the response to an admitted request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told<V> {
    /// Values to append to the fields that inner services have set.
    Draft11 {
        /// The value of `RateLimit-Policy`.
        policies: Option<V>,
        /// The value of `RateLimit`, if permits left are shown.
        limit: Option<V>,
    },
    /// Numbers that replace the fields that inner services have set, unless those have as few
    /// permits left.
    XRateLimit {
        /// The value of `X-RateLimit-Limit`.
        limit: u32,
        /// The value of `X-RateLimit-Remaining`.
        remaining: u32,
        /// The value of `X-RateLimit-Reset`; `None` for a limit on requests at a time.
        reset: Option<u64>,
    },
}
