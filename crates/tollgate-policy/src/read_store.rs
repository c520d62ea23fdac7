//! Reads the `[store]` of a policy file.

use core::num::NonZeroU32;

use serde::Deserialize;
use toml::Spanned;

use super::error::PolicyProblem;
use super::placed::{DurationText, Placed, at, duration};
use super::store::{Given, OnFailure, StoreTable};

/// The table in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileStore {
    url: Spanned<FileGiven>,
    secret: Spanned<FileGiven>,
    name: Option<String>,
    prefix: Option<String>,
    hash_tag: Option<String>,
    timeout: Option<Spanned<DurationText>>,
    connect_timeout: Option<Spanned<DurationText>>,
    max_calls: Option<usize>,
    max_clock_skew: Option<Spanned<DurationText>>,
    breaker: Option<FileBreaker>,
    on_failure: Option<Spanned<String>>,
    nodes: Option<Spanned<u32>>,
    cache_denials: Option<usize>,
    lease: Option<FileLease>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBreaker {
    failures: u32,
    pause: Spanned<DurationText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLease {
    most: u32,
    slots: usize,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "neither a text nor a place: write one, or { env = \"NAME\" } or { file = \"PATH\" }")]
enum FileGiven {
    Text(String),
    Place(FilePlace),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePlace {
    env: Option<String>,
    file: Option<String>,
}

/// The store of a policy.
pub(super) fn store_of(file: &FileStore) -> Result<StoreTable, Placed> {
    let url = given("url", &file.url)?;
    if matches!(&url, Given::Text(text) if has_password(text)) {
        return Err(at(&file.url, PolicyProblem::InTheFile { field: "url" }));
    }
    let secret = given("secret", &file.secret)?;
    if matches!(secret, Given::Text(_)) {
        return Err(at(&file.secret, PolicyProblem::InTheFile { field: "secret" }));
    }
    let timed = |field, value: &Option<Spanned<DurationText>>| value.as_ref().map(|it| duration(field, it)).transpose();
    let breaker = file.breaker.as_ref().map(|it| Ok((it.failures, duration("pause", &it.pause)?))).transpose()?;
    Ok(StoreTable {
        url,
        secret,
        name: file.name.clone(),
        prefix: file.prefix.clone(),
        hash_tag: file.hash_tag.clone(),
        timeout: timed("timeout", &file.timeout)?,
        connect_timeout: timed("connect_timeout", &file.connect_timeout)?,
        max_calls: file.max_calls,
        max_clock_skew: timed("max_clock_skew", &file.max_clock_skew)?,
        breaker,
        on_failure: on_failure_of(file)?,
        cache_denials: file.cache_denials,
        lease: file.lease.as_ref().map(|lease| (lease.most, lease.slots)),
    })
}

fn given(field: &'static str, value: &Spanned<FileGiven>) -> Result<Given, Placed> {
    let given = match value.get_ref() {
        FileGiven::Text(text) => Some(Given::Text(text.clone())),
        FileGiven::Place(FilePlace { env: Some(name), file: None }) => Some(Given::Env(name.clone())),
        FileGiven::Place(FilePlace { env: None, file: Some(path) }) => Some(Given::File(path.into())),
        FileGiven::Place(_) => None,
    };
    given.ok_or_else(|| at(value, PolicyProblem::Given { field }))
}

fn on_failure_of(file: &FileStore) -> Result<OnFailure, Placed> {
    let word = file.on_failure.as_ref().map(|word| (word.get_ref().as_str(), word));
    match (word, &file.nodes) {
        (Some(("local", _)), Some(nodes)) => match NonZeroU32::new(*nodes.get_ref()) {
            Some(nodes) => Ok(OnFailure::Local { nodes }),
            None => Err(at(nodes, PolicyProblem::NoNodes)),
        },
        (Some(("local", place)), None) => Err(at(place, PolicyProblem::NoNodes)),
        (None | Some(("closed" | "open", _)), Some(nodes)) => Err(at(nodes, PolicyProblem::NodesWithoutLocal)),
        (None | Some(("closed", _)), None) => Ok(OnFailure::Closed),
        (Some(("open", _)), None) => Ok(OnFailure::Open),
        (Some((other, place)), _) => Err(at(place, PolicyProblem::UnknownOnFailure { word: other.to_owned() })),
    }
}

/// Whether an address has a password: between a colon and the at sign that ends the user.
fn has_password(url: &str) -> bool {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?']).next().unwrap_or_default();
    // A password may have a slash that is not encoded.
    let user = authority.rsplit_once('@').or_else(|| after.rsplit_once('@')).map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
}
