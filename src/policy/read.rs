//! Reads the text of a policy file: to a [`Policy`], or to the first problem.

use core::ops::Range;
use core::str::FromStr;
use core::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::duration::{FileDuration, Read};
use super::error::{PolicyError, PolicyProblem};
use super::model::{Dimension, Policy};
use super::names::ALGORITHMS;
use crate::caps::{AtKeyCap, MAX_DIMENSIONS};
use crate::error::BuildError;
use crate::penalty::Penalty;
use crate::quota::{Algorithm, Quota};
use crate::quotas::{check_keys, validate};

/// The contents of the file. Each value has its place in the text, for errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    key_cap: Option<Spanned<usize>>,
    at_key_cap: Option<Spanned<String>>,
    shadow: Option<bool>,
    #[serde(default)]
    dimension: Vec<Spanned<FileDimension>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDimension {
    name: Spanned<String>,
    key: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    quota: Vec<Spanned<FileQuota>>,
    penalty: Option<Spanned<FilePenalty>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePenalty {
    denials: u32,
    within: Spanned<FileDuration>,
    blocked_for: Spanned<FileDuration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileQuota {
    name: Option<Spanned<String>>,
    algorithm: Option<Spanned<String>>,
    limit: Option<Spanned<u32>>,
    capacity: Option<Spanned<u32>>,
    refill: Option<Spanned<u32>>,
    leak: Option<Spanned<u32>>,
    per: Option<Spanned<FileDuration>>,
    max_delay: Option<Spanned<FileDuration>>,
    start: Option<Spanned<u32>>,
    phase: Option<Spanned<FileDuration>>,
    resolution: Option<Spanned<FileDuration>>,
}

/// A problem and its place, in bytes.
type Placed = (Range<usize>, PolicyProblem);

/// A problem, its place, and its dimension.
struct Refused {
    placed: Placed,
    dimension: Option<String>,
}

impl From<Placed> for Refused {
    fn from(placed: Placed) -> Self {
        Self { placed, dimension: None }
    }
}

fn policy(text: &str) -> Result<Policy, PolicyError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(text.len(), |span| span.start);
        PolicyError::at(text, start, PolicyProblem::Toml { message: error.message().to_owned() })
    })?;
    checked(&file, text).map_err(|Refused { placed: (place, problem), dimension }| {
        PolicyError::at(text, place.start, problem).in_dimension(dimension)
    })
}

fn checked(file: &File, text: &str) -> Result<Policy, Refused> {
    if let Some(key_cap) = &file.key_cap {
        check_keys(*key_cap.get_ref(), 0).map_err(|error| (key_cap.span(), error.into()))?;
    }
    let at_key_cap = match &file.at_key_cap {
        None => None,
        Some(word) => Some(match word.get_ref().as_str() {
            "deny" => AtKeyCap::Deny,
            "admit" => AtKeyCap::Admit,
            _ => return Err((word.span(), PolicyProblem::UnknownAtKeyCap { word: word.get_ref().clone() }).into()),
        }),
    };
    let (dimensions, most) = (file.dimension.len(), MAX_DIMENSIONS);
    if !(1..=most).contains(&dimensions) {
        // The place of the first dimension past the maximum, or of the end of the file.
        let place = file.dimension.get(most).map_or(text.len()..text.len(), Spanned::span);
        return Err((place, BuildError::DimensionCount { dimensions, most }.into()).into());
    }
    let mut named: Vec<Dimension> = Vec::with_capacity(dimensions);
    for dimension in &file.dimension {
        let name = &dimension.get_ref().name;
        if named.iter().any(|other| *other.name == **name.get_ref()) {
            return Err((name.span(), PolicyProblem::RepeatedName { name: name.get_ref().clone() }).into());
        }
        let read = dimension_of(dimension);
        named.push(read.map_err(|placed| Refused { placed, dimension: Some(name.get_ref().clone()) })?);
    }
    let key_cap = file.key_cap.as_ref().map(|cap| *cap.get_ref());
    Ok(Policy { key_cap, at_key_cap, shadow: file.shadow, dimensions: named })
}

