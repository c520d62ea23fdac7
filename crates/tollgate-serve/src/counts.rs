//! [`Counts`]: what was decided, for `/metrics`.

use core::{array, fmt, iter};
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use tollgate_http::middleware::Ruling;
use tollgate_http::{DenialKind, Policies, PolicyError};
use tollgate_policy::{Key, Policy};

use crate::ask::Decided;

/// The results of requests, as `/metrics` calls them.
const RESULTS: [&str; 16] = [
    "admitted",
    "admitted_by_rule",
    "unlimited",
    "overruled",
    "uncounted",
    "quota",
    "in_flight",
    "penalty",
    "key_cap",
    "deny_list",
    "denied_by_rule",
    "cost",
    "missing_key",
    "malformed",
    "misdirected",
    "undecided",
];

/// Counters of one name, each with its labels, in an order that stays. (`Family` has none.)
#[derive(Debug)]
struct Labelled<C>(Vec<(Vec<(&'static str, String)>, C)>);

impl<C: EncodeMetric> EncodeMetric for Labelled<C> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(labels, count)| count.encode(encoder.encode_family(labels)?))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

/// Counters by the value of one label.
fn labelled<C>(label: &'static str, counts: impl IntoIterator<Item = (impl Into<String>, C)>) -> Labelled<C> {
    Labelled(counts.into_iter().map(|(value, count)| (vec![(label, value.into())], count)).collect())
}

/// The denials by a quota.
#[derive(Debug)]
struct Denied {
    dimension: usize,
    tier: Option<usize>,
    quota: usize,
    count: Counter,
}

/// Counters of requests, dimensions, quotas and connections. No label has a part of a request.
#[derive(Debug)]
pub(crate) struct Counts {
    results: [Counter; RESULTS.len()],
    /// By dimension.
    admitted: Vec<Counter>,
    /// By the place of a quota.
    denied: Vec<Denied>,
    /// Connections that are open.
    pub(crate) connections: Gauge<u64, AtomicU64>,
    /// Connections that were one too many.
    pub(crate) turned_away: Counter,
    /// All of them, by name.
    registry: Registry,
}

impl Counts {
    /// All at zero, for the quotas of a policy.
    ///
    /// # Errors
    ///
    /// A quota can't be told to clients.
    pub(crate) fn new(policy: &Policy) -> Result<Self, PolicyError> {
        let dimensions = policy.dimensions();
        let (mut denied, mut denials) = (Vec::new(), Vec::new());
        for (dimension, it) in dimensions.iter().enumerate() {
            let tiers = it.tiers().iter().enumerate().filter(|(_, tier)| !tier.is_unlimited());
            let tiers = tiers.map(|(place, tier)| (Some((place, tier.name())), tier.quotas()));
            for (tier, quotas) in iter::once((None, it.quotas())).chain(tiers) {
                // The names are those of a request in this tier.
                let all = dimensions.iter().enumerate();
                let all = all.map(|(at, other)| (other.name(), if at == dimension { quotas } else { other.quotas() }));
                let before: usize = dimensions[..dimension].iter().map(|other| other.quotas().len()).sum();
                for (quota, policy) in Policies::of_dimensions(all)?.iter().skip(before).take(quotas.len()).enumerate()
                {
                    let of_tier = tier.map(|(_, name)| ("tier", name.to_owned()));
                    let labels = iter::once(("dimension", it.name().to_owned())).chain(of_tier);
                    let labels = labels.chain([("quota", policy.name().to_owned())]).collect();
                    let count = Counter::default();
                    denials.push((labels, count.clone()));
                    denied.push(Denied { dimension, tier: tier.map(|(at, _)| at), quota, count });
                }
            }
        }
        let results: [Counter; RESULTS.len()] = array::from_fn(|_| Counter::default());
        let admitted: Vec<Counter> = dimensions.iter().map(|_| Counter::default()).collect();
        let (connections, turned_away) = (Gauge::default(), Counter::default());
        let mut registry = Registry::with_prefix("tollgate");
        registry.register("requests", "Requests by result", labelled("result", iter::zip(RESULTS, results.clone())));
        let admissions = dimensions.iter().map(|it| it.name()).zip(admitted.clone());
        registry.register("admissions", "Admissions by dimension", labelled("dimension", admissions));
        let help = "Denials by the quota with the longest wait, also those that shadow mode overruled";
        registry.register("denials", help, Labelled(denials));
        registry.register("connections", "Open connections", connections.clone());
        registry.register("connections_turned_away", "Connections beyond the most", turned_away.clone());
        Ok(Self { results, admitted, denied, connections, turned_away, registry })
    }

    /// Counts a request that limits have decided by these keys.
    pub(crate) fn decided(&self, decided: &Decided, keys: &[Option<Key>]) {
        if decided.ruling() == Ruling::Admitted {
            // A dimension in shadow mode may have denied it.
            let denied = decided.decides().map(|(dimension, _)| dimension);
            let admits = |at: usize, key: &Option<Key>| key.is_some() && denied != Some(at);
            let dimensions = self.admitted.iter().zip(keys).enumerate().filter(|(at, (_, key))| admits(*at, key));
            for (_, (count, _)) in dimensions {
                count.inc();
            }
        }
        if let Some((dimension, quota)) = decided.decides() {
            let tier = keys.get(dimension).and_then(|key| key.as_ref()?.tier_place());
            let decides = |it: &&Denied| (it.dimension, it.tier, it.quota) == (dimension, tier, quota);
            for denied in self.denied.iter().filter(decides) {
                denied.count.inc();
            }
        }
        self.result(match decided.ruling() {
            Ruling::Admitted => "admitted",
            Ruling::Uncounted => "uncounted",
            Ruling::Overruled => "overruled",
            Ruling::Denied(kind) => match kind {
                DenialKind::InFlight => "in_flight",
                DenialKind::Penalty => "penalty",
                DenialKind::KeyCap => "key_cap",
                DenialKind::DenyList => "deny_list",
                DenialKind::CostExceedsLimit | DenialKind::ContentExceedsLimit => "cost",
                DenialKind::KeyNotSent | DenialKind::KeyNotProvided => "missing_key",
                DenialKind::KeyMalformed => "malformed",
                DenialKind::Undecided => "undecided",
                _ => "quota",
            },
        });
    }

    /// Counts a request that was not decided.
    pub(crate) fn malformed(&self) {
        self.result("malformed");
    }

    /// Counts a request to a host that is not among those of the server.
    pub(crate) fn misdirected(&self) {
        self.result("misdirected");
    }

    /// Counts a request that lacks a field.
    pub(crate) fn missing_key(&self) {
        self.result("missing_key");
    }

    /// Counts a request with this result.
    pub(crate) fn result(&self, result: &str) {
        if let Some(place) = RESULTS.iter().position(|known| *known == result) {
            self.results[place].inc();
        }
    }

    /// All figures of a server that decides in process.
    ///
    /// Those of a policy with a concurrency limit are the requests in flight, and those that were over
    /// before they were released.
    pub(crate) fn text_in_process(
        &self,
        unknown_tiers: u64,
        of_limiter: &tollgate::Counts,
        held: Option<(u64, u64)>,
    ) -> String {
        let mut others = Others::new(unknown_tiers);
        if let Some((in_flight, overdue)) = held {
            others.gauge("in_flight", "Requests in flight, by their tokens", in_flight);
            others.counter("in_flight_overdue", "Requests in flight that were not released in time", overdue);
        }
        others.gauge("live_keys", "Keys with a live permit", of_limiter.live_keys as u64);
        others.gauge("bytes", "Bytes that the limiter takes", of_limiter.bytes as u64);
        self.text(&others)
    }

    /// All figures of a server that decides on a store.
    #[cfg(feature = "redis")]
    pub(crate) fn text_on_store(&self, unknown_tiers: u64, of_store: &tollgate_redis::StoreCounts) -> String {
        let answered = of_store.admitted_uncounted + of_store.admitted_locally + of_store.denied_locally;
        let results = [
            ("admitted", of_store.admitted),
            ("denied", of_store.denied),
            ("denied_by_cache", of_store.denied_by_cache),
            ("admitted_by_lease", of_store.admitted_by_lease),
            ("admitted_locally", of_store.admitted_locally),
            ("denied_locally", of_store.denied_locally),
            ("admitted_uncounted", of_store.admitted_uncounted),
            ("refused", of_store.unavailable.saturating_sub(answered)),
        ];
        let results = labelled("result", results.map(|(result, count)| (result, ConstCounter::new(count))));
        let mut others = Others::new(unknown_tiers);
        others.0.register("store_requests", "Requests by what the store, or its absence, did", results);
        let help = "Requests without an answer, perhaps charged";
        others.counter("store_perhaps_charged", help, of_store.perhaps_charged);
        let help = "Requests that the store admitted after their client had gone";
        others.counter("store_abandoned", help, of_store.abandoned);
        others.counter("store_calls", "Calls of the store that decided requests", of_store.calls);
        let permits = [
            ("leased", of_store.leased),
            ("perhaps_leased", of_store.perhaps_leased),
            ("given_back", of_store.given_back),
        ];
        let permits = labelled("result", permits.map(|(result, count)| (result, ConstCounter::new(count))));
        others.0.register("store_lease_permits", "Permits taken in advance, by what the store did", permits);
        let help = "Ends of requests in flight that the store did not answer";
        others.counter("store_unreleased", help, of_store.unreleased);
        self.text(&others)
    }

    /// The figures of any server and these, in the text format of Prometheus (version 0.0.4).
    fn text(&self, others: &Others) -> String {
        let mut out = String::new();
        for registry in [&self.registry, &others.0] {
            // Writing to a `String` never fails.
            let _ = prometheus_text::encode(&mut out, registry);
        }
        out
    }
}

/// Figures that others keep, as they are now.
struct Others(Registry);

impl Others {
    fn new(unknown_tiers: u64) -> Self {
        let mut others = Self(Registry::with_prefix("tollgate"));
        others.counter("unknown_tiers", "Values of `tier_by` that name no tier", unknown_tiers);
        others
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.0.register(name, help, ConstCounter::new(count));
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstGauge::new(value));
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use tollgate_policy::Policy;
    use tollgate_redis::StoreCounts;

    use super::Counts;

    const TEXT: &str = r#"# HELP tollgate_unknown_tiers_total Values of `tier_by` that name no tier.
# TYPE tollgate_unknown_tiers_total counter
tollgate_unknown_tiers_total 1
# HELP tollgate_store_requests_total Requests by what the store, or its absence, did.
# TYPE tollgate_store_requests_total counter
tollgate_store_requests_total{result="admitted"} 2
tollgate_store_requests_total{result="denied"} 3
tollgate_store_requests_total{result="denied_by_cache"} 4
tollgate_store_requests_total{result="admitted_by_lease"} 5
tollgate_store_requests_total{result="admitted_locally"} 6
tollgate_store_requests_total{result="denied_locally"} 7
tollgate_store_requests_total{result="admitted_uncounted"} 8
tollgate_store_requests_total{result="refused"} 9
# HELP tollgate_store_perhaps_charged_total Requests without an answer, perhaps charged.
# TYPE tollgate_store_perhaps_charged_total counter
tollgate_store_perhaps_charged_total 10
# HELP tollgate_store_abandoned_total Requests that the store admitted after their client had gone.
# TYPE tollgate_store_abandoned_total counter
tollgate_store_abandoned_total 11
# HELP tollgate_store_calls_total Calls of the store that decided requests.
# TYPE tollgate_store_calls_total counter
tollgate_store_calls_total 12
# HELP tollgate_store_lease_permits_total Permits taken in advance, by what the store did.
# TYPE tollgate_store_lease_permits_total counter
tollgate_store_lease_permits_total{result="leased"} 13
tollgate_store_lease_permits_total{result="perhaps_leased"} 14
tollgate_store_lease_permits_total{result="given_back"} 15
# HELP tollgate_store_unreleased_total Ends of requests in flight that the store did not answer.
# TYPE tollgate_store_unreleased_total counter
tollgate_store_unreleased_total 16
"#;

    #[test]
    fn each_count_of_a_store_has_a_name_of_its_own() {
        let policy =
            Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 1, per = \"1h\" }]").unwrap();
        let mut counts = StoreCounts::default();
        (counts.admitted, counts.denied, counts.denied_by_cache, counts.admitted_by_lease) = (2, 3, 4, 5);
        (counts.admitted_locally, counts.denied_locally, counts.admitted_uncounted) = (6, 7, 8);
        // Of those that the store did not decide, nine had no other answer.
        (counts.unavailable, counts.perhaps_charged, counts.abandoned, counts.calls) = (6 + 7 + 8 + 9, 10, 11, 12);
        (counts.leased, counts.perhaps_leased, counts.given_back, counts.unreleased) = (13, 14, 15, 16);
        let text = Counts::new(&policy).unwrap().text_on_store(1, &counts);
        let start = text.find("# HELP tollgate_unknown_tiers_total").unwrap();
        assert_eq!(&text[start..], TEXT);
    }
}
