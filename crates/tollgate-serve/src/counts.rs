//! [`Counts`]: what was decided, for `/metrics`.

use core::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_http::middleware::Ruling;
use tollgate_http::{DenialKind, Policies};
use tollgate_policy::Policy;

use crate::ask::Decided;

/// The results of requests, as `/metrics` calls them.
const RESULTS: [&str; 12] = [
    "admitted",
    "overruled",
    "uncounted",
    "quota",
    "penalty",
    "key_cap",
    "deny_list",
    "cost",
    "missing_key",
    "malformed",
    "misdirected",
    "undecided",
];

/// Counters of requests, dimensions, quotas and connections. No label has a part of a request.
#[derive(Debug)]
pub(crate) struct Counts {
    results: [AtomicU64; RESULTS.len()],
    /// By dimension.
    admitted: Vec<(String, AtomicU64)>,
    /// By the place of a quota, with its dimension's name and its own.
    denied: Vec<((usize, usize), [String; 2], AtomicU64)>,
    /// Connections that are open.
    pub(crate) connections: AtomicU64,
    /// Connections that were one too many.
    pub(crate) turned_away: AtomicU64,
}

impl Counts {
    /// All at zero, for the quotas of a policy, which have these names.
    pub(crate) fn new(policy: &Policy, names: &Policies) -> Self {
        let zero = || AtomicU64::new(0);
        let places = policy.dimensions().iter().enumerate();
        let places =
            places.flat_map(|(place, it)| (0..it.quotas().len()).map(move |quota| ((place, quota), it.name())));
        let denied = places.zip(&**names);
        let denied = denied.map(|((at, dimension), it)| (at, [dimension, it.name()].map(str::to_owned), zero()));
        Self {
            results: [const { AtomicU64::new(0) }; RESULTS.len()],
            admitted: policy.dimensions().iter().map(|it| (it.name().to_owned(), zero())).collect(),
            denied: denied.collect(),
            connections: zero(),
            turned_away: zero(),
        }
    }

    /// Counts a request that was decided, in the dimensions that were asked.
    pub(crate) fn decided(&self, decided: &Decided, asked: impl Iterator<Item = bool>) {
        if decided.ruling() == Ruling::Admitted {
            self.admitted.iter().zip(asked).filter(|(_, asked)| *asked).for_each(|((_, count), _)| add(count));
        }
        if let Some((.., count)) = self.denied.iter().find(|(place, ..)| Some(*place) == decided.decides()) {
            add(count);
        }
        self.result(match decided.ruling() {
            Ruling::Admitted => "admitted",
            Ruling::Uncounted => "uncounted",
            Ruling::Overruled => "overruled",
            Ruling::Denied(kind) => match kind {
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

    fn result(&self, result: &str) {
        if let Some(place) = RESULTS.iter().position(|known| *known == result) {
            add(&self.results[place]);
        }
    }

    /// All figures of a server that decides in process.
    pub(crate) fn text_in_process(&self, of_limiter: &tollgate::Counts) -> String {
        let mut out = self.text();
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
    pub(crate) fn text_on_store(&self, of_store: &tollgate_redis::StoreCounts) -> String {
        let mut out = self.text();
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
    fn text(&self) -> String {
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
        for (_, [dimension, quota], count) in &self.denied {
            let labels = [("dimension", dimension.as_str()), ("quota", quota)];
            row(&mut out, "tollgate_denials_total", &labels, load(count));
        }
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
