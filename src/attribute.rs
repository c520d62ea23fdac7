//! Denials of functions with the attribute `rate_limit`: which limit denied them. Only expansions of
//! the attribute call these methods.

use std::sync::Arc;

use crate::clock::Clock;
use crate::decision::{Denial, number_of};
use crate::dimensions::Dimensions;
use crate::engine::Engine;
use crate::joint::JointLimiter;
use crate::limiter::Limiter;
use crate::quota::Quota;

impl<C: Clock, F> Engine<C, F> {
    /// The denial, with the quotas that this limiter has. `function` names those without a dimension.
    fn denied_by(&self, function: &str, denial: Denial) -> Denial {
        if self.keys_differ() {
            // The quotas of the denied key may be others.
            return denial;
        }
        let names = self.names.iter().map(|name| &**name).chain(self.names.is_empty().then_some(function));
        let dimensions: Vec<(&str, Arc<[Quota]>)> =
            names.enumerate().map(|(at, name)| (name, self.quotas(at))).collect();
        denial.with_named(number_of(&dimensions))
    }
}

impl<K: ?Sized, C: Clock, F> Limiter<K, C, F> {
    #[doc(hidden)]
    #[must_use]
    #[cold]
    pub fn denied_by(&self, function: &str, denial: Denial) -> Denial {
        self.engine.denied_by(function, denial)
    }
}

impl<D: Dimensions + ?Sized, C: Clock, F> JointLimiter<D, C, F> {
    #[doc(hidden)]
    #[must_use]
    #[cold]
    pub fn denied_by(&self, function: &str, denial: Denial) -> Denial {
        self.engine.denied_by(function, denial)
    }
}
