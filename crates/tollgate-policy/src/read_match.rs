//! Reads what a policy file says of requests: matches, rules and tiers.

use core::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::Quota;
use toml::Spanned;

use crate::condition::Test;
use crate::error::PolicyProblem;
use crate::matches::{Condition, Match};
use crate::placed::{Placed, at};
use crate::read_quota::{FileQuota, quota_of};
use crate::rule::{Action, PolicyTier, Rule};

/// Reads a file with the values of a match: its text, or why it can't be read.
pub(crate) type ReadList<'a> = &'a dyn Fn(&Path) -> Result<String, String>;

/// The conditions of a match, with their places.
pub(crate) struct FileMatch(Vec<(String, Spanned<FileValues>)>);

/// The values of a condition.
pub(crate) enum FileValues {
    One(String),
    Several(Vec<Spanned<String>>),
    File(FileList),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileList {
    file: PathBuf,
}

impl<'de> Deserialize<'de> for FileValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = FileValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list of texts, or { file = \"PATH\" }")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<FileValues, E> {
        Ok(FileValues::One(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<FileValues, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(values)).map(FileValues::Several)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<FileValues, M::Error> {
        FileList::deserialize(MapAccessDeserializer::new(map)).map(FileValues::File)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRule {
    #[serde(rename = "match")]
    matches: Spanned<FileMatch>,
    action: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileTier {
    name: Spanned<String>,
    #[serde(rename = "match")]
    matches: Option<Spanned<FileMatch>>,
    #[serde(default)]
    quota: Vec<Spanned<FileQuota>>,
    unlimited: Option<Spanned<bool>>,
}

impl FileTier {
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.unlimited.is_some()
    }
}

/// The name of the table of header fields, and what the names of such fields begin with.
const HEADER: &str = "header";

/// The conditions on header fields.
struct Headers(Vec<(String, Spanned<FileValues>)>);

struct Conditions {
    is_in_header: bool,
}

impl<'de> Visitor<'de> for Conditions {
    type Value = Vec<(String, Spanned<FileValues>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a match such as { path = \"/login\", method = [\"POST\"] }")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut conditions = Vec::new();
        while let Some(field) = map.next_key::<String>()? {
            if field.trim().is_empty() {
                return Err(M::Error::custom("a condition has no field: name one, such as `path`"));
            }
            match () {
                () if self.is_in_header => {
                    conditions.push((format!("{HEADER}.{}", field.to_ascii_lowercase()), map.next_value()?));
                }
                () if field == HEADER => conditions.extend(map.next_value::<Headers>()?.0),
                () => conditions.push((field, map.next_value()?)),
            }
        }
        Ok(conditions)
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Conditions { is_in_header: true }).map(Self)
    }
}

impl<'de> Deserialize<'de> for FileMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Conditions { is_in_header: false }).map(Self)
    }
}

pub(crate) fn match_of(spanned: &Spanned<FileMatch>, lists: ReadList<'_>) -> Result<Match, Placed> {
    let FileMatch(conditions) = spanned.get_ref();
    if conditions.is_empty() {
        return Err(at(spanned, PolicyProblem::EmptyMatch));
    }
    let conditions = conditions.iter().map(|(field, values)| condition_of(field, values, lists));
    let mut conditions = conditions.collect::<Result<Vec<_>, _>>()?;
    conditions.sort_by(|one, other| one.field.cmp(&other.field));
    Ok(Match { conditions })
}