fn dimension_of(dimension: &Spanned<FileDimension>) -> Result<Dimension, Placed> {
    let FileDimension { name, key, quota, penalty } = dimension.get_ref();
    if name.get_ref().trim().is_empty() {
        return Err((name.span(), PolicyProblem::EmptyName));
    }
    let fields = match key {
        None => vec![name.get_ref().clone()],
        Some(key) if key.get_ref().is_empty() || key.get_ref().iter().any(|field| field.trim().is_empty()) => {
            return Err((key.span(), PolicyProblem::EmptyKey));
        }
        Some(key) => key.get_ref().clone(),
    };
    let quotas = quota.iter().map(quota_of).collect::<Result<Vec<Quota>, Placed>>()?;
    // The error points at the quota that does not combine with the others.
    let other = quotas.iter().position(|quota| quota.algorithm() != Algorithm::SlidingWindowLog);
    let place = other.map_or(dimension.span(), |other| quota[other].span());
    validate(&quotas).map_err(|error| (place, error.into()))?;
    let penalty = penalty.as_ref().map(penalty_of).transpose()?;
    Ok(Dimension { name: name.get_ref().as_str().into(), key: fields, quotas, penalty })
}

fn penalty_of(spanned: &Spanned<FilePenalty>) -> Result<Penalty, Placed> {
    let FilePenalty { denials, within, blocked_for } = spanned.get_ref();
    let penalty = Penalty::new(*denials, within.read("within")?, blocked_for.read("blocked_for")?);
    penalty.validate().map_err(|error| (spanned.span(), BuildError::from(error).into()))?;
    Ok(penalty)
}

/// A quota of the file, with its place and its algorithm.
struct Fields<'a> {
    quota: &'a FileQuota,
    place: Range<usize>,
    algorithm: Algorithm,
}

impl Fields<'_> {
    fn missing(&self, field: &'static str) -> Placed {
        (self.place.clone(), PolicyProblem::MissingField { field, algorithm: self.algorithm })
    }

    fn number(&self, field: &'static str, value: Option<&Spanned<u32>>) -> Result<u32, Placed> {
        value.map(|value| *value.get_ref()).ok_or_else(|| self.missing(field))
    }

    fn duration(&self, field: &'static str, value: Option<&Spanned<FileDuration>>) -> Result<Duration, Placed> {
        value.ok_or_else(|| self.missing(field))?.read(field)
    }

    fn limit(&self) -> Result<u32, Placed> {
        self.number("limit", self.quota.limit.as_ref())
    }

    fn capacity(&self) -> Result<u32, Placed> {
        self.number("capacity", self.quota.capacity.as_ref())
    }

    fn leak(&self) -> Result<u32, Placed> {
        self.number("leak", self.quota.leak.as_ref())
    }

    fn per(&self) -> Result<Duration, Placed> {
        self.duration("per", self.quota.per.as_ref())
    }

    /// Refuses fields of other algorithms. `own` lists the fields of this algorithm.
    fn only(&self, own: &'static [&'static str], fields: &'static str) -> Result<(), Placed> {
        let FileQuota {
            name: _,
            algorithm: _,
            limit,
            capacity,
            refill,
            leak,
            per,
            max_delay,
            start,
            phase,
            resolution,
        } = self.quota;
        let number = |field: &Option<Spanned<u32>>| field.as_ref().map(Spanned::span);
        let length = |field: &Option<Spanned<FileDuration>>| field.as_ref().map(Spanned::span);
        let there = [
            ("limit", number(limit)),
            ("capacity", number(capacity)),
            ("refill", number(refill)),
            ("leak", number(leak)),
            ("per", length(per)),
            ("max_delay", length(max_delay)),
            ("start", number(start)),
            ("phase", length(phase)),
            ("resolution", length(resolution)),
        ];
        let foreign =
            there.into_iter().find_map(|(field, place)| Some((field, place?)).filter(|_| !own.contains(&field)));
        match foreign {
            None => Ok(()),
            Some((field, place)) => {
                let algorithm = self.algorithm;
                Err((place, PolicyProblem::ForeignField { field, algorithm, fields }))
            }
        }
    }
}

