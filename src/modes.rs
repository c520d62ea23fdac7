//! What a limiter may do beside deciding by quota: shadow mode, penalties, lists. A limiter that does none of it has no [`Modes`].

use crate::counts::Tally;
use crate::error::BuildError;
use crate::lists::Lists;
use crate::penalty::{Penalties, Penalty};

/// What was asked of a builder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) shadow: bool,
    pub(crate) penalty: Option<Penalty>,
    pub(crate) list_cap: Option<usize>,
}

impl Wanted {
    /// What a limiter of up to `key_cap` keys needs for it; `None` where nothing was asked for.
    pub(crate) fn made(self, key_cap: usize) -> Result<Option<Box<Modes>>, BuildError> {
        let Self { shadow, penalty, list_cap } = self;
        let penalties = penalty.map(|penalty| Penalties::new(penalty, key_cap)).transpose()?;
        let lists = list_cap.map(Lists::new).transpose()?;
        let any = shadow || penalties.is_some() || lists.is_some();
        Ok(any.then(|| Box::new(Modes { shadow: shadow.then(Shadow::new), penalties, lists })))
    }
}

/// The modes of one limiter.
pub(crate) struct Modes {
    pub(crate) shadow: Option<Shadow>,
    pub(crate) penalties: Option<Penalties>,
    pub(crate) lists: Option<Lists>,
}

impl Modes {
    /// Bytes on the heap, with its own.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.shadow.as_ref().map_or(0, Shadow::bytes)
            + self.penalties.as_ref().map_or(0, Penalties::bytes)
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
