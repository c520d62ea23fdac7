//! A corpus of policies and requests that every way to limit by a policy file decides alike: each
//! feature of a file alone and in pairs.

use core::fmt;
use core::net::IpAddr;
use std::time::Duration;

use tollgate::MockClock;
use tollgate_policy::{Asked, Policy, Requests, Value};

/// The header field with the field `user`.
pub const USER: &str = "x-tollgate-user";
/// The header field that proxies write.
pub const FORWARDED: &str = "x-forwarded-for";
/// The header field that names a tier.
pub const PLAN: &str = "x-plan";

/// A request, as a service gets it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Since 1970.
    pub at: Duration,
    pub peer: IpAddr,
    pub method: &'static str,
    /// The path and the query.
    pub target: &'static str,
    pub host: &'static str,
    pub user: &'static str,
    pub forwarded: Option<&'static str>,
    pub plan: Option<&'static str>,
}

/// The decision of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Admitted,
    /// Denied by a limit.
    Denied,
    /// Denied by a rule.
    ByRule,
}

impl Request {
    /// The time in nanoseconds since 1970.
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.at.as_nanos()).expect("some years")
    }

    /// The decision that the status of an answer to it tells.
    pub fn answered(&self, status: u16) -> Answer {
        match status {
            200 => Answer::Admitted,
            429 => Answer::Denied,
            403 => Answer::ByRule,
            status => panic!("{status}: {self:?}"),
        }
    }
}

/// A policy of the corpus.
pub struct Case {
    /// The features.
    pub features: Vec<&'static str>,
    pub text: String,
    pub policy: Policy,
}

impl Case {
    /// Whether it has one of these features.
    pub fn has(&self, features: &[&str]) -> bool {
        self.features.iter().any(|feature| features.contains(feature))
    }

    /// Whether a store can keep it: no penalty and no shadow mode.
    pub fn is_for_a_store(&self) -> bool {
        !self.has(&["a penalty", "all in shadow mode", "a dimension in shadow mode"])
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}\n{}", self.features, self.text)
    }
}

/// The parts of a policy that a feature adds to.
#[derive(Default)]
struct Draft {
    head: String,
    client: String,
    rules: String,
    /// The quota of the dimension of clients, if it is another.
    quota: Option<&'static str>,
    /// More fields of that dimension, and its tiers.
    fields: String,
    tiers: String,
    dimensions: String,
}

