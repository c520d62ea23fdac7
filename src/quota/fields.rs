//! The fields of a quota in serde formats.

use core::time::Duration;

use tollgate_duration::format_duration;

use super::algorithm::Algorithm;
use super::value::{Kind, Quota};

/// The value of a field. Durations are texts.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Number(u32),
    Text(String),
    Algorithm(Algorithm),
    Flag(bool),
}

impl Quota {
    /// The names and values of the fields that are set.
    pub(crate) fn fields(&self) -> Vec<(&'static str, Value)> {
        let number = |field, number| (field, Value::Number(number));
        let duration = |field, duration| (field, Value::Text(format_duration(duration)));
        let (limit, capacity) = (number("limit", self.limit), number("capacity", self.limit));
        let own = match self.kind {
            Kind::Log | Kind::FixedWindow => vec![limit, duration("per", self.window)],
            Kind::SlidingCounter { window } => vec![limit, duration("per", window)],
            Kind::QuantisedLog { window, resolution } => {
                vec![limit, duration("per", window), duration("resolution", resolution)]
            }
            Kind::TokenBucket { refill, per } => vec![capacity, number("refill", refill), duration("per", per)],
            Kind::LeakyBucket { leak, per } => vec![capacity, number("leak", leak), duration("per", per)],
            Kind::LeakyQueue { leak, per, max_delay } => {
                vec![number("leak", leak), duration("per", per), duration("max_delay", max_delay)]
            }
            Kind::WarmUp { rate, per, warm_up } => {
                vec![limit, number("rate", rate), duration("per", per), duration("warm_up", warm_up)]
            }
        };
        let mut fields = Vec::from_iter(self.name().map(|name| ("name", Value::Text(name.to_owned()))));
        fields.push(("algorithm", Value::Algorithm(self.algorithm())));
        fields.extend(own);
        fields.extend(self.start.map(|start| number("start", start)));
        fields.extend(self.phase.map(|phase| duration("phase", phase)));
        fields.extend(self.counts_refused.then_some(("counting_refused", Value::Flag(true))));
        fields
    }

    /// The quota of this algorithm. The functions return the fields with these names, or the error
    /// if a field is missing.
    pub(crate) fn of_fields<E>(
        algorithm: Algorithm,
        number: impl Fn(&'static str) -> Result<u32, E>,
        duration: impl Fn(&'static str) -> Result<Duration, E>,
    ) -> Result<Self, E> {
        Ok(match algorithm {
            Algorithm::SlidingWindowLog => Self::new(number("limit")?, duration("per")?),
            Algorithm::TokenBucket => Self::token_bucket(number("capacity")?, number("refill")?, duration("per")?),
            Algorithm::LeakyBucket => Self::leaky_bucket(number("capacity")?, number("leak")?, duration("per")?),
            Algorithm::LeakyQueue => Self::leaky_queue(number("leak")?, duration("per")?, duration("max_delay")?),
            Algorithm::FixedWindow => Self::fixed_window(number("limit")?, duration("per")?),
            Algorithm::SlidingCounter => Self::sliding_counter(number("limit")?, duration("per")?),
            Algorithm::QuantisedLog => {
                let resolution = duration("resolution")?;
                Self::quantised_log(number("limit")?, duration("per")?, resolution)
            }
            Algorithm::WarmUp => {
                let warm_up = duration("warm_up")?;
                Self::warm_up(number("limit")?, number("rate")?, duration("per")?, warm_up)
            }
        })
    }
}
