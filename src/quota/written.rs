//! Quotas in serde formats (feature `serde`), with the fields of a policy file.

use core::time::Duration;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::algorithm::Algorithm;
use super::value::{Kind, Quota};
use crate::duration::{Plain, parse_duration};

/// The fields of all quotas, in their order in formats without field names.
#[derive(Default, Deserialize)]
#[serde(rename = "Quota", deny_unknown_fields, default)]
struct Written {
    name: Option<String>,
    algorithm: Option<Algorithm>,
    limit: Option<u32>,
    capacity: Option<u32>,
    refill: Option<u32>,
    leak: Option<u32>,
    per: Option<String>,
    max_delay: Option<String>,
    resolution: Option<String>,
    start: Option<u32>,
    phase: Option<String>,
    counting_refused: Option<bool>,
}

impl Written {
    fn of(quota: &Quota) -> Self {
        let text = |duration: Duration| Some(Plain(duration).to_string());
        let limit = Some(quota.limit());
        let own = match quota.kind() {
            Kind::Log | Kind::FixedWindow => Self { limit, per: text(quota.window()), ..Self::default() },
            Kind::SlidingCounter { window } => Self { limit, per: text(window), ..Self::default() },
            Kind::QuantisedLog { window, resolution } => {
                Self { limit, per: text(window), resolution: text(resolution), ..Self::default() }
            }
            Kind::TokenBucket { refill, per } => {
                Self { capacity: limit, refill: Some(refill), per: text(per), ..Self::default() }
            }
            Kind::LeakyBucket { leak, per } => {
                Self { capacity: limit, leak: Some(leak), per: text(per), ..Self::default() }
            }
            Kind::LeakyQueue { leak, per, max_delay } => {
                Self { leak: Some(leak), per: text(per), max_delay: text(max_delay), ..Self::default() }
            }
        };
        Self {
            name: quota.name().map(str::to_owned),
            algorithm: Some(quota.algorithm()),
            start: quota.start(),
            phase: quota.phase().and_then(text),
            counting_refused: quota.is_counting_refused().then_some(true),
            ..own
        }
    }

    fn quota(mut self) -> Result<Quota, String> {
        let algorithm = self.algorithm.take().unwrap_or(Algorithm::SlidingWindowLog);
        let per = duration("per", self.per.take())?;
        let quota = match algorithm {
            Algorithm::SlidingWindowLog => Quota::new(needed("limit", self.limit.take())?, per),
            Algorithm::FixedWindow => Quota::fixed_window(needed("limit", self.limit.take())?, per),
            Algorithm::SlidingCounter => Quota::sliding_counter(needed("limit", self.limit.take())?, per),
            Algorithm::QuantisedLog => {
                let resolution = duration("resolution", self.resolution.take())?;
                Quota::quantised_log(needed("limit", self.limit.take())?, per, resolution)
            }
            Algorithm::TokenBucket => {
                let refill = needed("refill", self.refill.take())?;
                Quota::token_bucket(needed("capacity", self.capacity.take())?, refill, per)
            }
            Algorithm::LeakyBucket => {
                let leak = needed("leak", self.leak.take())?;
                Quota::leaky_bucket(needed("capacity", self.capacity.take())?, leak, per)
            }
            Algorithm::LeakyQueue => {
                let max_delay = duration("max_delay", self.max_delay.take())?;
                Quota::leaky_queue(needed("leak", self.leak.take())?, per, max_delay)
            }
        };
        let Self { limit, capacity, refill, leak, max_delay, resolution, name, start, phase, counting_refused, .. } =
            self;
        let numbers = [("limit", limit), ("capacity", capacity), ("refill", refill), ("leak", leak)];
        let others = [("max_delay", max_delay.is_some()), ("resolution", resolution.is_some())];
        let mut left = numbers.map(|(field, number)| (field, number.is_some())).into_iter().chain(others);
        if let Some((field, _)) = left.find(|&(_, is_there)| is_there) {
            return Err(format!("a {algorithm} has no field `{field}`"));
        }
        let quota = name.map_or(quota, |name| quota.named(&name));
        let quota = start.map_or(quota, |start| quota.starting_with(start));
        let quota = if counting_refused == Some(true) { quota.counting_refused() } else { quota };
        let quota = match phase {
            None => quota,
            phase => quota.aligned(duration("phase", phase)?),
        };
        quota.validate().map_err(|error| error.to_string())?;
        Ok(quota)
    }
}

fn needed<T>(field: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("`{field}` is missing"))
}

fn duration(field: &str, text: Option<String>) -> Result<Duration, String> {
    parse_duration(&needed(field, text)?).map_err(|error| format!("`{field}`: {error}"))
}

/// Writes the fields of a [policy file](crate::Policy), with durations as texts.
impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A human-readable format leaves out fields that are not set. A format without field names
        // needs all of them.
        let all = !serializer.is_human_readable();
        let Written {
            name,
            algorithm,
            limit,
            capacity,
            refill,
            leak,
            per,
            max_delay,
            resolution,
            start,
            phase,
            counting_refused,
        } = Written::of(self);
        let mut fields = serializer.serialize_struct("Quota", 12)?;
        macro_rules! write {
            ($($field:ident),*) => {$(
                if all || $field.is_some() {
                    fields.serialize_field(stringify!($field), &$field)?;
                } else {
                    fields.skip_field(stringify!($field))?;
                }
            )*};
        }
        write!(
            name,
            algorithm,
            limit, capacity, refill, leak, per, max_delay, resolution, start, phase, counting_refused
        );
        fields.end()
    }
}

/// Reads the fields of a [policy file](crate::Policy). A quota that is not [valid](Quota::validate)
/// is an error.
impl<'de> Deserialize<'de> for Quota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.quota().map_err(D::Error::custom)
    }
}
