//! Cells whose permits are an account, by one of the algorithms beside the log: two words in place of a ring.
//!
//! The head counts what has been used in an *era*; the second word is the slot of a ring of one and holds the era's anchor.
//! A request that the running account admits changes the head alone. One that begins a new era claims it on the head and
//! then publishes the anchor, as a log's claim publishes its stamp; **whoever finds an era without an anchor publishes that
//! first** (`settle`). The rules are made for this: see [`Step`](crate::rule::Step).
//!
//! # Why a helper's clock can't hurt
//! The anchor of an account that advances is the same whoever works it out. One that opens has an anchor no earlier than the
//! moment at which the account before it was over; but a helper whose clock lags can't know that moment once the head no longer
//! says what had been used. So the head goes on saying it until that moment has been taken into account, in one of two ways:
//!
//! - One permit *replaces* an account that is over. The head of the new era keeps what the last account had used; that this one has
//!   used one permit goes without saying. Whoever publishes the era finds the last account's anchor in the second word, and so when it
//!   was over, and proposes no earlier time. What follows, a charge or another era, can only be claimed once the anchor is
//!   published, and says again what has been used of it. By the way in which it is claimed nobody but who claims it has to work the
//!   moment out: the rule has answered that the account is over at its time.
//! - For several permits there is no room in the head. So the account is *closed* first, in an era of its own: the head keeps what was
//!   used, and that moment is published in place of the anchor. Then the next era opens, no earlier than that.
//!
//! A request that finds the running account over does either at once, by the reading that it has. That was taken after the head
//! was seen, the claim says that this head still stands, and of an account that is closed nothing can be charged: so nobody was
//! charged in between by a later reading. Who loses a claim goes the long way round (`attempt`), which closes.
//!
//! An account opens no earlier than its quota began, either. So of the quotas that a head may mean, one that began later than the
//! account opened is not it (`Books::written_by`).
//!
//! # Why a late publication can't hurt
//! It expects what the second word held in the era before its own: when an account opened or to where it advanced, since when
//! one was over, or the mark of a cell that was never used. None of these returns in a cell:
//!
//! 1. In one key's life they rise. An account advances to, or is over at, a later time than it opened, because something was
//!    used of it; the next opens no earlier than that. Being over has a bit of its own. Where everything was given back, an
//!    account is over as soon as it opened, and the next time is later by one. So at a reading that is not later it is not replaced:
//!    it goes on (`Books::goes_on`). One whose quota changes at the time at which it opened keeps its anchor, and nothing is published.
//! 2. Before a cell is given away the late era has been published, and the horizon is raised to it or past it. The next key's
//!    account opens no earlier (see the essay on cells), and so later than what is expected.
//! 3. For that the word holds the time at which an account *opened*, though its anchor be earlier where windows stand still. It is
//!    rounded down when it is read: rounded before, it could be the very time at which the last key's account opened.
//! 4. A reference to a ring, of a next key with a log, has the bit that being over has. But a time is at least 2^60, and would refer
//!    to page 64 of a pool or a later one. Those are only there once tens of thousands of rings of one size are in use, and then the very
//!    page, place, size and tag would have to be those of that nanosecond: see "Numbers that run out" in `docs/limitations.md`.
//!
//! # Why a denial is explained
//! Nothing in an account says when it was charged last, so a reading from before the head was read may be from before that
//! charge: the request would be denied for what was used later, at a moment by which enough had flowed back. So **the clock is
//! read after the head**. If the head has moved on meanwhile, then by charges that leave less; or the account was over, and
//! there was no denial. To an admission it makes no difference: what fits by an earlier reading fits at the last charge.
//!
//! # Why the clock is read last
//! What has come back by a reading is set off against all that was ever charged. If somebody was charged between the reading and the
//! look at the head, for permits that came back meanwhile, then too little would seem to be left. A log has the newest stamp to tell it so;
//! an account has no such thing. So the clock is read after the head has been seen, and a head that has moved on takes another reading.
//!
//! # Orderings
//! As for a log: a claim acquires and releases the head; the anchor is released by who publishes it and acquired by who reads it,
//! so who sees the anchor of a later era also sees that the head has moved.
//!
//! The loom tests in `cell/counter/loom_tests.rs` and `cell/counter/over_loom_tests.rs` exercise them.

mod algorithm;
pub(super) mod books;
mod decide;
pub(super) mod layout;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
pub(super) mod metered;
#[cfg(all(test, tollgate_loom))]
mod over_loom_tests;
mod refund;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
pub(super) mod view;
