//! [`ReloadMetrics`]: reloads of a policy file as a metric.

use core::fmt;

use metrics::{Counter, Unit, counter, describe_counter};

/// Counts what became of a policy file: `tollgate_reloads_total` with the label `result`, which is
/// `applied`, `rebuilt`, `unchanged` or `refused`. All are there from the start, at zero.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::{Policy, Reloader};
/// use tollgate_observe::ReloadMetrics;
///
/// let policy: Policy = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]".parse()?;
/// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
/// let reloads = ReloadMetrics::new();
/// let reloader = Reloader::new("policy.toml", policy, limiter);
/// let reloader = reloader.on_reload(move |reloaded| reloads.count(reloaded.result()));
/// # let _ = reloader;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReloadMetrics([(&'static str, Counter); 4]);

const RELOADS: &str = "tollgate_reloads_total";

impl ReloadMetrics {
    /// The counters. The recorder must be installed.
    #[must_use]
    pub fn new() -> Self {
        describe_counter!(RELOADS, Unit::Count, "Looks at a policy file that had an outcome.");
        Self(
            ["applied", "rebuilt", "unchanged", "refused"]
                .map(|result| (result, counter!(RELOADS, "result" => result))),
        )
    }

    /// Counts a reload, by what `Reloaded::result` of `tollgate` says. Another word is
    /// not counted.
    pub fn count(&self, result: &str) {
        if let Some((_, counter)) = self.0.iter().find(|(known, _)| *known == result) {
            counter.increment(1);
        }
    }
}

impl Default for ReloadMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReloadMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadMetrics").finish_non_exhaustive()
    }
}
