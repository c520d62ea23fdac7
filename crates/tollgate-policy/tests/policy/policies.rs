//! The policies of `examples/policies`, each played.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate::{DenialReason, JointLimiter, MockClock};
use tollgate_policy::{Asked, Key, Policy, RequestLimiter, Value};

/// The policies that a test plays.
const PLAYED: [&str; 12] = [
    "ai-gateway",
    "api-tiers",
    "behind-cdn",
    "crawlers",
    "endpoint-off",
    "exports",
    "internal-networks",
    "login",
    "scanners",
    "shadow",
    "tenants",
    "webhooks",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies")
}

/// A limiter of an example, and its clock.
struct Play {
    limiter: RequestLimiter<JointLimiter<[Key], MockClock>>,
    clock: MockClock,
}

/// The fields of a request by their names. A client is its peer, and what its proxy says.
type Fields<'a> = &'a [(&'a str, &'a str)];

impl Play {
    fn of(name: &str) -> Self {
        assert!(PLAYED.contains(&name));
        let policy = Policy::load(folder().join(format!("{name}.toml"))).unwrap_or_else(|error| panic!("{error}"));
        let clock = MockClock::new();
        clock.set(1_800_000_000_000_000_000);
        let limiter = policy.request_limiter_with(|builder| builder.clock(clock.clone())).expect("a limiter");
        Self { limiter, clock }
    }

    fn after(&self, seconds: u64) -> &Self {
        self.clock.advance(Duration::from_secs(seconds));
        self
    }

    /// `+` admitted, `-` denied by a limit, `x` denied by a rule.
    fn ask(&self, fields: Fields<'_>) -> char {
        let value = |name: &String| {
            let of = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| (*value).to_owned());
            match name.as_str() {
                "client" => {
                    let client = self.limiter.requests().client();
                    let told = of("proxy says");
                    Some(Value::client(client, of("client")?.as_bytes(), told).expect("an address"))
                }
                name => of(name).map(Value::from),
            }
        };
        let values = self.limiter.fields().iter().map(value).collect();
        match self.limiter.ask(values) {
            Asked::Denied { .. } => 'x',
            Asked::Limits(keys) if keys.iter().any(Option::is_some) => {
                let decision = self.limiter.limiter().try_acquire(&keys[..]).expect("keys");
                if decision.is_admitted() { '+' } else { '-' }
            }
            Asked::Admitted { .. } | Asked::Limits(_) => '+',
            Asked::Lacks { field } => panic!("no {}", self.limiter.fields()[field]),
        }
    }

    /// How many of so many such requests at once are admitted.
    fn admits(&self, of: usize, fields: Fields<'_>) -> usize {
        (0..of).filter(|_| self.ask(fields) == '+').count()
    }
}

#[test]
fn each_policy_is_played() {
    let files = std::fs::read_dir(folder()).expect("the folder").map(|file| file.expect("a file").path());
    let policies = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let names: BTreeSet<_> =
        policies.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert_eq!(names, PLAYED.map(str::to_owned).into());
}

#[test]
fn a_gateway_has_a_budget_of_a_calendar_month() {
    let play = Play::of("ai-gateway");
    let use_up = |key: &str, model: &str, tokens| {
        let values = play.limiter.fields().iter().map(|field| match field.as_str() {
            "key" => Some(Value::from(key)),
            _ => Some(Value::from(model)),
        });
        let Asked::Limits(keys) = play.limiter.ask(values.collect()) else { panic!("there is no rule") };
        play.limiter.limiter().try_acquire_n(&keys[..], tokens).expect("keys").is_admitted()
    };
    // The 15th of January 2027, at nine in the morning of Berlin.
    assert!(use_up("acme", "small", 900_000) && !use_up("acme", "small", 200_000));
    assert!(use_up("acme", "large", 100_000) && !use_up("acme", "large", 1));
    assert!(use_up("globex", "large", 100_000) && !use_up("globex", "large", 1));
    assert!((0..10).all(|_| use_up("team-research", "large", 100_000)));
    // A second before and at midnight of that day in Berlin, and of that month.
    play.after(15 * 3_600 - 1);
    assert!(!use_up("globex", "large", 1));
    play.after(1);
    assert!(use_up("globex", "large", 100_000) && !use_up("acme", "small", 1));
    play.after(16 * 86_400 - 1);
    assert!(!use_up("acme", "small", 1));
    play.after(1);
    assert!(use_up("acme", "small", 1_000_000));
}

