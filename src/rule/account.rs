//! An account, and the effects of a request on it.

/// A key's account: `used` permits charged since `anchor` (a time in nanoseconds). The counter
/// packs two counts into `used`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    pub(crate) anchor: u64,
    /// Less than 2^32.
    pub(crate) used: u64,
}

/// The decision on a request, and the account after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Admitted, charged to the running account: only `used` changes, and it grows.
    Charge { used: u64 },
    /// Admitted; the account continues with the anchor
    /// [`Rule::advanced`](super::any::Rule::advanced) and this `used`.
    Advance { used: u64 },
    /// Admitted; the old account is over. A new one opens at
    /// [`Rule::anchor_at`](super::any::Rule::anchor_at) of any time that is not before `now`, with
    /// this `used`.
    Open { used: u64 },
    /// Denied. Without other traffic the same request passes after exactly this many nanoseconds.
    Deny { wait_ns: u64 },
}

/// The account of a new key: it opens at [`Rule::anchor_at`](super::any::Rule::anchor_at), with
/// this `used`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opening {
    pub(crate) used: u64,
    /// The wait, if the first request is denied because the key starts with too few permits. The
    /// account opens all the same, or the key would never earn a permit.
    pub(crate) wait_ns: Option<u64>,
}

/// The changes of an account since a charge that is refunded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Since {
    /// `used` after the charge.
    pub(crate) used: u64,
    /// The account has advanced, once.
    pub(crate) advanced: bool,
    /// There was no other refund.
    pub(crate) only_charged: bool,
}

/// The outcome of a refund.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    pub(crate) permits: u32,
    /// `used` after the refund. If it is zero, the account may be over.
    pub(crate) used: u64,
}

/// The number, or the largest of 64 bits.
pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
