//! The rules of accounts: the algorithms beside the sliding window log, as pure functions of
//! (account, now, cost).
//!
//! Nothing is shared and nothing is rounded: integers, products of 128 bits, and divisions only for
//! times and numbers that are shown, and for aligned windows.
//!
//! # The account and the effects of requests
//!
//! An account has two numbers: an *anchor* (a time) and the permits *used* since. A driver claims a
//! request by one swap of `used` and an era count, and then publishes the anchor of the new era in
//! another word. The publication may come late, from another thread with a later reading. So there
//! are three ways to admit:
//!
//! - [`Effect::Charge`]: the anchor stays. `used` grows, so no head of the era returns (INV-HEAD).
//! - [`Effect::Advance`]: the new anchor is a function of the old one ([`Rule::advanced`]), the same
//!   in every thread.
//! - [`Effect::Open`]: the old account is over. The new anchor comes from any time that is not before
//!   `now` ([`Rule::anchor_at`]). A rule that answers `Open` answers the same at every later time.
//!   So for any published time the outcome is that of a request at that time.
//!
//! # Bounds
//!
//! For a validated quota and an account that a rule made, at any time below 2^62 ns: `used` is less
//! than 2^32, and no anchor is later than the decision (or, for `Open`, the publication). For other
//! times, accounts with `used` below 2^32, and costs past the limit, the answer is meaningless but
//! no panic: sums saturate. A time before the anchor counts as the anchor; only the queue counts
//! its delay from the time itself.

mod account;
mod any;
mod bucket;
mod counter;
#[cfg(all(test, not(tollgate_loom)))]
#[path = "../tests/properties/oracle/meter.rs"]
mod oracle;
mod queue;
mod rate;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
mod window;

pub(crate) use account::{Account, Effect, Since};
pub(crate) use any::Rule;