#[test]
fn log_ins_are_few_for_a_client_and_for_an_account() {
    let play = Play::of("login");
    let log_in = |client: &str, account: &str| {
        let fields = [("client", client), ("account", account), ("path", "/login"), ("method", "POST")];
        play.ask(&fields)
    };
    assert_eq!(play.admits(20, &[("client", "192.0.2.1"), ("path", "/login"), ("method", "GET")]), 20);
    let attempts: String = (0..14).map(|_| log_in("192.0.2.1", "alice")).collect();
    assert_eq!(attempts, "+++++---------");
    // Others try the same account.
    let others: String = (2..12).map(|at| log_in(&format!("192.0.2.{at}"), "alice")).collect();
    assert_eq!(others, "+++++-----");
    // The client has not yet been denied ten times.
    play.after(60);
    assert_eq!(log_in("192.0.2.1", "bob"), '+');
    assert_eq!((0..12).map(|_| log_in("192.0.2.1", "bob")).collect::<String>(), "++++--------");
    play.after(600);
    assert_eq!(log_in("192.0.2.1", "carol"), '-', "blocked");
    play.after(3_600);
    assert_eq!(log_in("192.0.2.1", "carol"), '+');
}

#[test]
fn a_scanner_is_blocked_for_longer_each_time() {
    let play = Play::of("scanners");
    let guess: Fields<'_> = &[("client", "192.0.2.1"), ("path", "/admin/setup")];
    // Twenty of a minute, and ten denials.
    let guesses = |many: usize| play.admits(many, guess);
    for minutes in [5, 20, 80, 320, 1_280, 1_440, 1_440] {
        assert_eq!(guesses(40), 20);
        play.after(minutes * 60 - 1);
        assert_eq!(guesses(1), 0, "blocked for {minutes} minutes");
        play.after(1);
    }
    assert_eq!(play.admits(5, &[("client", "192.0.2.1"), ("path", "/")]), 5, "not what it looks for");
    // After a quiet week a block is the first again.
    play.after(7 * 86_400);
    assert_eq!(guesses(40), 20);
    play.after(300);
    assert_eq!(guesses(1), 1);
}

#[test]
fn an_api_has_three_plans() {
    let play = Play::of("api-tiers");
    let of_plan = |plan| play.admits(2_000, &[("customer", "acme"), ("header.x-plan", plan)]);
    assert_eq!([of_plan("pro"), of_plan("enterprise"), of_plan("gold")], [100, 1_000, 20]);
    assert_eq!(play.limiter.requests().unknown_tiers(), 2_000);
    assert_eq!(play.admits(5, &[("customer", "acme")]), 0, "the free plan, which the unknown one has used up");
    assert_eq!(play.admits(30, &[("customer", "globex")]), 20);
    play.after(10);
    assert_eq!([of_plan("pro"), of_plan("free")], [100, 10]);
}

#[test]
fn crawlers_have_limits_by_their_networks() {
    let play = Play::of("crawlers");
    assert_eq!(play.ask(&[("client", "192.0.2.7"), ("path", "/robots.txt")]), 'x');
    assert_eq!(play.ask(&[("client", "2001:db8:bad:7::1"), ("path", "/")]), 'x');
    assert_eq!(play.admits(70, &[("client", "203.0.113.1"), ("path", "/")]), 60);
    assert_eq!(play.admits(70, &[("client", "203.0.113.1"), ("path", "/robots.txt")]), 70);
    assert_eq!(play.admits(70, &[("client", "198.51.100.9"), ("path", "/")]), 20);
    play.after(1);
    assert_eq!(play.admits(70, &[("client", "198.51.100.9"), ("path", "/")]), 10);
}

#[test]
fn tenants_share_tiers() {
    let play = Play::of("tenants");
    let admits = |tenant, path| play.admits(2_000, &[("tenant", tenant), ("path", path)]);
    assert_eq!(["umbrella", "acme", "initech"].map(|tenant| admits(tenant, "/")), [100, 1_000, 10]);
    assert_eq!(["umbrella", "acme"].map(|tenant| admits(tenant, "/export/all")), [2, 2]);
}

#[test]
fn a_new_limit_is_tried_out_beside_the_one_in_force() {
    let play = Play::of("shadow");
    assert_eq!(play.admits(150, &[("client", "192.0.2.1")]), 100);
    assert_eq!(play.limiter.limiter().counts().overruled, 80);
}

