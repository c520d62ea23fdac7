//! Reads the text of a policy file: to a [`Policy`], or to the first problem.

use core::str::FromStr;

use serde::Deserialize;
use tollgate::{AtKeyCap, BuildError, MAX_DIMENSIONS, MAX_DIMENSIONS_AND_TIERS, MAX_KEY_CAP, Penalty};
use toml::Spanned;

use crate::apply_error::ApplyError;
use crate::error::{PolicyError, PolicyProblem};
use crate::model::{Dimension, Policy};
use crate::placed::{DurationText, Placed, at, duration};
use crate::read_client::{FileClient, client_of};
use crate::read_match::{FileMatch, FileRule, FileTier, ReadList, match_of, quotas_of, rule_of, tiers_of};
use crate::read_quota::FileQuota;
use crate::read_store::{FileStore, store_of};

/// The contents of the file. Each value has its place in the text, for errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    key_cap: Option<Spanned<usize>>,
    at_key_cap: Option<Spanned<String>>,
    shadow: Option<bool>,
    enforced_percent: Option<Spanned<u32>>,
    network_limits: Option<bool>,
    client: Option<Spanned<FileClient>>,
    store: Option<Spanned<FileStore>>,
    #[serde(default)]
    rule: Vec<Spanned<FileRule>>,
    #[serde(default)]
    dimension: Vec<Spanned<FileDimension>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDimension {
    name: Spanned<String>,
    key: Option<Spanned<Vec<String>>>,
    #[serde(rename = "match")]
    matches: Option<Spanned<FileMatch>>,
    #[serde(default)]
    shadow: bool,
    #[serde(default)]
    quota: Vec<Spanned<FileQuota>>,
    tier_by: Option<Spanned<String>>,
    #[serde(default)]
    tier: Vec<Spanned<FileTier>>,
    penalty: Option<Spanned<FilePenalty>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePenalty {
    denials: u32,
    within: Spanned<DurationText>,
    blocked_for: Spanned<DurationText>,
    // All three or none.
    factor: Option<u32>,
    longest: Option<Spanned<DurationText>>,
    quiet_for: Option<Spanned<DurationText>>,
}

fn dimension_of(dimension: &Spanned<FileDimension>, lists: ReadList<'_>) -> Result<Dimension, Placed> {
    let FileDimension { name, key, matches, shadow, quota, tier_by, tier, penalty } = dimension.get_ref();
    if name.get_ref().trim().is_empty() {
        return Err(at(name, PolicyProblem::EmptyName));
    }
    let fields = match key {
        None => vec![name.get_ref().clone()],
        Some(key) if key.get_ref().is_empty() || key.get_ref().iter().any(|field| field.trim().is_empty()) => {
            return Err(at(key, PolicyProblem::EmptyKey));
        }
        Some(key) => key.get_ref().clone(),
    };
    let quotas = quotas_of(quota, dimension.span().start)?;
    let penalty = penalty.as_ref().map(penalty_of).transpose()?;
    let matches = matches.as_ref().map(|matches| match_of(matches, lists)).transpose()?.unwrap_or_default();
    let tiers = tiers_of(tier, tier_by.as_ref(), lists)?;
    let tier_by = tier_by.as_ref().map(|field| field.get_ref().as_str().into());
    let name = name.get_ref().as_str().into();
    Ok(Dimension { name, key: fields, matches, shadow: *shadow, quotas, tier_by, tiers, penalty })
}

fn penalty_of(spanned: &Spanned<FilePenalty>) -> Result<Penalty, Placed> {
    let FilePenalty { denials, within, blocked_for, factor, longest, quiet_for } = spanned.get_ref();
    let mut penalty = Penalty::new(*denials, duration("within", within)?, duration("blocked_for", blocked_for)?);
    if factor.is_some() || longest.is_some() || quiet_for.is_some() {
        let lacks = |field| at(spanned, PolicyProblem::GrowthLacks { field });
        let longest = duration("longest", longest.as_ref().ok_or_else(|| lacks("longest"))?)?;
        let quiet_for = duration("quiet_for", quiet_for.as_ref().ok_or_else(|| lacks("quiet_for"))?)?;
        penalty = penalty.growing(factor.ok_or_else(|| lacks("factor"))?, longest, quiet_for);
    }
    penalty.validate().map_err(|error| at(spanned, BuildError::from(error)))?;
    Ok(penalty)
}

impl From<BuildError> for PolicyProblem {
    fn from(error: BuildError) -> Self {
        Self::Refused(error)
    }
}

/// The message of the parser and, after a usual mistake, a remedy.
fn with_remedy(message: &str) -> String {
    const REMEDIES: [(&str, &str); 5] = [
        (
            "expected a sequence",
            "write `[[dimension]]` in two pairs of brackets, and lists in one: `quota = [{ ... }]`, `key = [\"user\"]`",
        ),
        // Of the prefix of `[client]`.
        ("expected u8", "write a whole number from 32 to 128, without quotes"),
        ("expected u32", "write a whole number up to 4294967295, without quotes"),
        ("expected usize", "write a whole number, without quotes"),
        ("missing field", "add it"),
    ];
    match REMEDIES.iter().find(|(mistake, _)| message.contains(mistake)) {
        Some((_, remedy)) => format!("{message}: {remedy}"),
        None => message.to_owned(),
    }
}

/// The line of a policy file because of which it was not applied; the last one for what it lacks.
pub(crate) fn line_of(text: &str, error: &ApplyError) -> usize {
    let place = toml::from_str(text).ok().and_then(|file: File| match error {
        ApplyError::KeyCap { .. } => Some(file.key_cap?.span().start),
        ApplyError::ForStore => Some(file.store?.span().start),
        ApplyError::Client => Some(file.client?.span().start),
        _ => {
            let mut names = file.dimension.iter().map(|dimension| &dimension.get_ref().name);
            Some(names.find(|name| error.dimension() == Some(name.get_ref()))?.span().start)
        }
    });
    let before = &text[..place.unwrap_or(text.trim_end().len())];
    before.matches('\n').count() + 1
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
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// assert_eq!(policy.dimensions()[0].quotas(), [Quota::per_minute(5)]);
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyError`] for the first problem in the text. A list in a file of its own is one.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        Self::read(text, &|_| Err("only `Policy::load` reads other files".to_owned()))
    }

    /// Reads the text of a policy file, and the lists that are in files of their own.
    pub(crate) fn read(text: &str, lists: ReadList<'_>) -> Result<Self, PolicyError> {
        let refuse = |placed: Placed| PolicyError::at(text, placed, None);
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(text.len(), |span| span.start);
            refuse((start, PolicyProblem::Toml { message: with_remedy(error.message()) }))
        })?;
        if let Some(key_cap) = &file.key_cap {
            let problem = match *key_cap.get_ref() {
                0 => Some(BuildError::ZeroKeyCap),
                key_cap if key_cap > MAX_KEY_CAP => Some(BuildError::KeyCapTooLarge { key_cap }),
                _ => None,
            };
            problem.map_or(Ok(()), |problem| Err(refuse(at(key_cap, problem))))?;
        }
        let at_key_cap = file.at_key_cap.as_ref().map(|word| match word.get_ref().as_str() {
            "deny" => Ok(AtKeyCap::Deny),
            "admit" => Ok(AtKeyCap::Admit),
            _ => Err(refuse(at(word, PolicyProblem::UnknownAtKeyCap { word: word.get_ref().clone() }))),
        });
        let at_key_cap = at_key_cap.transpose()?;
        let enforced_percent = file.enforced_percent.as_ref().map(|percent| match *percent.get_ref() {
            _ if file.shadow.is_some() => Err(refuse(at(percent, PolicyProblem::ShadowAndPercentage))),
            number => match u8::try_from(number) {
                Ok(percent @ 0..=100) => Ok(percent),
                _ => Err(refuse(at(percent, BuildError::NoPercentage { percent: number }))),
            },
        });
        let enforced_percent = enforced_percent.transpose()?;
        let (dimensions, most) = (file.dimension.len(), MAX_DIMENSIONS);
        if !(1..=most).contains(&dimensions) {
            // The place of the first dimension past the maximum, or of the end of the file.
            let place = file.dimension.get(most).map_or(text.len(), |dimension| dimension.span().start);
            return Err(refuse((place, BuildError::DimensionCount { dimensions, most }.into())));
        }
        let mut named: Vec<Dimension> = Vec::with_capacity(dimensions);
        for dimension in &file.dimension {
            let name = &dimension.get_ref().name;
            if named.iter().any(|other| *other.name == **name.get_ref()) {
                return Err(refuse(at(name, PolicyProblem::RepeatedName { name: name.get_ref().clone() })));
            }
            let read = dimension_of(dimension, lists);
            named.push(read.map_err(|placed| PolicyError::at(text, placed, Some(name.get_ref())))?);
        }
        let tiers = file.dimension.iter().flat_map(|dimension| &dimension.get_ref().tier);
        let (limited, most) =
            (tiers.filter(|tier| !tier.get_ref().is_unlimited()), MAX_DIMENSIONS_AND_TIERS - dimensions);
        if let Some(tier) = limited.clone().nth(most) {
            return Err(refuse(at(tier, BuildError::TooManyTiers { tiers: limited.count(), most })));
        }
        let rules = file.rule.iter().map(|rule| rule_of(rule, lists)).collect::<Result<_, _>>().map_err(refuse)?;
        let key_cap = file.key_cap.map(Spanned::into_inner);
        let store =
            file.store.as_ref().map(|store| store_of(store.get_ref()).map(Box::new)).transpose().map_err(refuse)?;
        let client = file.client.as_ref().map(|client| client_of(client.get_ref())).transpose().map_err(refuse)?;
        let client = client.unwrap_or_default();
        let File { shadow, network_limits, .. } = file;
        Ok(Self {
            key_cap,
            at_key_cap,
            shadow,
            enforced_percent,
            network_limits,
            client,
            store,
            rules,
            dimensions: named,
        })
    }
}