type Feature = (&'static str, fn(&mut Draft));

/// Each has an effect on some of the [`requests`]. So none is a concurrency limit: all ways could ask one,
/// but for `replay`, which refuses it, and a request that is over at once is denied by none.
const FEATURES: [Feature; 19] = [
    ("a token bucket", |it| {
        it.quota = Some("algorithm = \"token-bucket\", capacity = 4, refill = 1, per = \"45s\"");
    }),
    ("windows with a phase", |it| {
        it.quota = Some("algorithm = \"fixed-window\", limit = 3, per = \"2m\", phase = \"17s\"");
    }),
    ("a window of the calendar", |it| {
        it.quota = Some("algorithm = \"fixed-window\", limit = 5, per = \"day\", zone = \"America/Los_Angeles\"");
    }),
    ("two quotas", |it| it.quota = Some("limit = 2, per = \"30s\" }, { limit = 9, per = \"20m\"")),
    ("all in shadow mode", |it| it.head += "shadow = true\n"),
    ("behind proxies", |it| it.client += "trusted_proxies = [\"10.0.0.0/8\"]\n"),
    ("wider IPv6 networks", |it| it.client += "ipv6_prefix = 48\n"),
    ("a rule that admits", |it| it.rules += "[[rule]]\nmatch = { path = \"/health\" }\naction = \"admit\"\n"),
    ("a rule that denies", |it| {
        it.rules += "[[rule]]\nmatch = { client = [\"192.0.2.64/26\", \"2001:db8:bad::/48\"] }\naction = \"deny\"\n";
    }),
    ("an endpoint that is off", |it| {
        it.rules += "[[rule]]\nmatch = { path = \"/export/{*all}\", method = [\"POST\"] }\naction = \"deny\"\n";
    }),
    ("a match", |it| it.fields += "match = { method = \"POST\" }\n"),
    ("tiers by a value", |it| {
        it.fields += "tier_by = \"header.x-plan\"\n";
        it.tiers += "[[dimension.tier]]\nname = \"pro\"\nquota = [{ limit = 8, per = \"10m\" }]\n";
    }),
    ("a tier by a match", |it| {
        it.tiers += "[[dimension.tier]]\nname = \"login\"\nmatch = { path = \"/login\" }\n\
                     quota = [{ limit = 1, per = \"5m\" }]\n";
    }),
    ("an unlimited tier", |it| {
        it.tiers +=
            "[[dimension.tier]]\nname = \"internal\"\nmatch = { client = \"172.16.0.0/12\" }\nunlimited = true\n";
    }),
    ("a tier by a host", |it| {
        it.tiers += "[[dimension.tier]]\nname = \"partner\"\nmatch = { host = [\"*.partner.example\"] }\n\
                     quota = [{ algorithm = \"token-bucket\", capacity = 2, refill = 1, per = \"2m\" }]\n";
    }),
    ("another dimension", |it| {
        it.dimensions += "[[dimension]]\nname = \"user\"\nquota = [{ limit = 7, per = \"10m\" }]\n";
    }),
    ("a dimension with a match", |it| {
        it.dimensions += "[[dimension]]\nname = \"writes\"\nkey = [\"user\", \"path\"]\n\
                          match = { method = \"POST\", header.x-plan = [\"pro\", \"gold\"] }\n\
                          quota = [{ limit = 1, per = \"10m\" }]\n";
    }),
    ("a dimension in shadow mode", |it| {
        it.dimensions += "[[dimension]]\nname = \"new\"\nkey = [\"user\"]\nshadow = true\n\
                          quota = [{ limit = 1, per = \"10m\" }]\n";
    }),
    ("a penalty", |it| {
        // Seven minutes, then 21, and then half an hour.
        it.fields += "penalty = { denials = 2, within = \"5m\", blocked_for = \"7m\", factor = 3, longest = \"30m\", \
                      quiet_for = \"1h\" }\n";
    }),
];

impl Draft {
    fn text(&self) -> String {
        let quota = self.quota.unwrap_or("limit = 4, per = \"5m\"");
        let client = if self.client.is_empty() { String::new() } else { format!("[client]\n{}", self.client) };
        format!(
            "network_limits = false\n{}{client}{}[[dimension]]\nname = \"client\"\nquota = [{{ {quota} }}]\n{}{}{}",
            self.head, self.rules, self.fields, self.tiers, self.dimensions
        )
    }
}

/// Each feature alone, each pair of features, and none.
pub fn cases() -> Vec<Case> {
    let case = |features: &[&Feature]| {
        let mut draft = Draft::default();
        features.iter().for_each(|(_, add)| add(&mut draft));
        let text = draft.text();
        let policy = Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Case { features: features.iter().map(|(name, _)| *name).collect(), text, policy }
    };
    let mut cases = vec![case(&[])];
    for (at, one) in FEATURES.iter().enumerate() {
        cases.push(case(&[one]));
        cases.extend(FEATURES[..at].iter().map(|other| case(&[other, one])));
    }
    cases
}

/// A network of clients: some addresses, and what a proxy says.
const CLIENTS: [(&str, Option<&str>); 13] = [
    ("192.0.2.1", None),
    ("::ffff:192.0.2.1", None),
    ("192.0.2.1", Some("198.51.100.7")),
    ("192.0.2.77", None),
    ("10.0.0.2", Some("198.51.100.7")),
    ("10.0.0.3", Some("203.0.113.99, 198.51.100.7")),
    ("10.0.0.2", Some("2001:db8:1:2::5")),
    ("2001:db8:1:2::5", None),
    ("2001:db8:1:2:ffff::6", None),
    ("2001:db8:1:3::7", None),
    ("2001:db8:bad:1::1", None),
    ("172.16.5.5", None),
    ("10.0.0.2", Some("172.16.5.5")),
];

/// The requests of the corpus, from a fixed seed, in the order of time.
pub fn requests() -> Vec<Request> {
    const TARGETS: [&str; 7] =
        ["/", "/login", "//x/../%6cogin/", "/health?deep=1", "/export/7", "/export/8?all=1", "/a/b"];
    const HOSTS: [&str; 3] = ["a.example", "eu.partner.example", "us.PARTNER.example:8443"];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    // Four minutes before midnight in Los Angeles.
    let mut at = Duration::from_secs(1_800_000_000 - 240);
    let request = |_| {
        at += Duration::from_millis([0, 1, 700, 3_000, 11_000][draw(5)]);
        let (peer, forwarded) = CLIENTS[draw(CLIENTS.len())];
        Request {
            at,
            peer: peer.parse().expect("an address"),
            method: ["GET", "POST"][draw(2)],
            target: TARGETS[draw(TARGETS.len())],
            host: HOSTS[draw(HOSTS.len())],
            user: ["alice", "bob", "carol"][draw(3)],
            forwarded,
            plan: [None, Some("pro"), Some("gold")][draw(3)],
        }
    };
    (0..160).map(request).collect()
}

/// The value of a field of a request.
pub fn value(request: &Request, field: &str, requests: &Requests) -> Option<Value<'static>> {
    let text = match field {
        "client" => {
            let (peer, lines) = (request.peer.to_string(), request.forwarded);
            let client = Value::client(requests.client(), peer.as_bytes(), lines);
            return Some(client.expect("an address"));
        }
        "method" => request.method,
        "path" => request.target.split('?').next().expect("a path"),
        "host" => request.host,
        "user" => request.user,
        "header.x-plan" => request.plan?,
        field => panic!("no request has {field}"),
    };
    Some(text.to_owned().into())
}

