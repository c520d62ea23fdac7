//! What an account of permits admits: the algorithms beside the sliding window log, as pure functions of (account, now, cost).
//!
//! Nothing here is shared, and nothing is rounded: integers, products of 128 bits, and a division only where a time or a number
//! to show is asked for, or a window that stands still is looked up.
//!
//! # The account and its steps
//! A key's account is two numbers: an *anchor* (a time) and the permits *used* since. Whoever drives a rule claims a request by
//! changing `used` and an era count together, in one word, and then publishes the anchor of the new era in another. The
//! publication can come late and from somebody else, who has read the clock later. That is why there are three ways to admit:
//!
//! - [`Step::Charge`]: the anchor stays. `used` grows, so no head of the era ever returns.
//! - [`Step::Advance`]: the new anchor is a function of the old one alone ([`Rule::advanced`]), the same whoever works it out.
//! - [`Step::Open`]: the old account is over. The new anchor comes from any time that is not before `now`
//!   ([`Rule::anchor_at`]). A rule that answers `Open` answers the same at every later time, so whichever time is published, the
//!   outcome is that of a request which came at that time.
//!
//! # Bounds
//! For a quota that has been validated and an account that a rule made, at any time below 2^62 ns:
//! `used` is less than 2^32, and no anchor is later than the time of the decision (or, opening, of the publication).
//! At other times, of other accounts whose `used` is less than 2^32, and of costs past the limit, it makes no sense but does
//! not panic: what does not fit saturates. A time before the anchor counts as the anchor; only the queue counts its delay from the time
//! itself.

mod account;
mod any;
mod bucket;
mod counter;
#[cfg(all(test, not(tollgate_loom)))]
#[path = "../tests/oracle/meter.rs"]
mod oracle;
mod queue;
mod rate;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
mod window;

pub(crate) use account::{Account, Since, Step};
pub(crate) use any::Rule;
