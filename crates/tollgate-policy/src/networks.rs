//! [`Policy::with_network_limits`]: limits of whole IPv6 networks, by those of a client.

use tollgate::{Algorithm, MAX_DIMENSIONS, MAX_DIMENSIONS_AND_TIERS, Quota};

use crate::model::{Dimension, Policy};

/// The networks, by the bits of their prefix, and the multiple of a client's limit that each has: an
/// end site, and the least that a provider gets.
const NETWORKS: [(u8, u32); 2] = [(48, 100), (32, 1_000)];

impl Policy {
    /// The policy with limits of the IPv6 networks of its clients, as `tollgate serve` decides by it. A
    /// client with many networks of 64 bits would fill the key cap otherwise.
    ///
    /// `is_address` says which fields are addresses. Such a field that is the whole key of a
    /// dimension gets two more dimensions: each network of 48 bits has 100 times the limit of a
    /// client, and each of 32 bits 1,000 times, as a token bucket. Of several quotas, the one with
    /// the longest window counts. Their keys are `FIELD/48` and `FIELD/32`.
    ///
    /// A network that is no wider than the one of a client's [key](Self::client) is left out. Nothing
    /// is added with `network_limits = false`, with a [`[store]`](Self::store), for a field
    /// of which the policy limits networks itself, for a dimension with tiers, for a warm-up, where no bucket is large enough, and
    /// without room for two more dimensions.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"address\"\nkey = [\"client\"]\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?.with_network_limits(|field| field == "client");
    /// let limits = policy.dimensions()[1..].iter().map(|it| format!("{}: {}", it.name(), it.quotas()[0]));
    /// let expected = [
    ///     "client/48: token bucket of 500, refilled by 500 per 1m",
    ///     "client/32: token bucket of 5000, refilled by 5000 per 1m",
    /// ];
    /// assert_eq!(limits.collect::<Vec<_>>(), expected);
    ///
    /// let policy = Policy::from_toml(&format!("network_limits = false\n{text}"))?;
    /// assert_eq!(policy.with_network_limits(|field| field == "client"), policy);
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    #[must_use]
    pub fn with_network_limits(&self, is_address: impl Fn(&str) -> bool) -> Self {
        let mut policy = self.clone();
        if self.network_limits == Some(false) || self.store.is_some() {
            return policy;
        }
        let tiers = self.dimensions.iter().flat_map(Dimension::limited_tiers).count();
        for dimension in &self.dimensions {
            let [field] = &dimension.key[..] else { continue };
            let network = format!("{field}/");
            let is_limited =
                |it: &Dimension| it.name.starts_with(&network) || it.key.iter().any(|key| key.starts_with(&network));
            let dimensions = policy.dimensions.len() + NETWORKS.len();
            let has_room = dimensions <= MAX_DIMENSIONS && dimensions + tiers <= MAX_DIMENSIONS_AND_TIERS;
            // A network would limit what a tier allows.
            if !is_address(field)
                || !dimension.tiers.is_empty()
                || policy.dimensions.iter().any(is_limited)
                || !has_room
            {
                continue;
            }
            let of_field = self.dimensions.iter().filter(|other| other.key == dimension.key);
            let longest = of_field.flat_map(|it| &it.quotas).max_by_key(|quota| quota.window());
            let narrower = NETWORKS.iter().filter(|(bits, _)| *bits < self.client.prefix());
            policy.dimensions.extend(narrower.filter_map(|&(bits, times)| {
                let key = format!("{network}{bits}");
                let quotas = vec![multiple(longest?, times)?];
                Some(Dimension {
                    name: key.as_str().into(),
                    key: vec![key],
                    matches: dimension.matches.clone(),
                    shadow: dimension.shadow,
                    quotas,
                    tier_by: None,
                    tiers: Vec::new(),
                    penalty: None,
                })
            }));
        }
        policy
    }
}