/// The answers of a limiter in process, which is asked with the values of each request.
pub fn in_process(policy: &Policy, requests: &[Request]) -> Vec<Answer> {
    let clock = MockClock::new();
    let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).expect("a limiter");
    let answer = |request: &Request| {
        clock.set(request.nanos());
        let values = limiter.fields().iter().map(|field| value(request, field, limiter.requests())).collect();
        match limiter.ask(values) {
            Asked::Admitted { .. } => Answer::Admitted,
            Asked::Denied { .. } => Answer::ByRule,
            Asked::Limits(keys) if keys.iter().all(Option::is_none) => Answer::Admitted,
            Asked::Limits(keys) => match limiter.limiter().try_acquire(&keys[..]) {
                Ok(decision) if decision.is_admitted() => Answer::Admitted,
                Ok(_) => Answer::Denied,
                Err(error) => panic!("{error}"),
            },
            Asked::Lacks { field } => panic!("a request lacks {}", limiter.fields()[field]),
        }
    };
    requests.iter().map(answer).collect()
}

/// Checks that this way decides each request of each policy as the limiter in process does, but those
/// policies that it can't keep. Returns how many were played.
pub fn check(can_keep: impl Fn(&Case) -> bool, decide: impl Fn(&Policy, &[Request]) -> Vec<Answer>) -> usize {
    let requests = requests();
    let mut played = 0;
    for case in cases().iter().filter(|case| can_keep(case)) {
        let (expected, decided) = (in_process(&case.policy, &requests), decide(&case.policy, &requests));
        assert_eq!(decided.len(), expected.len());
        for (at, (decided, expected)) in decided.iter().zip(&expected).enumerate() {
            assert_eq!(decided, expected, "request {at}: {:?} by {case:?}", requests[at]);
        }
        played += 1;
    }
    played
}
