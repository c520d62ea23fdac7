//! [`Counts`]: what was decided, for `/metrics`.

use core::fmt::Write as _;
use core::iter;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The denials by a quota.
#[derive(Debug)]
struct Denied {
    dimension: usize,
    tier: Option<usize>,
    quota: usize,
    /// Its dimension's name, that of its tier, and its own.
    labels: Vec<(&'static str, String)>,
    count: AtomicU64,
}

/// Counters of requests, dimensions, quotas and connections. No label has a part of a request.
#[derive(Debug)]
pub(crate) struct Counts {
    results: [AtomicU64; RESULTS.len()],
    /// By dimension.
    admitted: Vec<(String, AtomicU64)>,
    /// By the place of a quota.
    denied: Vec<Denied>,
    /// Connections that are open.
    pub(crate) connections: AtomicU64,
    /// Connections that were one too many.
    pub(crate) turned_away: AtomicU64,
}

impl Counts {
    /// All at zero, for the quotas of a policy.
    ///
    /// # Errors
    ///
    /// A quota can't be told to clients.
    pub(crate) fn new(policy: &Policy) -> Result<Self, PolicyError> {
        let zero = || AtomicU64::new(0);
        let dimensions = policy.dimensions();
        let mut denied = Vec::new();
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
                    denied.push(Denied { dimension, tier: tier.map(|(at, _)| at), quota, labels, count: zero() });
                }
            }
        }
        Ok(Self {
            results: [const { AtomicU64::new(0) }; RESULTS.len()],
            admitted: dimensions.iter().map(|it| (it.name().to_owned(), zero())).collect(),
            denied,
            connections: zero(),
            turned_away: zero(),
        })
    }

    /// Counts a request that limits have decided by these keys.
    pub(crate) fn decided(&self, decided: &Decided, keys: &[Option<Key>]) {
        if decided.ruling() == Ruling::Admitted {
            // A dimension in shadow mode may have denied it.
            let denied = decided.decides().map(|(dimension, _)| dimension);
            let admits = |at: usize, key: &Option<Key>| key.is_some() && denied != Some(at);
            let dimensions = self.admitted.iter().zip(keys).enumerate().filter(|(at, (_, key))| admits(*at, key));
            dimensions.for_each(|(_, ((_, count), _))| add(count));
        }
        if let Some((dimension, quota)) = decided.decides() {
            let tier = keys.get(dimension).and_then(|key| key.as_ref()?.tier_place());
            let decides = |it: &&Denied| (it.dimension, it.tier, it.quota) == (dimension, tier, quota);
            self.denied.iter().filter(decides).for_each(|it| add(&it.count));
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
            add(&self.results[place]);
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
        let mut out = self.text(unknown_tiers);
        if let Some((in_flight, overdue)) = held {
            let help = "Requests in flight that were not released in time.";
            for (name, kind, help, value) in [
                ("tollgate_in_flight", "gauge", "Requests in flight, by their tokens.", in_flight),
                ("tollgate_in_flight_overdue_total", "counter", help, overdue),
            ] {
                head(&mut out, name, kind, help);
                row(&mut out, name, &[], value);
            }
        }
        for (name, help, value) in [
            ("tollgate_live_keys", "Keys with a live permit.", of_limiter.live_keys),
            ("tollgate_bytes", "Bytes that the limiter takes.", of_limiter.bytes),
        ] {
            head(&mut out, name, "gauge", help);
            row(&mut out, name, &[], value as u64);
        }
        out
    }

    /// All figures of a server that decides on a store.
    #[cfg(feature = "redis")]
    pub(crate) fn text_on_store(&self, unknown_tiers: u64, of_store: &tollgate_redis::StoreCounts) -> String {
        let mut out = self.text(unknown_tiers);
        let answered = of_store.admitted_uncounted + of_store.admitted_locally + of_store.denied_locally;
        head(&mut out, "tollgate_store_requests_total", "counter", "Requests by what the store, or its absence, did.");
        for (result, value) in [
            ("admitted", of_store.admitted),
            ("denied", of_store.denied),
            ("denied_by_cache", of_store.denied_by_cache),
            ("admitted_by_lease", of_store.admitted_by_lease),
            ("admitted_locally", of_store.admitted_locally),
            ("denied_locally", of_store.denied_locally),
            ("admitted_uncounted", of_store.admitted_uncounted),
            ("refused", of_store.unavailable.saturating_sub(answered)),
        ] {
            row(&mut out, "tollgate_store_requests_total", &[("result", result)], value);
        }
        let (name, help) = ("tollgate_store_perhaps_charged_total", "Requests without an answer, perhaps charged.");
        head(&mut out, name, "counter", help);
        row(&mut out, name, &[], of_store.perhaps_charged);
        out
    }

    /// The figures of any server, in the text format of Prometheus (version 0.0.4).
    fn text(&self, unknown_tiers: u64) -> String {
        let mut out = String::new();
        head(&mut out, "tollgate_requests_total", "counter", "Requests by result.");
        for (result, count) in RESULTS.iter().zip(&self.results) {
            row(&mut out, "tollgate_requests_total", &[("result", result)], load(count));
        }
        head(&mut out, "tollgate_admissions_total", "counter", "Admissions by dimension.");
        for (dimension, count) in &self.admitted {
            row(&mut out, "tollgate_admissions_total", &[("dimension", dimension)], load(count));
        }
        let help = "Denials by the quota with the longest wait, also those that shadow mode overruled.";
        head(&mut out, "tollgate_denials_total", "counter", help);
        for Denied { labels, count, .. } in &self.denied {
            let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
            row(&mut out, "tollgate_denials_total", &labels, load(count));
        }
        let (name, help) = ("tollgate_unknown_tiers_total", "Values of `tier_by` that name no tier.");
        head(&mut out, name, "counter", help);
        row(&mut out, name, &[], unknown_tiers);
        let turned_away = "Connections beyond the most.";
        for (name, kind, help, value) in [
            ("tollgate_connections", "gauge", "Open connections.", load(&self.connections)),
            ("tollgate_connections_turned_away_total", "counter", turned_away, load(&self.turned_away)),
        ] {
            head(&mut out, name, kind, help);
            row(&mut out, name, &[], value);
        }
        out
    }
}

// Writing to a `String` never fails.

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn row(out: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    out.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{label}=\"{value}\"", if at == 0 { "{" } else { "," });
    }
    let _ = writeln!(out, "{} {value}", if labels.is_empty() { "" } else { "}" });
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