#[test]
fn a_cdn_is_believed_and_others_are_not() {
    let play = Play::of("behind-cdn");
    let by = |peer, told| play.admits(150, &[("client", peer), ("proxy says", told)]);
    assert_eq!(by("192.0.2.9", "203.0.113.7"), 100);
    assert_eq!(by("2001:db8:cd0::1", "203.0.113.7"), 0);
    assert_eq!(by("203.0.113.7", "198.51.100.1"), 0, "its own address counts");
    assert_eq!(by("192.0.2.9", "203.0.113.8"), 100);
}

#[test]
fn own_networks_are_not_limited_but_by_what_all_share() {
    let play = Play::of("internal-networks");
    let from = |peer, told, path| play.admits(150, &[("client", peer), ("proxy says", told), ("path", path)]);
    assert_eq!(from("10.9.0.1", "", "/"), 150);
    assert_eq!(from("10.0.0.5", "203.0.113.7", "/"), 100);
    assert_eq!(from("10.0.0.5", "192.168.7.7", "/"), 150);
    assert_eq!(from("10.9.0.1", "", "/reports/may"), 3);
    assert_eq!(from("203.0.113.9", "", "/reports/may"), 0);
    assert_eq!(from("203.0.113.9", "", "/reports/june"), 3);
}

#[test]
fn an_endpoint_is_off_but_for_some() {
    let play = Play::of("endpoint-off");
    let ask = |client, path| play.ask(&[("client", client), ("path", path)]);
    assert_eq!([ask("203.0.113.7", "/import"), ask("203.0.113.7", "//import/")], ['x', 'x']);
    assert_eq!([ask("10.7.1.1", "/import"), ask("203.0.113.7", "/")], ['+', '+']);
}

#[test]
fn exports_are_few_at_a_time_for_a_user_and_for_a_tenant() {
    let play = Play::of("exports");
    let begin = |user: &str, tenant: &str| {
        let values = play.limiter.fields().iter().map(|field| Some(if field == "user" { user } else { tenant }));
        play.limiter.try_enter(values.map(|value| value.map(|it| it.to_owned().into())).collect())
    };
    let begin_two = |user: &str, tenant: &str| [(); 2].map(|()| begin(user, tenant).expect("a place"));
    let of_alice = begin_two("alice", "acme");
    let denial = begin("alice", "acme").unwrap_err().denial().expect("a denial");
    assert_eq!((denial.reason(), denial.dimension()), (DenialReason::InFlight, 0));
    let of_others = [begin_two("bob", "acme"), begin_two("carol", "umbrella")];
    let fifth = begin("dave", "acme").expect("a place");
    let denial = begin("dave", "acme").unwrap_err().denial().expect("a denial");
    assert_eq!((denial.reason(), denial.dimension()), (DenialReason::InFlight, 1));
    // An export that ends makes room.
    drop(of_alice);
    let of_dave = begin("dave", "acme").expect("a place");
    drop((of_others, fifth, of_dave));
    let large: Vec<_> = (0..10).flat_map(|user| begin_two(&format!("user {user}"), "initech")).collect();
    assert!(begin("alice", "initech").is_err());
    drop(large);
    // Of the day, two are used up: denied ones are not charged.
    let day = (0..30).take_while(|_| begin("alice", "acme").is_ok());
    assert_eq!(day.count(), 18);
    play.after(86_400);
    assert!(begin("alice", "acme").is_ok());
}

#[test]
fn a_sender_of_webhooks_is_even_and_has_a_day() {
    let play = Play::of("webhooks");
    let to = |receiver| play.admits(50, &[("receiver", receiver)]);
    assert_eq!([to("hooks.example"), to("hooks.small.example")], [10, 1]);
    play.after(1);
    assert_eq!([to("hooks.example"), to("hooks.small.example")], [5, 0]);
    play.after(4);
    assert_eq!([to("hooks.example"), to("hooks.small.example")], [10, 1]);
    let mut sent = 25;
    while sent < 10_000 {
        play.after(2);
        sent += to("hooks.example");
    }
    assert_eq!(sent, 10_000);
    play.after(60);
    assert_eq!(to("hooks.example"), 0, "the day is used up");
    play.after(86_400);
    assert_eq!(to("hooks.example"), 10);
}