/// A bucket of so many times the permits of a quota.
fn multiple(quota: &Quota, times: u32) -> Option<Quota> {
    let (permits, per) = match quota.algorithm() {
        // Its rate is none of its limit and its window.
        Algorithm::WarmUp => return None,
        // It has no rate.
        Algorithm::Concurrency => return None,
        // The time for which a permit counts is longer than the window.
        Algorithm::SlidingCounter => (quota.limit(), quota.window() / 2),
        Algorithm::QuantisedLog => (quota.limit(), quota.window() - quota.resolution().unwrap_or_default()),
        _ => quota.rate().unwrap_or((quota.limit(), quota.window())),
    };
    let bucket = Quota::token_bucket(quota.limit().checked_mul(times)?, permits.checked_mul(times)?, per);
    bucket.validate().is_ok().then_some(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_network_has_so_many_times_the_limit_and_the_rate_of_a_client() {
        for (quota, expected) in [
            (Quota::per_minute(5), Some((500, 500, MINUTE))),
            (Quota::token_bucket(20, 5, MINUTE), Some((2_000, 500, MINUTE))),
            (Quota::leaky_queue(5, MINUTE, MINUTE), Some((600, 500, MINUTE))),
            (Quota::fixed_window(5, MINUTE), Some((500, 500, MINUTE))),
            (Quota::sliding_counter(5, MINUTE), Some((500, 500, MINUTE))),
            (Quota::quantised_log(5, MINUTE, MINUTE / 60), Some((500, 500, MINUTE))),
            (Quota::quantised_log(1 << 30, MINUTE, MINUTE / 60), None),
            (Quota::warm_up(5, 5, MINUTE, MINUTE), None),
            (Quota::concurrent(5), None),
        ] {
            let expected = expected.map(|(capacity, refill, per)| Quota::token_bucket(capacity, refill, per));
            assert_eq!(multiple(&quota, 100), expected, "{quota}");
        }
    }

    fn added(text: &str) -> Vec<String> {
        let policy = Policy::from_toml(text).unwrap();
        let with = policy.with_network_limits(|field| field == "client");
        assert_eq!(with.with_network_limits(|field| field == "client"), with);
        with.dimensions[policy.dimensions.len()..]
            .iter()
            .map(|it| format!("{} {}", it.name, it.quotas[0].limit()))
            .collect()
    }

    #[test]
    fn the_longest_window_of_a_field_counts_and_own_limits_of_networks_are_enough() {
        let dimension = |name: &str, key: &str, quotas: &str| {
            format!("[[dimension]]\nname = \"{name}\"\nkey = [{key}]\nquota = [{quotas}]\n")
        };
        let (second, hour) = ("{ limit = 3, per = \"1s\" }", "{ limit = 7, per = \"1h\" }");
        let client = dimension("a", "\"client\"", second);
        assert_eq!(added(&client), ["client/48 300", "client/32 3000"]);
        assert_eq!(added(&(client.clone() + &dimension("b", "\"client\"", hour))), ["client/48 700", "client/32 7000"]);
        assert_eq!(
            added(&dimension("a", "\"client\"", &format!("{hour}, {second}"))),
            ["client/48 700", "client/32 7000"]
        );
        // Neither the whole key nor an address.
        assert!(added(&(dimension("a", "\"client\", \"user\"", hour) + &dimension("b", "\"user\"", hour))).is_empty());
        assert!(added(&(client.clone() + &dimension("site", "\"client/56\"", hour))).is_empty());
        let many: String = (0..6).map(|at| dimension(&format!("user-{at}"), "\"user\"", hour)).collect();
        assert!(added(&(client.clone() + &many)).is_empty(), "there is room for eight");
        let off = Policy::from_toml(&format!("network_limits = false\n{client}")).unwrap();
        assert_eq!(Policy::from_toml(&off.to_string()).unwrap(), off);
        let store = "[store]\nurl = \"redis://host\"\nsecret = { env = \"S\" }\n";
        assert!(added(&format!("{store}{client}")).is_empty());
    }
}
