//! Shadow mode, penalties and lists. A limiter without any of these has no [`Modes`].

use crate::counts::Tally;
use crate::decision::Decision;
use crate::error::BuildError;
use crate::fingerprint::Fingerprint;
use crate::lists::{List, Lists};
use crate::penalty::{Penalties, Penalty};
#[cfg(feature = "snapshot")]
use crate::table::Table;

/// The modes that were set on a builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModeSettings {
    pub(crate) shadow: bool,
    /// Penalties, each with its dimension.
    pub(crate) penalties: Vec<(usize, Penalty)>,
    pub(crate) list_cap: Option<usize>,
}

impl ModeSettings {
    /// The modes of a limiter with this number of dimensions and up to `key_cap` keys; `None` if no
    /// mode was set.
    pub(crate) fn made(self, dimensions: usize, key_cap: usize) -> Result<Option<Box<Modes>>, BuildError> {
        let Self { shadow, penalties: wanted, list_cap } = self;
        let mut penalties: Vec<Option<Penalties>> = core::iter::repeat_with(|| None).take(dimensions).collect();
        for (dimension, penalty) in wanted {
            let place = penalties.get_mut(dimension).ok_or(BuildError::NoSuchDimension { dimension, dimensions })?;
            *place = Some(Penalties::new(penalty, key_cap)?);
        }
        let lists = list_cap.map(Lists::new).transpose()?;
        let any = shadow || penalties.iter().any(Option::is_some) || lists.is_some();
        Ok(any.then(|| Box::new(Modes { shadow: shadow.then(Tally::new), penalties: penalties.into(), lists })))
    }
}

/// The modes of one limiter.
pub(crate) struct Modes {
    /// The count of overruled denials, in shadow mode.
    pub(crate) shadow: Option<Tally>,
    /// By dimension.
    penalties: Box<[Option<Penalties>]>,
    pub(crate) lists: Option<Lists>,
}

impl Modes {
    /// The penalties of the key's dimension.
    pub(crate) fn penalties(&self, key: Fingerprint) -> Option<&Penalties> {
        self.penalties.get(key.plan())?.as_ref()
    }

    /// Whether a request with this key has an answer even if its cost is above the limit.
    #[cold]
    pub(crate) fn answer_any_cost(&self, key: Fingerprint) -> bool {
        self.shadow.is_some() || self.list_of(key).is_some()
    }

    /// The list that the key is on.
    pub(crate) fn list_of(&self, key: Fingerprint) -> Option<List> {
        self.lists.as_ref()?.of(key)
    }

    /// The penalty of a dimension, as it was built.
    #[cfg(feature = "policy")]
    pub(crate) fn penalty_of(&self, dimension: usize) -> Option<Penalty> {
        Some(self.penalties.get(dimension)?.as_ref()?.penalty)
    }

    pub(crate) fn all_penalties(&self) -> impl Iterator<Item = &Penalties> {
        self.penalties.iter().flatten()
    }

    /// The tables of the penalties, each with its dimension.
    #[cfg(feature = "snapshot")]
    pub(crate) fn tables_of_penalties(&self) -> impl Iterator<Item = (usize, &Table)> {
        self.penalties.iter().enumerate().filter_map(|(dimension, it)| Some((dimension, &it.as_ref()?.table)))
    }

    /// The decision to return. Shadow mode turns a denial into an admission and counts it.
    pub(crate) fn show(&self, decision: Decision) -> Decision {
        match &self.shadow {
            Some(overruled) if decision.is_denied() => {
                overruled.count(false);
                decision.overrule()
            }
            _ => decision,
        }
    }

    /// The decision that a peek returns: as [`show`](Self::show), but not counted.
    pub(crate) fn preview(&self, decision: Decision) -> Decision {
        if self.shadow.is_some() { decision.overrule() } else { decision }
    }

    /// Bytes on the heap, including its own.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.shadow.as_ref().map_or(0, Tally::bytes)
            + size_of_val(&*self.penalties)
            + self.all_penalties().map(|penalties| penalties.table.bytes()).sum::<usize>()
            + self.lists.as_ref().map_or(0, |lists| lists.table.bytes())
    }
}
