//! Shadow mode, for all keys or some, penalties and lists. A limiter without any of these has no
//! [`Modes`]. Shadow mode and penalties change while the limiter is in use.

use once_cell::race::OnceBox;

use crate::counts::Tally;
use crate::decision::{Decision, Shadowed};
use crate::error::BuildError;
use crate::fingerprint::Fingerprint;
use crate::lists::Lists;
use crate::penalty::{Penalties, Penalty};
#[cfg(feature = "snapshot")]
use crate::state::table::Table;
use crate::sync::plain::{AtomicU8, Ordering};

/// The modes that were set on a builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModeSettings {
    /// The percentage of keys for which the limit is enforced; all, if there is none.
    pub(crate) enforced_percent: Option<u8>,
    /// Penalties, each with its dimension.
    pub(crate) penalties: Vec<(usize, Penalty)>,
    pub(crate) list_cap: Option<usize>,
}

impl ModeSettings {
    /// The modes of a limiter with this number of dimensions and up to `key_cap` keys; `None` if no
    /// mode was set.
    pub(crate) fn made(self, dimensions: usize, key_cap: usize) -> Result<OnceBox<Modes>, BuildError> {
        let Self { enforced_percent, penalties, list_cap } = self;
        let percent = enforced_percent.unwrap_or(100);
        if percent > 100 {
            return Err(BuildError::NoPercentage { percent: percent.into() });
        }
        let any = percent < 100 || !penalties.is_empty() || list_cap.is_some();
        let mut modes = Modes::none(dimensions);
        modes.enforce(percent);
        for (dimension, penalty) in penalties {
            let entry =
                modes.penalties.get_mut(dimension).ok_or(BuildError::NoSuchDimension { dimension, dimensions })?;
            penalty.validate()?;
            *entry = OnceBox::with_value(Box::new(Penalties::new(penalty, key_cap)));
        }
        modes.lists = list_cap.map(Lists::new).transpose()?;
        Ok(if any { OnceBox::with_value(Box::new(modes)) } else { OnceBox::new() })
    }
}

/// The modes of one limiter.
pub(crate) struct Modes {
    /// The percentage of the keys for which the limit is enforced: those whose [`part`] is below
    /// [`parts_below`]. The others are in shadow mode.
    enforced_percent: AtomicU8,
    /// The count of overruled denials. It is there if a key is in shadow mode or has been.
    overruled: OnceBox<Tally>,
    /// By dimension. Those that have been switched off are still there.
    penalties: Box<[OnceBox<Penalties>]>,
    pub(crate) lists: Option<Lists>,
}

impl Modes {
    /// No mode, of a limiter with this number of dimensions.
    pub(crate) fn none(dimensions: usize) -> Self {
        let penalties = core::iter::repeat_with(OnceBox::new).take(dimensions).collect();
        Self { enforced_percent: AtomicU8::new(100), overruled: OnceBox::new(), penalties, lists: None }
    }

    /// Enforces the limit for this percentage of the keys.
    pub(crate) fn enforce(&self, percent: u8) {
        if percent < 100 {
            self.overruled.get_or_init(|| Box::new(Tally::new()));
        }
        self.enforced_percent.store(percent, Ordering::Release);
    }

    /// The percentage of the keys for which the limit is enforced.
    pub(crate) fn enforced_percent(&self) -> u8 {
        self.enforced_percent.load(Ordering::Acquire)
    }

    /// The denials that shadow mode has overruled.
    pub(crate) fn overruled(&self) -> u64 {
        self.overruled.get().map_or(0, |tally| tally.totals().denied)
    }

    /// The penalties of a dimension, on or off; `None` if it never had any.
    pub(crate) fn penalties_of(&self, dimension: usize) -> Option<&Penalties> {
        self.penalties.get(dimension)?.get()
    }

    /// The penalties of a dimension; these, if it never had any.
    pub(crate) fn penalties_or(&self, dimension: usize, made: impl FnOnce() -> Penalties) -> &Penalties {
        self.penalties[dimension].get_or_init(|| Box::new(made()))
    }

    pub(crate) fn all_penalties(&self) -> impl Iterator<Item = &Penalties> {
        self.penalties.iter().filter_map(OnceBox::get)
    }

    /// The tables of the penalties, each with its dimension.
    #[cfg(feature = "snapshot")]
    pub(crate) fn tables_of_penalties(&self) -> impl Iterator<Item = (usize, &Table)> {
        let on = self.penalties.iter().enumerate().filter_map(|(dimension, it)| Some((dimension, it.get()?)));
        on.filter(|(_, it)| it.is_on()).map(|(dimension, it)| (dimension, &it.table))
    }

    /// The dimensions of these keys that are in shadow mode.
    pub(crate) fn shadowed(&self, keys: &[Option<Fingerprint>]) -> Shadowed {
        let enforced = parts_below(self.enforced_percent());
        Shadowed::of(|dimension| matches!(keys.get(dimension), Some(&Some(key)) if part(key) >= enforced))
    }

    /// The decision to return. If each of the keys that deny is in shadow mode, the denial becomes an
    /// admission, and is counted unless the request peeks. `keys` are those of the request, by
    /// dimension.
    pub(crate) fn show(&self, decision: Decision, keys: &[Option<Fingerprint>], peeks: bool) -> Decision {
        let Decision::Denied(denial) = decision else { return decision };
        let shadowed = self.shadowed(keys);
        if !denial.violated().all(|dimension| shadowed.has(dimension)) {
            return decision;
        }
        if let Some(overruled) = self.overruled.get().filter(|_| !peeks) {
            overruled.count(false);
        }
        decision.overrule()
    }

    /// Bytes on the heap, including its own.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.overruled.get().map_or(0, |tally| size_of_val(tally) + tally.bytes())
            + size_of_val(&*self.penalties)
            + self.all_penalties().map(|penalties| size_of_val(penalties) + penalties.table.bytes()).sum::<usize>()
            + self.lists.as_ref().map_or(0, |lists| lists.table.bytes())
    }
}

/// The part of all keys, of 2^32, in which this one is.
fn part(key: Fingerprint) -> u64 {
    key.spread() >> 32
}

/// So many percent of the parts.
fn parts_below(percent: u8) -> u64 {
    (u64::from(percent) << 32) / 100
}
