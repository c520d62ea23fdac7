//! A key's account, and what becomes of it.

/// A key's account: `used` permits charged since `anchor` (a time in nanoseconds). The counter packs two counts into `used`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    pub(crate) anchor: u64,
    /// Less than 2^32.
    pub(crate) used: u64,
}

/// What becomes of a request, and with it of the account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Admitted, charged to the running account: only `used` changes, and it grows.
    Charge { used: u64 },
    /// Admitted; the account goes on under the anchor [`Rule::advanced`](super::any::Rule::advanced), with this `used`.
    Advance { used: u64 },
    /// Admitted; the old account is over and carries no information. A new one opens at [`Rule::anchor_at`](super::any::Rule::anchor_at) of any time that is
    /// not before `now`, with this `used`.
    Open { used: u64 },
    /// Denied. With no other traffic the same request passes after exactly this many nanoseconds, and not one sooner.
    Deny { wait_ns: u64 },
}

/// How the account of a key that was never seen opens: at [`Rule::anchor_at`](super::any::Rule::anchor_at), with this `used`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opening {
    pub(crate) used: u64,
    /// If the first request is denied (for want of permits to start with): how long it has to wait, as in [`Step::Deny`].
    /// The account has to be opened all the same, or the key would never earn a permit.
    pub(crate) wait_ns: Option<u64>,
}

/// What has become of an account since something was charged to it that is to be given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Since {
    /// What had been used, with the charge.
    pub(crate) used: u64,
    /// The account has advanced, once.
    pub(crate) advanced: bool,
    /// Nothing has been given back meanwhile.
    pub(crate) only_charged: bool,
}

/// What can be given back of a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    pub(crate) permits: u32,
    /// What is used then. Where nothing is, the account may be over.
    pub(crate) used: u64,
}

/// What fits in 64 bits.
pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