fn quota_of(spanned: &Spanned<FileQuota>) -> Result<Quota, Placed> {
    let quota = spanned.get_ref();
    let algorithm = match &quota.algorithm {
        None => Algorithm::SlidingWindowLog,
        Some(name) => algorithm_of(name.get_ref())
            .ok_or_else(|| (name.span(), PolicyProblem::UnknownAlgorithm { name: name.get_ref().clone() }))?,
    };
    let it = Fields { quota, place: spanned.span(), algorithm };
    let made = match algorithm {
        Algorithm::SlidingWindowLog => {
            it.only(&["limit", "per"], "`limit` and `per`")?;
            Quota::new(it.limit()?, it.per()?)
        }
        Algorithm::TokenBucket => {
            it.only(&["capacity", "refill", "per", "start"], "`capacity`, `refill`, `per` and optionally `start`")?;
            let bucket = Quota::token_bucket(it.capacity()?, it.number("refill", quota.refill.as_ref())?, it.per()?);
            quota.start.as_ref().map_or(bucket, |start| bucket.starting_with(*start.get_ref()))
        }
        Algorithm::LeakyBucket => {
            it.only(&["capacity", "leak", "per"], "`capacity`, `leak` and `per`")?;
            Quota::leaky_bucket(it.capacity()?, it.leak()?, it.per()?)
        }
        Algorithm::LeakyQueue => {
            it.only(&["leak", "per", "max_delay"], "`leak`, `per` and `max_delay`")?;
            Quota::leaky_queue(it.leak()?, it.per()?, it.duration("max_delay", quota.max_delay.as_ref())?)
        }
        Algorithm::QuantisedLog => {
            it.only(&["limit", "per", "resolution"], "`limit`, `per` and `resolution`")?;
            let resolution = it.duration("resolution", quota.resolution.as_ref())?;
            Quota::quantised_log(it.limit()?, it.per()?, resolution)
        }
        Algorithm::FixedWindow | Algorithm::SlidingCounter => {
            it.only(&["limit", "per", "phase"], "`limit`, `per` and optionally `phase`")?;
            let (limit, per) = (it.limit()?, it.per()?);
            let counted = match algorithm {
                Algorithm::FixedWindow => Quota::fixed_window(limit, per),
                _ => Quota::sliding_counter(limit, per),
            };
            match &quota.phase {
                None => counted,
                phase => counted.aligned(it.duration("phase", phase.as_ref())?),
            }
        }
    };
    let refused = |place: Range<usize>| move |error| (place, BuildError::from(error).into());
    made.validate().map_err(refused(spanned.span()))?;
    let Some(name) = &quota.name else { return Ok(made) };
    let named = made.named(name.get_ref());
    named.validate().map_err(refused(name.span()))?;
    Ok(named)
}

fn algorithm_of(name: &str) -> Option<Algorithm> {
    ALGORITHMS.iter().find(|(known, _)| *known == name).map(|&(_, algorithm)| algorithm)
}

impl From<BuildError> for PolicyProblem {
    fn from(error: BuildError) -> Self {
        Self::Refused(error)
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Self::from_toml(text)
    }
}

impl Policy {
    /// Reads and checks the text of a policy file.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate::policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// assert_eq!(policy.dimensions()[0].quotas(), [Quota::per_minute(5)]);
    /// # Ok::<(), tollgate::policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyError`] for the first problem in the text.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        policy(text)
    }
}
