//! What a limiter may do beside deciding by quota: shadow mode, penalties, lists. A limiter that
//! does none of it has no [`Modes`].

use crate::counts::Tally;
use crate::decision::Decision;
use crate::error::BuildError;
use crate::fingerprint::Fingerprint;
use crate::lists::Lists;
use crate::penalty::{Penalties, Penalty};

/// What was asked of a builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) shadow: bool,
    /// With the dimension whose keys it is for.
    pub(crate) penalties: Vec<(usize, Penalty)>,
    pub(crate) list_cap: Option<usize>,
}

impl Wanted {
    /// What a limiter of so many dimensions and up to `key_cap` keys needs for it; `None` where
    /// nothing was asked for.
    pub(crate) fn made(self, dimensions: usize, key_cap: usize) -> Result<Option<Box<Modes>>, BuildError> {
        let Self { shadow, penalties: wanted, list_cap } = self;
        let mut penalties: Vec<Option<Penalties>> = core::iter::repeat_with(|| None).take(dimensions).collect();
        for (dimension, penalty) in wanted {
            let place = penalties.get_mut(dimension).ok_or(BuildError::NoSuchDimension { dimension, dimensions })?;
            *place = Some(Penalties::new(penalty, key_cap)?);
        }
        let lists = list_cap.map(Lists::new).transpose()?;
        let any = shadow || penalties.iter().any(Option::is_some) || lists.is_some();
        let made = || Modes { shadow: shadow.then(Shadow::new), penalties: penalties.into(), lists };
        Ok(any.then(|| Box::new(made())))
    }
}

/// The modes of one limiter.
pub(crate) struct Modes {
    pub(crate) shadow: Option<Shadow>,
    /// Of the keys of each dimension.
    penalties: Box<[Option<Penalties>]>,
    pub(crate) lists: Option<Lists>,
}

impl Modes {
    /// The penalties of keys of this one's dimension.
    pub(crate) fn penalties(&self, key: Fingerprint) -> Option<&Penalties> {
        self.penalties.get(key.plan())?.as_ref()
    }

    pub(crate) fn all_penalties(&self) -> impl Iterator<Item = &Penalties> {
        self.penalties.iter().flatten()
    }

    /// What is told of a decision. In shadow mode no request is denied: a denial is overruled and
    /// counted.
    pub(crate) fn show(&self, decision: Decision) -> Decision {
        match &self.shadow {
            Some(shadow) if decision.is_denied() => {
                shadow.count();
                decision.overrule()
            }
            _ => decision,
        }
    }

    /// What would be told of such a decision.
    pub(crate) fn preview(&self, decision: Decision) -> Decision {
        if self.shadow.is_some() { decision.overrule() } else { decision }
    }

    /// Bytes on the heap, with its own.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.shadow.as_ref().map_or(0, Shadow::bytes)
            + size_of_val(&*self.penalties)
            + self.all_penalties().map(Penalties::bytes).sum::<usize>()
            + self.lists.as_ref().map_or(0, Lists::bytes)
    }
}

/// Shadow mode: what would be denied is admitted, and counted.
pub(crate) struct Shadow {
    tally: Tally,
}

impl Shadow {
    pub(crate) fn new() -> Self {
        Self { tally: Tally::new() }
    }

    /// Counts a request that is to be overruled.
    pub(crate) fn count(&self) {
        self.tally.count(false);
    }

    pub(crate) fn overruled(&self) -> u64 {
        self.tally.totals().denied
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.tally.bytes()
    }
}
