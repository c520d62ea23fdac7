//! A policy file with a `[store]`: the store, and the limiter on it.

use tollgate_policy::{Given, OnFailure as Wanted, Policy, StoreTable};

use crate::error::BuildError;
use crate::failure::OnFailure;
use crate::joint::{RedisJointLimiter, RedisJointLimiterBuilder};
use crate::names::Secret;
use crate::store::{Store, StoreBuilder};

impl Store {
    /// The store of a policy that has a `[store]`, with the settings that it says. Its address and its
    /// secret are read now, from where the policy says that they are.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    /// use tollgate_redis::{BuildError, Store};
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [store]
    ///     url = "redis://127.0.0.1:6379"
    ///     secret = { env = "A_VARIABLE_THAT_IS_NOT_SET" }
    ///
    ///     [[dimension]]
    ///     name = "user"
    ///     quota = [{ limit = 5, per = "1m" }]
    /// "#)?;
    /// let error = Store::from_policy(&policy).unwrap_err();
    /// assert!(matches!(error, BuildError::Unread { .. }));
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the policy has no store, or a value is not where it should be.
    pub fn from_policy(policy: &Policy) -> Result<StoreBuilder, BuildError> {
        let table = policy.store().ok_or(BuildError::NoStore)?;
        let url = String::from_utf8(read("url", table.url())?).map_err(|_| BuildError::Address)?;
        let mut builder = Self::builder(&url, Secret::new(read("secret", table.secret())?)?);
        if let Some(prefix) = table.prefix() {
            builder = builder.prefix(prefix);
        }
        if let Some(timeout) = table.timeout() {
            builder = builder.timeout(timeout);
        }
        if let Some(timeout) = table.connect_timeout() {
            builder = builder.connect_timeout(timeout);
        }
        if let Some(calls) = table.max_calls() {
            builder = builder.max_calls(calls);
        }
        if let Some(skew) = table.max_clock_skew() {
            builder = builder.max_clock_skew(skew);
        }
        if let Some((failures, pause)) = table.breaker() {
            builder = builder.breaker(failures, pause);
        }
        Ok(builder)
    }
}

impl RedisJointLimiter {
    /// The limiter of a policy that has a `[store]`, on that store: its dimensions in the order of the
    /// file, and what the table says of denials and of a store that is away. Rules, matches and tiers
    /// are for a [`RequestLimiter`](tollgate_policy::RequestLimiter) with it, as
    /// [`PolicyLimiter`](crate::PolicyLimiter) shows.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    /// use tollgate_redis::RedisJointLimiter;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("secret");
    /// # std::fs::write(&path, "the secret of all nodes\n")?;
    /// let policy = Policy::from_toml(&format!(r#"
    ///     [store]
    ///     url = "redis://127.0.0.1:6379"
    ///     secret = {{ file = "{}" }}
    ///
    ///     [[dimension]]
    ///     name = "user"
    ///     quota = [{{ limit = 5, per = "1m" }}]
    /// "#, path.display()))?;
    /// let limiter = RedisJointLimiter::from_policy(&policy)?.build()?;
    /// assert_eq!(limiter.dimension(0), "user");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`Store::from_policy`], and if the policy has what no store keeps: a penalty,
    /// or shadow mode. A `key_cap` is for the local limiter of `on_failure = "local"`.
    pub fn from_policy(policy: &Policy) -> Result<RedisJointLimiterBuilder, BuildError> {
        Self::from_policy_on(&Store::from_policy(policy)?.build()?, policy)
    }

    /// The limiter of a policy on another store than its own.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    /// use tollgate_redis::{BuildError, RedisJointLimiter, Secret, Store};
    ///
    /// let store = Store::new("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?)?;
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let limiter = RedisJointLimiter::from_policy_on(&store, &Policy::from_toml(text)?)?.build()?;
    /// # assert_eq!(limiter.dimension(0), "user");
    /// let error = RedisJointLimiter::from_policy_on(&store, &Policy::from_toml(&format!("shadow = true\n{text}"))?);
    /// assert_eq!(error.unwrap_err(), BuildError::NotOnAStore { what: "shadow" });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::NotOnAStore`] as for [`from_policy`](Self::from_policy).
    pub fn from_policy_on(store: &Store, policy: &Policy) -> Result<RedisJointLimiterBuilder, BuildError> {
        let has_penalty = policy.dimensions().iter().any(|dimension| dimension.penalty().is_some());
        let is_in_shadow = policy.dimensions().iter().any(tollgate_policy::Dimension::shadow);
        for (what, is_there) in [
            ("penalty", has_penalty),
            ("shadow", policy.shadow() == Some(true) || is_in_shadow),
            ("enforced_percent", policy.enforced_percent().is_some_and(|percent| percent < 100)),
        ] {
            if is_there {
                return Err(BuildError::NotOnAStore { what });
            }
        }
        let table = policy.store();
        let mut builder = Self::builder(store, table.map_or(StoreTable::NAME, StoreTable::name));
        for dimension in policy.dimensions() {
            builder = builder.dimension(dimension.name(), dimension.quotas().iter().copied());
        }
        for (at, dimension) in policy.dimensions().iter().enumerate() {
            let tiers = dimension.tiers().iter().enumerate().filter(|(_, tier)| !tier.is_unlimited());
            builder = tiers.fold(builder, |builder, (place, tier)| builder.tier(at, place, tier));
        }
        builder = builder.local_keys(policy.key_cap(), policy.at_key_cap().unwrap_or_default());
        let Some(table) = table else { return Ok(builder) };
        if let Some(tag) = table.hash_tag() {
            builder = builder.hash_tag(tag);
        }
        if let Some(slots) = table.cache_denials() {
            builder = builder.cache_denials(slots);
        }
        if let Some((most, slots)) = table.lease() {
            builder = builder.lease(most, slots);
        }
        Ok(builder.on_failure(match table.on_failure() {
            Wanted::Open => OnFailure::Admit,
            Wanted::Local { nodes } => OnFailure::Local { nodes: nodes.get() },
            _ => OnFailure::Refuse,
        }))
    }
}

/// The value of a field. An error has no part of it.
fn read(field: &'static str, given: &Given) -> Result<Vec<u8>, BuildError> {
    let unread = |reason: String| BuildError::Unread { field, place: given.to_string(), reason };
    match given {
        Given::Text(text) => Ok(text.clone().into_bytes()),
        Given::Env(name) => {
            let value = std::env::var_os(name).ok_or_else(|| unread("it is not set".to_owned()))?;
            Ok(value.into_encoded_bytes())
        }
        Given::File(path) => {
            let mut bytes = std::fs::read(path).map_err(|error| unread(error.to_string()))?;
            for end in [b'\n', b'\r'] {
                bytes.pop_if(|last| *last == end);
            }
            Ok(bytes)
        }
        _ => Err(unread("this version does not know such a place".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes that read the secret from an editor's file and from a variable have the same.
    #[test]
    fn a_line_break_at_the_end_of_a_file_is_no_part_of_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for text in ["sixteen bytes or more", "sixteen bytes or more\n", "sixteen bytes or more\r\n"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read("secret", &Given::File(path.clone())).unwrap(), b"sixteen bytes or more");
        }
        std::fs::write(&path, "two\n\n").unwrap();
        assert_eq!(read("secret", &Given::File(path)).unwrap(), b"two\n");
    }
}
