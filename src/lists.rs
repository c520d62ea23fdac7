//! The allow list and the deny list.
//!
//! Both lists are in a table of their own. A listed key has a cell there: a log of one permit,
//! which is charged when the key is listed. The key is on the list until the cell is forgotten. The
//! clock of that table stands still, so the permit never expires. The lists are lock-free because
//! the table is. If several threads list a key at the same time, exactly one of them gets `true`.

use crate::caps::MAX_KEY_CAP;
use crate::clock::Clock;
use crate::error::{BuildError, JointError};
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::state::table::Table;
use crate::texts::texts;

/// A list, with the number of its plan in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Deny,
    Allow,
}

/// The allow list and the deny list of a limiter.
pub(crate) struct Lists {
    pub(crate) table: Table,
}

impl Lists {
    pub(crate) fn new(cap: usize) -> Result<Self, BuildError> {
        if cap == 0 {
            return Err(BuildError::ZeroListCap);
        }
        if cap > MAX_KEY_CAP {
            return Err(BuildError::ListCapTooLarge { list_cap: cap });
        }
        let listed = [Quota::new(1, Quota::MAX_WINDOW)];
        Ok(Self { table: Table::new(&[&listed, &listed], 0, cap, 0) })
    }

    /// The list that the key is on. If it is on both, the deny list.
    pub(crate) fn of(&self, key: Fingerprint) -> Option<List> {
        let is_on = |&list: &List| self.table.denied_for(key.in_dimension(list as usize), &Still).is_some();
        [List::Deny, List::Allow].into_iter().find(is_on)
    }

    /// Puts the key on the list. Returns whether it was absent before.
    pub(crate) fn put(&self, list: List, key: Fingerprint) -> Result<bool, ListError> {
        let is_new = self.table.takes_one(key.in_dimension(list as usize), &Still);
        is_new.ok_or(ListError::Full { list_cap: self.table.key_cap() })
    }

    /// Takes the key off both lists. Returns whether it was on a list.
    pub(crate) fn take_off(&self, key: Fingerprint) -> bool {
        let [denied, allowed] =
            [List::Deny, List::Allow].map(|list| self.table.forget(key.in_dimension(list as usize), &Still));
        denied | allowed
    }

    pub(crate) fn count(&self) -> usize {
        self.table.counts(&Still).live_keys
    }
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        0
    }
}

/// Why a key could not be put on the allow list or the deny list.
///
/// ```
/// use tollgate::{Limiter, ListError, Quota};
///
/// let limiter = Limiter::<String>::builder(Quota::per_minute(5)).list_cap(1).build()?;
/// limiter.allow("health check")?;
/// assert_eq!(limiter.deny("mallory"), Err(ListError::Full { list_cap: 1 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListError {
    /// The keys are not those of the limiter's dimensions.
    Keys(JointError),
    /// The limiter was not built with [`list_cap`](crate::LimiterBuilder::list_cap).
    NoLists,
    /// Both lists together hold as many keys as their cap allows.
    Full {
        /// The cap on the keys of both lists.
        list_cap: usize,
    },
}

texts! { ListError {
    Keys(error) => "{error}";
    NoLists => "the limiter has no lists: set `list_cap` on its builder";
    Full { list_cap } => "the lists are full: at most {list_cap} keys; unlist a key or raise `list_cap`";
} }

impl core::error::Error for ListError {}
