//! Every error once, and every kind of quota there and back.

use core::time::Duration;

use tollgate::{
    Algorithm, AtKeyCap, BuildError, Calendar, ChangeError, DurationError, MAX_DIMENSIONS, MAX_KEY_CAP, MockClock,
    Penalty, PenaltyError, Quota, QuotaError, Zone, ZoneError,
};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A policy with one dimension of these quotas, each an inline table.
fn with_quotas(quotas: &str) -> String {
    format!("[[dimension]]\nname = \"user\"\nquota = [{quotas}]")
}

/// Line, column and problem.
fn refused(text: &str) -> (usize, usize, PolicyProblem) {
    let error = Policy::from_toml(text).expect_err(text);
    let shown = error.to_string();
    let place = format!("line {}, column {}: ", error.line(), error.column());
    assert!(shown.starts_with(&place) && shown.len() > place.len() + 8, "{shown}");
    (error.line(), error.column(), error.problem().clone())
}

/// What the parser says of a text that is refused at that line.
fn words(text: &str, line: usize) -> String {
    match refused(text) {
        (at, _, PolicyProblem::Toml { message }) if at == line => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_kind_of_quota_is_read_and_printed_and_read() {
    let minute = Duration::from_secs(60);
    let cases = [
        (r#"{ limit = 10, per = "1s" }"#, Quota::per_second(10)),
        (r#"{ name = "user 1/s", limit = 10, per = "1s" }"#, Quota::per_second(10).named("user 1/s")),
        (
            r#"{ algorithm = "token-bucket", name = "b", capacity = 20, refill = 5, per = "1s" }"#,
            Quota::token_bucket(20, 5, SECOND).named("b"),
        ),
        (r#"{ algorithm = "sliding-window-log", limit = 1, per = "1ns" }"#, Quota::new(1, Duration::from_nanos(1))),
        (
            r#"{ algorithm = "token-bucket", capacity = 20, refill = 5, per = "1s" }"#,
            Quota::token_bucket(20, 5, SECOND),
        ),
        (
            r#"{ algorithm = "token-bucket", capacity = 20, refill = 5, per = "1s", start = 0 }"#,
            Quota::token_bucket(20, 5, SECOND).starting_with(0),
        ),
        (
            r#"{ algorithm = "leaky-bucket", capacity = 3, leak = 7, per = "1h30m" }"#,
            Quota::leaky_bucket(3, 7, Duration::from_secs(5400)),
        ),
        (
            r#"{ algorithm = "leaky-queue", leak = 10, per = "1s", max_delay = "500ms" }"#,
            Quota::leaky_queue(10, SECOND, Duration::from_millis(500)),
        ),
        (
            r#"{ algorithm = "leaky-queue", leak = 10, per = "1s", max_delay = "0s" }"#,
            Quota::leaky_queue(10, SECOND, Duration::ZERO),
        ),
        (r#"{ algorithm = "fixed-window", limit = 50, per = "1m" }"#, Quota::fixed_window(50, minute)),
        (
            r#"{ algorithm = "fixed-window", limit = 50, per = "1m", phase = "40s" }"#,
            Quota::fixed_window(50, minute).aligned(Duration::from_secs(40)),
        ),
        (r#"{ algorithm = "fixed-window", limit = 50, per = "week" }"#, Quota::calendar(50, Calendar::Week, Zone::UTC)),
        #[cfg(feature = "calendar")]
        (
            r#"{ name = "tokens", algorithm = "fixed-window", zone = "europe/berlin", per = "month", limit = 50 }"#,
            Quota::calendar(50, Calendar::Month, Zone::named("Europe/Berlin").unwrap()).named("tokens"),
        ),
        (r#"{ algorithm = "sliding-counter", limit = 50, per = "1m" }"#, Quota::sliding_counter(50, minute)),
        (
            r#"{ algorithm = "warm-up", limit = 5, rate = 2, per = "1s", warm_up = "4s" }"#,
            Quota::warm_up(5, 2, SECOND, 4 * SECOND),
        ),
        (
            r#"{ algorithm = "quantised-log", limit = 50, per = "1m", resolution = "1s" }"#,
            Quota::quantised_log(50, minute, Duration::from_secs(1)),
        ),
        (
            r#"{ algorithm = "sliding-counter", limit = 50, per = "1m", phase = "0s" }"#,
            Quota::sliding_counter(50, minute).aligned(Duration::ZERO),
        ),
    ];
    for (text, quota) in cases {
        let policy = Policy::from_toml(&with_quotas(text)).unwrap();
        assert_eq!(policy.dimensions()[0].quotas(), [quota], "{text}");
        let printed = policy.to_string();
        assert_eq!(printed.parse(), Ok(policy), "{printed}");
    }
}

#[test]
fn all_that_a_file_says_is_there_and_in_the_limiter() {
    let text = r#"
        key_cap = 100_000
        at_key_cap = "admit"
        [[dimension]]
        name = "a \"quoted\" \u0007 näme"
        key = ["client", "column:it's"]
        [[dimension.quota]]
        limit = 10
        per = "1s"
        [[dimension.quota]]
        limit = 100
        per = "1m"
        [[dimension]]
        name = "path"
        [[dimension.quota]]
        algorithm = "token-bucket"
        capacity = 1000
        refill = 100
        per = "1s"
    "#;
    let policy: Policy = text.parse().unwrap();
    assert_eq!((policy.key_cap(), policy.at_key_cap()), (Some(100_000), Some(AtKeyCap::Admit)));
    let [first, second] = policy.dimensions() else { panic!("{policy:?}") };
    assert_eq!(first.name(), "a \"quoted\" \u{7} näme");
    assert_eq!(first.key().collect::<Vec<_>>(), ["client", "column:it's"]);
    assert_eq!(first.quotas(), [Quota::per_second(10), Quota::per_minute(100)]);
    assert_eq!(second.key().collect::<Vec<_>>(), ["path"], "the name, unless said");
    assert_eq!(policy.to_string().parse(), Ok(policy.clone()));

    let limiter = policy.builder::<[String]>().unwrap().clock(MockClock::new()).build().unwrap();
    let built: Vec<_> = limiter.dimensions().collect();
    let read: Vec<_> = policy.dimensions().iter().map(|it| (it.name(), it.quotas())).collect();
    assert_eq!(built.iter().map(|(name, quotas)| (*name, &**quotas)).collect::<Vec<_>>(), read);
    assert!(limiter.try_acquire_n(["a", "/"], 10).unwrap().is_admitted());
    assert!(limiter.try_acquire(["a", "/"]).unwrap().is_denied());
}

#[test]
fn a_policy_can_be_in_shadow_mode() {
    for (text, shadow) in [("shadow = true\n", Some(true)), ("shadow = false\n", Some(false)), ("", None)] {
        let policy = Policy::from_toml(&format!("{text}{}", with_quotas("{ limit = 1, per = \"1m\" }"))).unwrap();
        assert_eq!(policy.shadow(), shadow);
        assert_eq!(policy.to_string().parse(), Ok(policy.clone()));
        let limiter = policy.builder::<[String]>().unwrap().clock(MockClock::new()).build().unwrap();
        assert!(limiter.try_acquire(["a"]).unwrap().is_admitted());
        assert_eq!(limiter.try_acquire(["a"]).unwrap().is_admitted(), shadow == Some(true));
    }
    assert!(words("shadow = 1", 1).contains("boolean"));
}

#[test]
fn texts_that_are_not_policies() {
    assert!(!words("key_cap = ", 1).is_empty());
    assert!(words("\nkey_cup = 5", 2).contains("key_cap"), "an unknown field names those there are");
    assert!(words("[[dimension]]\nname = \"a\"\nlimit = 5", 3).contains("unknown field `limit`"));
    assert!(
        words(&with_quotas("{ limt = 5 }"), 3)
            .contains("unknown field `limt`, expected one of `name`, `algorithm`, `limit`")
    );
    let counting = r#"{ limit = 5, per = "1s", counting_refused = true }"#;
    assert!(words(&with_quotas(counting), 3).contains("unknown field `counting_refused`"), "no joint limiter has it");
    let (_, column, _) = refused(&with_quotas("{ limt = 5 }"));
    assert_eq!(column, 12, "the place of the name");
    assert!(words(&with_quotas("{ limit = -1, per = \"1s\" }"), 3).contains("-1"));
    assert!(words(&with_quotas("{ limit = 4294967296, per = \"1s\" }"), 3).contains("4294967296"));
    assert!(words(&with_quotas("{ limit = 1, per = [] }"), 3).contains("such as \"10s\""));
    assert!(words(&with_quotas("{ limit = 1, per = true }"), 3).contains("such as \"10s\""));
    assert!(words("key_cap = 1\nkey_cap = 2", 2).contains("duplicate"));
    assert!(words("[[dimension]]\nquota = []", 1).contains("`name`"));
    assert!(words("dimension = 5", 1).contains("sequence"));
}

#[test]
fn unknown_algorithm() {
    let (line, column, problem) = refused(&with_quotas(r#"{ algorithm = "tocken-bucket" }"#));
    assert_eq!(
        problem.to_string(),
        "there is no algorithm \"tocken-bucket\": write sliding-window-log, token-bucket, leaky-bucket, leaky-queue, \
         fixed-window, sliding-counter, quantised-log, warm-up or concurrency"
    );
    assert_eq!((line, column, problem), (3, 24, PolicyProblem::UnknownAlgorithm { name: "tocken-bucket".to_owned() }));
}

#[test]
fn missing_fields() {
    let cases = [
        (r#"{ per = "1s" }"#, "limit"),
        (r#"{ limit = 5 }"#, "per"),
        (r#"{ algorithm = "token-bucket", refill = 5, per = "1s" }"#, "capacity"),
        (r#"{ algorithm = "token-bucket", capacity = 5, per = "1s" }"#, "refill"),
        (r#"{ algorithm = "leaky-bucket", capacity = 5, per = "1s" }"#, "leak"),
        (r#"{ algorithm = "leaky-queue", leak = 5, per = "1s" }"#, "max_delay"),
        (r#"{ algorithm = "fixed-window", limit = 5 }"#, "per"),
        (r#"{ algorithm = "sliding-counter", per = "5s" }"#, "limit"),
        (r#"{ algorithm = "quantised-log", limit = 5, per = "5s" }"#, "resolution"),
        (r#"{ algorithm = "warm-up", limit = 5, rate = 2, per = "1s" }"#, "warm_up"),
    ];
    for (quota, expected) in cases {
        match refused(&with_quotas(quota)) {
            (3, 10, PolicyProblem::MissingField { field, .. }) => assert_eq!(field, expected, "{quota}"),
            other => panic!("{quota}: {other:?}"),
        }
    }
}

#[test]
fn windows_of_the_calendar_that_cant_be() {
    let month = |algorithm| PolicyProblem::CalendarNeedsFixedWindow { calendar: Calendar::Month, algorithm };
    let zone = |name: &str, error| PolicyProblem::Zone { name: name.to_owned(), error };
    let (log, counter) = (Algorithm::SlidingWindowLog, Algorithm::SlidingCounter);
    let unknown = if cfg!(feature = "calendar") { ZoneError::Unknown } else { ZoneError::OnlyUtc };
    let cases = [
        (r#"{ limit = 5, per = "month" }"#, "\"month", month(log), "write `algorithm = \"fixed-window\"`"),
        (r#"{ zone = "UTC", limit = 5, per = "month" }"#, "\"month", month(log), "or a duration as `per`"),
        (
            r#"{ algorithm = "sliding-counter", limit = 5, per = "month" }"#,
            "\"month",
            month(counter),
            "a sliding window",
        ),
        (
            r#"{ algorithm = "fixed-window", limit = 5, per = "1d", zone = "UTC" }"#,
            "\"UTC",
            PolicyProblem::ZoneNeedsCalendar,
            "write \"day\", \"week\" or \"month\" as `per`",
        ),
        (
            r#"{ algorithm = "fixed-window", limit = 5, per = "day", zone = "Berlin" }"#,
            "\"Berlin",
            zone("Berlin", unknown),
            "`zone` is \"Berlin\": ",
        ),
        (
            r#"{ algorithm = "fixed-window", limit = 5, per = "day", phase = "1h" }"#,
            "{",
            PolicyProblem::Refused(QuotaError::PhaseNeedsFixedWindow.into()),
            "a fixed window of one length",
        ),
        (
            r#"{ limit = 5, per = "1d", zone = "UTC" }"#,
            "\"UTC",
            PolicyProblem::ForeignField { field: "zone", algorithm: log },
            "choose another `algorithm`",
        ),
        (
            r#"{ algorithm = "fixed-window", limit = 5, per = "Month" }"#,
            "\"Month",
            PolicyProblem::Duration { field: "per", error: tollgate::parse_duration("Month").unwrap_err() },
            "",
        ),
    ];
    for (quota, place, expected, words) in cases {
        let (line, at, problem) = refused(&with_quotas(quota));
        assert_eq!((line, &problem), (3, &expected), "{quota}");
        assert_eq!(Some(at), quota.find(place).map(|at| "quota = [".len() + at + 1), "{quota}");
        assert!(problem.to_string().contains(words), "{problem}");
    }
    let text = with_quotas(r#"{ algorithm = "fixed-window", limit = 5, per = "day", zone = 2 }"#);
    assert!(matches!(refused(&text).2, PolicyProblem::Toml { .. }));
}

#[test]
fn fields_of_other_algorithms() {
    let cases = [
        (r#"{ limit = 5, per = "1s", capacity = 5 }"#, "capacity"),
        (r#"{ limit = 5, per = "1s", start = 5 }"#, "start"),
        (r#"{ limit = 5, per = "1s", phase = "5s" }"#, "phase"),
        (r#"{ algorithm = "token-bucket", capacity = 5, refill = 1, per = "1s", leak = 1 }"#, "leak"),
        (r#"{ algorithm = "leaky-bucket", capacity = 5, leak = 1, per = "1s", refill = 1 }"#, "refill"),
        (r#"{ algorithm = "leaky-queue", leak = 1, per = "1s", max_delay = "1s", limit = 1 }"#, "limit"),
        (r#"{ algorithm = "fixed-window", limit = 1, per = "1s", max_delay = "1s" }"#, "max_delay"),
        (r#"{ limit = 1, per = "1s", resolution = "1s" }"#, "resolution"),
        (r#"{ limit = 1, per = "1s", warm_up = "1s" }"#, "warm_up"),
        (r#"{ limit = 1, per = "1s", rate = 1 }"#, "rate"),
    ];
    for (quota, expected) in cases {
        match refused(&with_quotas(quota)) {
            (3, _, PolicyProblem::ForeignField { field, .. }) => assert_eq!(field, expected, "{quota}"),
            other => panic!("{quota}: {other:?}"),
        }
    }
    for (quota, expected) in [
        (
            r#"{ algorithm = "token-bucket", capacity = 5, refill = 1, per = "1s", phase = "1s" }"#,
            "a token bucket has no `phase`: it has `capacity`, `refill`, `per` and optionally `start`; remove it, or \
             choose another `algorithm`",
        ),
        (
            r#"{ leak = 1 }"#,
            "a sliding window log has no `leak`: it has `limit` and `per`; remove it, or choose another `algorithm`",
        ),
        (
            r#"{ algorithm = "leaky-queue", limit = 1 }"#,
            "a leaky queue has no `limit`: it has `leak`, `per` and `max_delay`; remove it, or choose another \
             `algorithm`",
        ),
    ] {
        assert_eq!(refused(&with_quotas(quota)).2.to_string(), expected);
    }
}

#[test]
fn durations_that_are_none() {
    let per = r#"{ limit = 5, per = "1.5" }"#;
    let negative = r#"{ limit = 5, per = -1 }"#;
    let delay = r#"{ algorithm = "leaky-queue", leak = 1, per = "1s", max_delay = "-1s" }"#;
    for (quota, name, expected) in [
        (per, "per", DurationError::NoUnit { number: "1.5".to_owned() }),
        (negative, "per", DurationError::Negative),
        (delay, "max_delay", DurationError::Negative),
    ] {
        match refused(&with_quotas(quota)) {
            (3, _, PolicyProblem::Duration { field, error }) => assert_eq!((field, error), (name, expected)),
            other => panic!("{quota}: {other:?}"),
        }
    }
}

#[test]
fn at_the_key_cap() {
    let problem = PolicyProblem::UnknownAtKeyCap { word: "share".to_owned() };
    assert_eq!(refused("at_key_cap = \"share\""), (1, 14, problem));
    assert_eq!(refused("key_cap = 0"), (1, 11, BuildError::ZeroKeyCap.into()));
    let key_cap = MAX_KEY_CAP + 1;
    assert_eq!(refused(&format!("key_cap = {key_cap}")).2, BuildError::KeyCapTooLarge { key_cap }.into());
}

#[test]
fn names_and_keys() {
    let one = |head: &str| format!("[[dimension]]\n{head}\nquota = [{{ limit = 1, per = \"1s\" }}]\n");
    assert_eq!(refused(&one("name = \" \"")), (2, 8, PolicyProblem::EmptyName));
    let twice = one("name = \"a\"").repeat(2);
    assert_eq!(refused(&twice), (5, 8, PolicyProblem::RepeatedName { name: "a".to_owned() }));
    assert_eq!(refused(&one("key = []\nname = \"a\"")), (2, 7, PolicyProblem::EmptyKey));
    assert_eq!(refused(&one("name = \"a\"\nkey = [\"client\", \"\"]")), (3, 7, PolicyProblem::EmptyKey));
}

#[test]
fn values_that_no_limiter_accepts() {
    let most = MAX_DIMENSIONS;
    let (line, _, problem) = refused("key_cap = 5\n");
    assert_eq!((line, problem), (2, BuildError::DimensionCount { dimensions: 0, most }.into()));
    let many: String = (0..=most)
        .map(|nth| format!("[[dimension]]\nname = \"{nth}\"\nquota = [{{ limit = 1, per = \"1s\" }}]\n"))
        .collect();
    let (line, _, problem) = refused(&many);
    assert_eq!((line, problem), (3 * most + 1, BuildError::DimensionCount { dimensions: most + 1, most }.into()));

    assert_eq!(refused(&with_quotas("")).2, BuildError::NoQuota.into());
    let name = refused(&with_quotas(r#"{ limit = 1, per = "1s", name = "\\u00e9" }"#));
    assert_eq!(name, (3, 42, BuildError::Quota(QuotaError::NameCharacter { at: 0 }).into()));
    let zero = refused(&with_quotas(r#"{ limit = 0, per = "1s" }"#));
    assert_eq!(zero, (3, 10, BuildError::Quota(QuotaError::ZeroLimit).into()));
    let start = r#"{ algorithm = "token-bucket", capacity = 5, refill = 1, per = "1s", start = 6 }"#;
    let past = QuotaError::StartPastCapacity { start: 6, capacity: 5 };
    assert_eq!(refused(&with_quotas(start)).2, BuildError::Quota(past).into());
    let mixed = "{ limit = 5, per = \"1s\" },\n{ algorithm = \"fixed-window\", limit = 9, per = \"1s\" }";
    let problem = BuildError::QuotasDontCombine { algorithm: Algorithm::FixedWindow };
    assert_eq!(refused(&with_quotas(mixed)), (4, 1, problem.into()));
    let quotas = [r#"{ limit = 5, per = "1s" }"#; 9].join(",");
    assert_eq!(refused(&with_quotas(&quotas)).2, BuildError::TooManyQuotas { quotas: 9, most: 8 }.into());
}

#[test]
fn a_duration_needs_a_unit() {
    let message = |quota: &str| {
        let (line, _, problem) = refused(&with_quotas(quota));
        assert_eq!(line, 3, "{quota}");
        problem.to_string()
    };
    for (per, remedy) in
        [("10", "10s"), ("\"10\"", "10s"), ("\" 10 \"", "10s"), ("0", "0s"), ("0.5", "0.5s"), ("\"1h30\"", "30s")]
    {
        let message = message(&format!("{{ limit = 5, per = {per} }}"));
        assert_eq!(message, format!("`per`: a unit is missing: write \"{remedy}\" for seconds"), "{per}");
    }
    let queue = r#"{ algorithm = "leaky-queue", leak = 1, per = "1s", max_delay = 5 }"#;
    assert_eq!(message(queue), "`max_delay`: a unit is missing: write \"5s\" for seconds");
    assert!(message("{ limit = 5, per = -10 }").starts_with("`per`: a duration can't be negative"));
    assert!(message("{ limit = 5, per = nan }").starts_with("`per`: not a duration"));
}

#[test]
fn usual_mistakes_have_a_remedy() {
    let dimension = |key: &str, quota: &str| format!("[[dimension]]\nname = \"a\"\n{key}quota = {quota}");
    for (text, line, remedy) in [
        ("[dimension]\nname = \"a\"".to_owned(), 1, "write `[[dimension]]`"),
        (dimension("", "{ limit = 5, per = \"1s\" }"), 3, "`quota = [{ ... }]`"),
        (dimension("key = \"user\"\n", "[{ limit = 5, per = \"1s\" }]"), 3, "`key = [\"user\"]`"),
        (with_quotas("{ limit = \"5\", per = \"1s\" }"), 3, "a whole number up to 4294967295, without quotes"),
        (with_quotas("{ limit = -1, per = \"1s\" }"), 3, "a whole number up to 4294967295"),
        ("key_cap = \"10k\"".to_owned(), 1, "a whole number, without quotes"),
        ("[[dimension]]".to_owned(), 1, "missing field `name`: add it"),
    ] {
        let message = words(&text, line);
        assert!(message.contains(remedy), "{text}\n{message}");
    }
}

#[test]
fn errors_name_the_dimension() {
    let text = "[[dimension]]\nname = \"a\"\nquota = [{ limit = 1, per = \"1s\" }]\n\n[[dimension]]\nname = \"b\"\n";
    let error = Policy::from_toml(&format!("{text}quota = [{{ limit = 0, per = \"1s\" }}]")).unwrap_err();
    assert_eq!((error.dimension(), error.line()), (Some("b"), 7));
    assert!(error.to_string().starts_with("line 7, column 10: dimension \"b\": the limit is zero"), "{error}");
    assert_eq!(Policy::from_toml("key_cap = 0").unwrap_err().dimension(), None);
}

#[test]
fn a_dimension_can_have_a_penalty() {
    let penalty = "[dimension.penalty]\ndenials = 2\nwithin = \"1m\"\nblocked_for = \"600s\"\n";
    let text = format!("[[dimension]]\nname = \"a\"\nquota = [{{ limit = 1, per = \"60s\" }}]\n{penalty}");
    let policy = Policy::from_toml(&text).unwrap();
    assert_eq!(policy.dimensions()[0].penalty(), Some(Penalty::new(2, 60 * SECOND, 600 * SECOND)));
    assert_eq!(policy.to_string().parse(), Ok(policy.clone()));
    let limiter = policy.builder::<[String]>().unwrap().clock(MockClock::new()).build().unwrap();
    let waits: Vec<_> = (0..3).map(|_| limiter.try_acquire(["alice"]).unwrap().retry_after()).collect();
    assert_eq!(waits, [None, Some(60 * SECOND), Some(600 * SECOND)]);

    let none = refused(&text.replace("denials = 2", "denials = 0"));
    assert_eq!(none, (4, 1, BuildError::Penalty(PenaltyError::ZeroDenials).into()));
    let month = refused(&text.replace("600s", "1mo"));
    assert_eq!(month.0, 7);
    assert!(matches!(month.2, PolicyProblem::Duration { field: "blocked_for", .. }), "{month:?}");
    assert!(words(&text.replace("within", "whithin"), 6).contains("`whithin`"));
    assert!(words(&text.replace("blocked_for = \"600s\"\n", ""), 4).contains("blocked_for"));
}

#[test]
fn the_blocks_of_a_penalty_can_grow() {
    let growth = "factor = 3\nlongest = \"1h\"\nquiet_for = \"1d\"\n";
    let penalty = format!("[dimension.penalty]\ndenials = 1\nwithin = \"1m\"\nblocked_for = \"10m\"\n{growth}");
    let text = format!("[[dimension]]\nname = \"a\"\nquota = [{{ limit = 1, per = \"60s\" }}]\n{penalty}");
    let policy = Policy::from_toml(&text).unwrap();
    let (minute, hour) = (60 * SECOND, 3600 * SECOND);
    let expected = Penalty::new(1, minute, 10 * minute).growing(3, hour, 24 * hour);
    assert_eq!(policy.dimensions()[0].penalty(), Some(expected));
    assert_eq!(policy.to_string().parse(), Ok(policy.clone()));
    assert!(policy.to_string().contains(growth), "{policy}");
    let limiter = policy.builder::<[String]>().unwrap().clock(MockClock::new()).build().unwrap();
    for (number, wait) in [(1, 10 * minute), (2, 30 * minute), (3, hour), (4, hour)] {
        assert!(limiter.try_acquire(["alice"]).unwrap().is_admitted());
        let denial = limiter.try_acquire(["alice"]).unwrap().into_result().unwrap_err();
        assert_eq!((denial.block(), denial.retry_after()), (Some(number), wait));
        limiter.clock().advance(wait);
    }

    for field in ["factor", "longest", "quiet_for"] {
        let lacking: String =
            text.lines().filter(|line| !line.starts_with(field)).flat_map(|line| [line, "\n"]).collect();
        assert_eq!(refused(&lacking), (4, 1, PolicyProblem::GrowthLacks { field }));
        let error = Policy::from_toml(&lacking).unwrap_err().to_string();
        assert!(error.ends_with(&format!("add `{field}`")), "{error}");
    }
    let zero = refused(&text.replace("factor = 3", "factor = 0"));
    assert_eq!(zero, (4, 1, BuildError::Penalty(PenaltyError::ZeroFactor).into()));
    let short = PenaltyError::LongestTooShort { blocked_for: 10 * minute };
    assert_eq!(refused(&text.replace("\"1h\"", "\"1m\"")), (4, 1, BuildError::Penalty(short).into()));
    let month = refused(&text.replace("\"1d\"", "\"1mo\""));
    assert_eq!(month.0, 10);
    assert!(matches!(month.2, PolicyProblem::Duration { field: "quiet_for", .. }), "{month:?}");
}

fn two(user: &str, address: &str) -> Policy {
    let text = format!(
        "[[dimension]]\nname = \"user\"\nquota = [{user}]\n[[dimension]]\nname = \"address\"\nquota = [{address}]"
    );
    text.parse().unwrap()
}

#[test]
fn a_policy_is_applied_whole_and_by_name() {
    let log = |limit: u32| format!("{{ limit = {limit}, per = \"60s\" }}");
    let limiter = two(&log(1), &log(10)).builder::<(String, u32)>().unwrap().clock(MockClock::new()).build().unwrap();
    let quotas = || limiter.dimensions().map(|(_, quotas)| quotas.to_vec()).collect::<Vec<_>>();
    assert!(limiter.try_acquire(("alice", 1)).unwrap().is_admitted());
    assert!(limiter.try_acquire(("alice", 1)).unwrap().is_denied());

    // In another order.
    let swapped: Policy =
        "[[dimension]]\nname = \"address\"\nquota = [{ limit = 11, per = \"60s\" }]\n[[dimension]]\nname = \"user\"\n\
                           quota = [{ limit = 2, per = \"60s\" }]"
            .parse()
            .unwrap();
    assert!(swapped.apply(&limiter).is_ok());
    assert_eq!(quotas(), [[Quota::per_minute(2)], [Quota::per_minute(11)]]);
    assert!(limiter.try_acquire(("alice", 1)).unwrap().is_admitted(), "what was granted counts");
    assert!(limiter.try_acquire(("alice", 1)).unwrap().is_denied());

    // The second can't become a bucket: the first stays as it is too.
    let bucket = r#"{ algorithm = "token-bucket", capacity = 5, refill = 1, per = "1s" }"#;
    let before = quotas();
    let error = two(&log(9), bucket).apply(&limiter).unwrap_err();
    assert!(
        matches!(&error, ApplyError::Change { dimension, error } if dimension == "address" && matches!(**error, ChangeError::OtherAlgorithm { .. }))
    );
    assert!(
        error.to_string().starts_with("dimension \"address\": ") && error.dimension() == Some("address"),
        "{error}"
    );
    assert_eq!(quotas(), before);

    let other: Policy = with_quotas("{ limit = 9, per = \"60s\" }").parse().unwrap();
    let error = other.apply(&limiter).unwrap_err();
    assert_eq!(error, ApplyError::NotInPolicy { dimension: "address".to_owned() });
    let named = two(&log(9), &log(9)).to_string().replace("\"address\"", "\"adress\"");
    let error = named.parse::<Policy>().unwrap().apply(&limiter).unwrap_err();
    assert_eq!(error, ApplyError::NotInLimiter { dimension: "adress".to_owned() });
    assert!(error.to_string().contains("\"adress\""), "{error}");
    assert_eq!(quotas(), before);
}

#[test]
fn errors_of_files_name_the_file() {
    let missing = Policy::load("no/such/policy.toml").unwrap_err();
    assert_eq!(missing.path(), std::path::Path::new("no/such/policy.toml"));
    assert!(missing.to_string().starts_with("the policy no/such/policy.toml can't be read: "), "{missing}");
    // A file that exists and is not a policy.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rustfmt.toml");
    std::fs::write(&path, "max_width = 120\n").unwrap();
    let error = Policy::load(&path).unwrap_err();
    assert!(matches!(&error, LoadError::Policy { error, .. } if error.line() == 1), "{error:?}");
    assert!(error.to_string().starts_with(&format!("{}: line 1, column 1: unknown field", path.display())), "{error}");
}

#[test]
fn the_page_has_the_fields_of_each_algorithm() {
    let page = include_str!("../QUOTAS.md");
    for algorithm in Algorithm::ALL {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}`", algorithm.name()))).expect("a row");
        let mut fields: Vec<_> = algorithm.needed_fields().iter().map(|field| format!("`{}`", field.name())).collect();
        let optional = algorithm.optional_fields().iter().filter(|field| error::is_in_policies(field));
        fields.extend(optional.clone().map(|field| format!("optional `{}`", field.name())));
        assert_eq!(row.split(" | ").nth(1), Some(fields.join(", ").as_str()));
        assert!(optional.clone().all(|field| page.contains(&format!("\n- `{}", field.name()))), "{row}");
    }
}
