//! Quotas that change while they are in use.
//!
//! # How it works
//! A plan is a list of *revisions*, which only grows; a word says which is the current one. Whoever decides reads that word after the
//! cell's head. So nobody waits for a change, and a change waits for nobody. A request that is halfway when the quota changes is
//! decided by one of the two.
//!
//! Nothing is done to the cells. What a cell holds is understood by the revision that it was written under:
//!
//! - *A log.* Stamps are stamps under any quota. A revision only says from when on they count: those that had left the widest window
//!   when it began are not there any more, or may not be, so they do not count (`Limits`).
//! - *An account.* Its head says by which revision it is written (see the essay on accounts). Until it is written anew, each
//!   request works out what the account comes to under the current revision, from the moment at which that began; so a denial needs to
//!   write nothing, and tells the truth about how long to wait.

use once_cell::race::OnceBox;

use super::account::Layout;
use super::plan::Plan;
use crate::error::CostExceedsLimit;
use crate::quota::Quota;
use crate::sync::{AtomicU64, Ordering};

/// A plan, now and as it was.
pub(crate) struct Revisions {
    first: Revision,
    /// The later ones: 1, then 2 and 3, then 4 to 7, and so on.
    later: [OnceBox<Box<[OnceBox<Revision>]>>; CHUNKS],
    /// The number of the current one.
    current: AtomicU64,
}

const CHUNKS: usize = 12;

/// A plan as it is, or was, from one change to the next.
pub(crate) struct Revision {
    pub(crate) number: u64,
    /// When it began, as a time.
    pub(super) since: u64,
    pub(crate) plan: Plan,
    /// The quotas, in the order in which they were given.
    pub(crate) quotas: Box<[Quota]>,
    /// The most permits that a request may ask for.
    pub(crate) most: u32,
}

impl Revision {
    fn new(number: u64, since: u64, plan: Plan, quotas: &[Quota]) -> Self {
        let most = quotas.iter().map(Quota::limit).min().unwrap_or(0);
        Self { number, since, plan, quotas: quotas.into(), most }
    }

    #[inline]
    pub(crate) fn check_cost(&self, cost: u32) -> Result<(), CostExceedsLimit> {
        if cost > self.most { Err(CostExceedsLimit::new(cost, self.most)) } else { Ok(()) }
    }
}

/// Why a quota was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// It is of another algorithm.
    OtherAlgorithm,
    /// Its numbers do not fit where the accounts are kept.
    TooLarge,
    /// It has changed too often.
    TooOften,
}

impl Revisions {
    /// The most changes.
    pub(crate) const MOST: u64 = (1 << CHUNKS) - 1;

    /// The plan of quotas that have been validated.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        let first = Revision::new(0, 0, Plan::new(quotas, None), quotas);
        Self { first, later: [const { OnceBox::new() }; CHUNKS], current: AtomicU64::new(0) }
    }

    /// The current one. To be read after the head that it is to decide by: then it is no older than any that the head was written under.
    #[inline]
    pub(crate) fn current(&self) -> &Revision {
        match self.current.load(Ordering::Acquire) {
            0 => &self.first,
            number => self.later(number),
        }
    }

    pub(super) fn number(&self, number: u64) -> &Revision {
        if number == 0 { &self.first } else { self.later(number) }
    }

    #[cold]
    fn later(&self, number: u64) -> &Revision {
        self.entry(number).get().expect("a revision is there before its number is")
    }

    fn entry(&self, number: u64) -> &OnceBox<Revision> {
        let chunk = number.ilog2();
        let make = || Box::new(core::iter::repeat_with(OnceBox::new).take(1 << chunk).collect::<Box<[_]>>());
        let index = usize::try_from(number - (1 << chunk)).expect("a chunk fits in memory");
        &self.later[chunk as usize].get_or_init(make)[index]
    }

    /// How the plan's accounts are laid out in a head, which never changes.
    pub(super) fn layout(&self) -> Option<Layout> {
        match &self.first.plan {
            Plan::Log(_) => None,
            Plan::Account(metered) => Some(metered.layout),
        }
    }

    /// Makes quotas that have been validated the current ones, from `now` on.
    pub(crate) fn change(&self, quotas: &[Quota], now: impl Fn() -> u64) -> Result<(), Unchanged> {
        loop {
            let last = self.current();
            let number = last.number + 1;
            if number > Self::MOST {
                return Err(Unchanged::TooOften);
            }
            if quotas[0].algorithm() != last.quotas[0].algorithm() {
                return Err(Unchanged::OtherAlgorithm);
            }
            let since = now().max(last.since);
            let plan = Plan::new(quotas, Some((&last.plan, since)));
            if let (Plan::Account(metered), Some(layout)) = (&plan, self.layout())
                && !layout.has_room_for(&metered.rule)
            {
                return Err(Unchanged::TooLarge);
            }
            let is_mine = self.entry(number).set(Box::new(Revision::new(number, since, plan, quotas))).is_ok();
            // Whoever comes second sees to it that the first has been heard.
            let _ = self.current.compare_exchange(last.number, number, Ordering::AcqRel, Ordering::Acquire);
            if is_mine {
                return Ok(());
            }
        }
    }

    /// Bytes on the heap, with its own.
    pub(super) fn bytes(&self) -> usize {
        let chunks = self.later.iter().filter_map(OnceBox::get);
        let revisions = (0..=self.current.load(Ordering::Acquire)).map(|number| self.number(number));
        let beside = |revision: &Revision| revision.plan.bytes() + size_of_val(&*revision.quotas);
        let later = self.current.load(Ordering::Acquire) * size_of::<Revision>() as u64;
        size_of::<Self>()
            + chunks.map(|chunk| size_of_val(chunk) + size_of_val(&**chunk)).sum::<usize>()
            + usize::try_from(later).unwrap_or(usize::MAX)
            + revisions.map(beside).sum::<usize>()
    }
}
