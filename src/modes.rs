//! Shadow mode, for all keys or some, penalties and lists. A limiter without any of these has no
//! [`Modes`]. Shadow mode and penalties change while the limiter is in use.

mod decide;

use once_cell::race::OnceBox;

use crate::clock::Clock;
use crate::counts::Tally;
use crate::decision::{Decision, Denial, Shadowed, Status};
use crate::error::BuildError;
use crate::fingerprint::Fingerprint;
use crate::lists::Lists;
use crate::penalty::{Penalties, Penalty};
use crate::state::joint::KeyedRequest;
use crate::state::table::{Charges, Table};
use crate::sync::plain::{AtomicU8, Ordering};
use crate::texts::error_if;
use crate::tier::Tiers;

/// The modes that were set on a builder.
#[derive(Debug, Clone)]
pub(crate) struct ModeSettings {
    /// The percentage of keys for which the limit is enforced; all, if there is none.
    pub(crate) enforced_percent: Option<u8>,
    /// The dimensions that are in shadow mode by themselves.
    pub(crate) shadow_dimensions: Vec<usize>,
    /// Penalties, each with its dimension.
    pub(crate) penalties: Vec<(usize, Penalty)>,
    pub(crate) list_cap: Option<usize>,
    /// Makes them. By a pointer, so that a program that sets no mode has no code of any.
    pub(crate) make: fn(Self, usize, usize) -> Result<OnceBox<Modes>, BuildError>,
}

impl ModeSettings {
    /// No mode.
    pub(crate) fn none() -> Self {
        let (shadow_dimensions, penalties) = (Vec::new(), Vec::new());
        Self { enforced_percent: None, shadow_dimensions, penalties, list_cap: None, make: Self::made }
    }

    /// The modes of a limiter with this number of dimensions and up to `key_cap` keys; `None` if no
    /// mode was set.
    fn made(self, dimensions: usize, key_cap: usize) -> Result<OnceBox<Modes>, BuildError> {
        let Self { enforced_percent, shadow_dimensions, penalties, list_cap, .. } = self;
        let percent = enforced_percent.unwrap_or(100);
        error_if! { percent > 100 => BuildError::NoPercentage { percent: percent.into() }; }
        let any = percent < 100 || !shadow_dimensions.is_empty() || !penalties.is_empty() || list_cap.is_some();
        let mut modes = Modes::none(dimensions);
        modes.enforce(percent);
        for dimension in shadow_dimensions {
            error_if! { dimension >= dimensions => BuildError::NoSuchDimension { dimension, dimensions }; }
            modes.set_shadow(dimension, true);
        }
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

/// What a limiter decides by, beside its modes.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) table: &'a Table,
    pub(crate) tiers: &'a Tiers,
    pub(crate) clock: &'a dyn Clock,
}

/// Decides a request of at least one permit, with the permits left. The second decision is the one to
/// return.
pub(crate) type Decide = fn(&Modes, Asked<'_>, KeyedRequest<'_>, Option<&mut Charges>) -> (Status, Decision);

/// The modes of one limiter.
pub(crate) struct Modes {
    /// Decides a request. As for [`ModeSettings::make`], by a pointer.
    pub(crate) decide: Decide,
    /// The percentage of the keys for which the limit is enforced: those whose [`part`] is below
    /// [`parts_below`]. The others are in shadow mode.
    enforced_percent: AtomicU8,
    /// A bit for each dimension that is in shadow mode by itself.
    shadow_dimensions: AtomicU8,
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
        Self {
            decide: Self::decide_by_all,
            enforced_percent: AtomicU8::new(100),
            shadow_dimensions: AtomicU8::new(0),
            overruled: OnceBox::new(),
            penalties,
            lists: None,
        }
    }

    /// Begins or ends the shadow mode of one dimension.
    pub(crate) fn set_shadow(&self, dimension: usize, is_on: bool) {
        let bit = 1 << dimension;
        // Nothing is read by it but itself, and the tally is made by whoever is first.
        if is_on {
            self.overruled.get_or_init(|| Box::new(Tally::new()));
            self.shadow_dimensions.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.shadow_dimensions.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Whether a dimension is in shadow mode by itself.
    pub(crate) fn has_shadow(&self, dimension: usize) -> bool {
        self.shadow_dimensions.load(Ordering::Relaxed) & (1 << dimension) != 0
    }

    /// Whether any dimension is in shadow mode by itself.
    pub(crate) fn has_any_shadow(&self) -> bool {
        self.shadow_dimensions.load(Ordering::Relaxed) != 0
    }

    /// Takes the keys away that deny, if their dimensions are in shadow mode by themselves and others
    /// are left to ask.
    pub(crate) fn leave_shadow(&self, denial: Denial, keys: &mut [Option<Fingerprint>]) -> bool {
        let others = |dimension: usize| denial.violated().all(|violated| violated != dimension);
        let are_left = keys.iter().enumerate().any(|(dimension, key)| key.is_some() && others(dimension));
        let leaves = are_left && denial.violated().all(|dimension| self.has_shadow(dimension));
        for dimension in denial.violated().filter(|_| leaves) {
            keys[dimension] = None;
        }
        leaves
    }

    /// Counts a denial that is not heeded.
    pub(crate) fn count_overruled(&self) {
        if let Some(overruled) = self.overruled.get() {
            overruled.count(false);
        }
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
        Shadowed::of(|dimension| match keys.get(dimension) {
            Some(&Some(key)) => part(key) >= enforced || self.has_shadow(dimension),
            _ => false,
        })
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
        if !peeks {
            self.count_overruled();
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