fn condition_of(field: &str, spanned: &Spanned<FileValues>, lists: ReadList<'_>) -> Result<Condition, Placed> {
    // The values, and where each is: in the policy, or in a line of another file.
    let (values, places, file): (Vec<Box<str>>, Vec<usize>, _) = match spanned.get_ref() {
        FileValues::One(value) => (vec![value.as_str().into()], vec![spanned.span().start], None),
        FileValues::Several(values) => {
            let places = values.iter().map(|value| value.span().start).collect();
            (values.iter().map(|value| value.get_ref().as_str().into()).collect(), places, None)
        }
        FileValues::File(FileList { file }) => {
            let unread = |reason| at(spanned, PolicyProblem::List { path: file.clone(), reason });
            let text = lists(file).map_err(unread)?;
            let lines = text.lines().enumerate().map(|(at, line)| (at + 1, uncommented(line)));
            let (places, values) =
                lines.filter(|(_, line)| !line.is_empty()).map(|(at, line)| (at, line.into())).unzip();
            (values, places, Some(file.clone()))
        }
    };
    if values.is_empty() && file.is_none() {
        return Err(at(spanned, PolicyProblem::EmptyCondition { field: field.to_owned() }));
    }
    Test::new(field, &values).map_err(|(value, error)| {
        let place = places.get(value).copied().unwrap_or_default();
        let line = file.clone().map(|file| Box::new((file, place)));
        let place = if line.is_some() { spanned.span().start } else { place };
        (place, PolicyProblem::Match { field: field.to_owned(), error: error.into(), line })
    })?;
    Ok(Condition { field: field.into(), values, file })
}

/// A line of a list without its comment.
fn uncommented(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

pub(crate) fn rule_of(spanned: &Spanned<FileRule>, lists: ReadList<'_>) -> Result<Rule, Placed> {
    let FileRule { matches, action } = spanned.get_ref();
    let matches = match_of(matches, lists)?;
    let action = match action.get_ref().as_str() {
        "admit" => Action::Admit,
        "deny" => Action::Deny,
        word => return Err(at(action, PolicyProblem::UnknownAction { word: word.to_owned() })),
    };
    Ok(Rule { matches, action })
}

/// The tiers of a dimension, whose values of `tier_by` name some of them.
pub(crate) fn tiers_of(
    tiers: &[Spanned<FileTier>],
    tier_by: Option<&Spanned<String>>,
    lists: ReadList<'_>,
) -> Result<Vec<PolicyTier>, Placed> {
    let mut read: Vec<PolicyTier> = Vec::with_capacity(tiers.len());
    for tier in tiers {
        let name = &tier.get_ref().name;
        if name.get_ref().trim().is_empty() {
            return Err(at(name, PolicyProblem::EmptyTierName));
        }
        if read.iter().any(|other| *other.name == **name.get_ref()) {
            return Err(at(name, PolicyProblem::RepeatedTier { name: name.get_ref().clone() }));
        }
        read.push(tier_of(tier, lists)?);
    }
    match tier_by {
        Some(field) if field.get_ref().trim().is_empty() => Err(at(field, PolicyProblem::EmptyKey)),
        Some(field) if read.iter().all(|tier| !tier.matches.is_any()) => Err(at(field, PolicyProblem::NoTierByName)),
        _ => Ok(read),
    }
}

fn tier_of(spanned: &Spanned<FileTier>, lists: ReadList<'_>) -> Result<PolicyTier, Placed> {
    let FileTier { name, matches, quota, unlimited } = spanned.get_ref();
    let matches = matches.as_ref().map(|matches| match_of(matches, lists)).transpose()?.unwrap_or_default();
    let quotas = match unlimited {
        Some(unlimited) if !quota.is_empty() || !unlimited.get_ref() => {
            return Err(at(unlimited, PolicyProblem::QuotaAndUnlimited));
        }
        Some(_) => Vec::new(),
        None => quotas_of(quota, spanned.span().start)?,
    };
    Ok(PolicyTier { name: name.get_ref().as_str().into(), matches, quotas })
}

/// The quotas of a dimension or a tier, which begins at this place.
pub(crate) fn quotas_of(quotas: &[Spanned<FileQuota>], place: usize) -> Result<Vec<Quota>, Placed> {
    let read = quotas.iter().map(quota_of).collect::<Result<Vec<Quota>, Placed>>()?;
    // The error points at the quota that does not combine with the others.
    let other = read.iter().position(|quota| quota.algorithm() != tollgate::Algorithm::SlidingWindowLog);
    let place = other.map_or(place, |other| quotas[other].span().start);
    Quota::validate_all(&read).map_err(|error| (place, error.into()))?;
    Ok(read)
}
