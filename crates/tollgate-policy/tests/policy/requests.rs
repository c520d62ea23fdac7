//! What a policy says of requests: read, printed, and asked.

use core::net::IpAddr;

use tollgate_policy::{
    Action, Asked, BuilderError, Choice, Key, MatchError, Matcher, Policy, PolicyProblem, RequestLimiter, Value,
};

const QUOTA: &str = "quota = [{ limit = 5, per = \"1m\" }]\n";

/// A dimension of this name, with other fields.
fn dimension(name: &str, fields: &str) -> String {
    format!("[[dimension]]\nname = \"{name}\"\n{QUOTA}{fields}\n")
}

fn policy(text: &str) -> Policy {
    let policy = Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(Policy::from_toml(&policy.to_string()).as_ref(), Ok(&policy), "{policy}");
    policy
}

/// Values by the names of their fields. A client is an address.
fn values(matcher_fields: &[String], policy: &Policy, given: &[(&str, &str)]) -> Vec<Option<Value<'static>>> {
    let value = |field: &String| {
        let (_, text) = given.iter().find(|(name, _)| name == field)?;
        let address = text.parse::<IpAddr>().ok().filter(|_| field == "client");
        Some(address.map_or_else(|| (*text).to_owned().into(), |it| Value::address(policy.client(), it.to_canonical())))
    };
    matcher_fields.iter().map(value).collect()
}

fn choice(text: &str, given: &[(&str, &str)]) -> Choice {
    let policy = policy(text);
    let matcher = Matcher::new(&policy);
    matcher.choice(0, &values(matcher.fields(), &policy, given))
}

#[test]
fn a_request_matches_if_each_field_has_one_of_the_values() {
    for (condition, given, matches) in [
        ("path = \"/login\"", ("path", "/login"), true),
        ("path = \"/login\"", ("path", "/login?next=/"), true),
        ("path = \"/login\"", ("path", "/login/"), true),
        ("path = \"/login\"", ("path", "//x/.././%6cogin?a=/b"), true),
        ("path = \"/a/b\"", ("path", "/a%2Fb"), false),
        ("path = \"/ü\"", ("path", "/%C3%BC"), true),
        ("path = \"/{any}\"", ("path", "/%C3"), true),
        ("path = \"/\"", ("path", "/x/../.."), true),
        ("path = \"/\"", ("path", ""), true),
        ("path = \"/login\"", ("path", "/LOGIN"), false),
        ("path = \"/login\"", ("method", "GET"), false),
        ("path = \"/users/{id}\"", ("path", "/users/7"), true),
        ("path = \"/users/{id}\"", ("path", "/users/7/posts"), false),
        ("path = \"/users/{id}\"", ("path", "/users/"), false),
        ("path = \"/static/{*rest}\"", ("path", "/static/a/b.css"), true),
        ("path = [\"/a\", \"/a/{*rest}\"]", ("path", "/a"), true),
        ("path = [\"/{x}\", \"/a\"]", ("path", "/b"), true),
        ("path = \"/\"", ("path", "/"), true),
        ("method = [\"POST\", \"PUT\"]", ("method", "PUT"), true),
        ("method = [\"POST\", \"PUT\"]", ("method", "put"), false),
        ("host = \"Example.com\"", ("host", "example.COM:8080"), true),
        ("host = \"example.com\"", ("host", "example.com."), true),
        ("host = \"*.example.com\"", ("host", "a.b.example.com"), true),
        ("host = \"*.example.com\"", ("host", "example.com"), false),
        ("host = \"[::1]\"", ("host", "[::1]:80"), true),
        ("header.X-Plan = \"pro\"", ("header.x-plan", "pro"), true),
        ("header = { \"x-plan\" = \"pro\" }", ("header.x-plan", "Pro"), false),
        ("tenant = \"acme\"", ("tenant", "acme"), true),
        ("client = \"192.0.2.0/24\"", ("client", "192.0.2.77"), true),
        ("client = \"192.0.2.0/24\"", ("client", "192.0.3.77"), false),
        ("client = \"::ffff:192.0.2.0/120\"", ("client", "192.0.2.77"), true),
        ("client = \"192.0.2.7\"", ("client", "::ffff:192.0.2.7"), true),
        // By its address, not by its key, which is its network of 64 bits.
        ("client = \"2001:db8::7\"", ("client", "2001:db8::7"), true),
        ("client = \"2001:db8::7\"", ("client", "2001:db8::8"), false),
        ("client = [\"10.0.0.0/8\", \"2001:db8::/32\"]", ("client", "2001:db8:7::1"), true),
        ("client = \"0.0.0.0/0\"", ("client", "2001:db8::8"), false),
        ("client = \"0.0.0.0/0\"", ("client", "a name"), false),
    ] {
        let text = dimension("user", &format!("match = {{ {condition} }}"));
        let expected = if matches { Choice::Own } else { Choice::Unasked };
        assert_eq!(choice(&text, &[given]), expected, "{condition} {given:?}");
        let and_method = dimension("user", &format!("match = {{ {condition}, trace = \"on\" }}"));
        assert_eq!(choice(&and_method, &[given]), Choice::Unasked);
        assert_eq!(choice(&and_method, &[given, ("trace", "on")]), expected);
    }
}

#[test]
fn the_first_tier_that_matches_counts_then_the_named_one_then_the_dimension() {
    let text = dimension("user", "tier_by = \"plan\"")
        + &format!("[[dimension.tier]]\nname = \"pro\"\n{QUOTA}")
        + &format!("[[dimension.tier]]\nname = \"export\"\nmatch = {{ path = \"/export/{{*all}}\" }}\n{QUOTA}")
        + "[[dimension.tier]]\nname = \"office\"\nmatch = { client = \"10.0.0.0/8\" }\nunlimited = true\n";
    for (given, expected) in [
        (&[][..], Choice::Own),
        (&[("plan", "pro")], Choice::Tier(0)),
        (&[("plan", "free")], Choice::Own),
        // Only a tier without a match is chosen by its name.
        (&[("plan", "export")], Choice::Own),
        (&[("plan", "pro"), ("path", "/export/7")], Choice::Tier(1)),
        (&[("plan", "pro"), ("path", "/export/7"), ("client", "10.0.0.7")], Choice::Tier(1)),
        (&[("plan", "pro"), ("client", "10.0.0.7")], Choice::Unasked),
    ] {
        assert_eq!(choice(&text, given), expected, "{given:?}");
    }
}

fn ask(limiter: &RequestLimiter, policy: &Policy, given: &[(&str, &str)]) -> Asked {
    limiter.ask(values(limiter.fields(), policy, given))
}

fn admits(limiter: &RequestLimiter, policy: &Policy, given: &[(&str, &str)]) -> bool {
    match ask(limiter, policy, given) {
        Asked::Limits(keys) => limiter.limiter().try_acquire(&keys[..]).unwrap().is_admitted(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_rule_decides_before_any_limit() {
    let policy = policy(&format!(
        "[[rule]]\nmatch = {{ path = \"/health\" }}\naction = \"admit\"\n\
         [[rule]]\nmatch = {{ client = [\"192.0.2.0/24\"] }}\naction = \"deny\"\n{}",
        dimension("client", "")
    ));
    let limiter = policy.request_limiter().unwrap();
    assert_eq!(limiter.fields(), ["client", "path"]);
    let asked = |given| ask(&limiter, &policy, given);
    assert!(matches!(asked(&[("client", "192.0.2.7"), ("path", "/health")]), Asked::Admitted { rule: 0 }));
    assert!(matches!(asked(&[("client", "192.0.2.7"), ("path", "/")]), Asked::Denied { rule: 1 }));
    assert!(matches!(asked(&[("path", "/")]), Asked::Lacks { field: 0 }));
    assert!(matches!(asked(&[("client", "192.0.3.7")]), Asked::Limits(keys) if keys[0].is_some()));
    assert_eq!(policy.rules()[1].action(), Action::Deny);
}

#[test]
fn each_tier_has_permits_of_its_own() {
    let policy = policy(
        &(dimension("user", "tier_by = \"plan\"")
            + "[[dimension.tier]]\nname = \"pro\"\nquota = [{ limit = 7, per = \"1m\" }]\n"),
    );
    let limiter = policy.request_limiter().unwrap();
    let admitted = |given: &[(&str, &str)]| (0..20).filter(|_| admits(&limiter, &policy, given)).count();
    assert_eq!(admitted(&[("user", "alice")]), 5);
    assert_eq!(admitted(&[("user", "alice"), ("plan", "pro")]), 7);
    assert_eq!(limiter.requests().unknown_tiers(), 0);
    assert_eq!(admitted(&[("user", "bob"), ("plan", "gold")]), 5);
    assert_eq!(limiter.requests().unknown_tiers(), 20);
}

#[test]
fn a_field_is_needed_only_where_its_dimension_is_asked() {
    let policy = policy(&(dimension("user", "match = { path = \"/api/{*all}\" }") + &dimension("client", "")));
    let limiter = policy.request_limiter().unwrap();
    let is_asked = |asked| match asked {
        Asked::Limits(keys) => keys.iter().map(Option::is_some).collect(),
        _ => Vec::new(),
    };
    let client = ("client", "192.0.2.7");
    assert_eq!(is_asked(ask(&limiter, &policy, &[client, ("path", "/")])), [false, true]);
    assert!(matches!(ask(&limiter, &policy, &[client, ("path", "/api/a")]), Asked::Lacks { field: 0 }));
    let optional = values(limiter.fields(), &policy, &[client, ("path", "/api/a")]);
    assert_eq!(is_asked(limiter.requests().ask(optional, |_| true)), [false, true]);
}

#[test]
fn a_limiter_that_does_not_see_requests_refuses_such_a_policy() {
    let rule = "[[rule]]\nmatch = { path = \"/\" }\naction = \"deny\"\n";
    let tier = "[[dimension.tier]]\nname = \"pro\"\n";
    for text in [
        format!("{rule}{}", dimension("user", "")),
        dimension("user", "match = { path = \"/\" }"),
        dimension("user", "tier_by = \"plan\"") + tier + QUOTA,
        dimension("user", "") + tier + "unlimited = true\n",
        dimension("user", "") + tier + "match = { path = \"/\" }\n" + QUOTA,
    ] {
        let policy = policy(&text);
        assert_eq!(policy.builder::<[Key]>().err(), Some(BuilderError::ForRequests), "{text}");
        assert_eq!(policy.builder_of::<Key>("user").err(), Some(BuilderError::ForRequests));
        assert!(policy.request_limiter().is_ok());
    }
    // Tiers that a program chooses.
    let policy = policy(&(dimension("user", "") + tier + "quota = [{ limit = 9, per = \"1m\" }]\n"));
    let limiter = policy.builder_of::<str>("user").unwrap().build().unwrap();
    assert_eq!(limiter.peek(limiter.tier("pro").unwrap().key("alice")).remaining(), 9);
    let joint = policy.builder::<(String,)>().unwrap().build().unwrap();
    assert!(joint.tier(0, "pro").is_some());
}

#[test]
fn lists_and_quotas_of_tiers_change_in_use() {
    let text = |networks: &str, limit: u32| {
        format!(
            "[[rule]]\nmatch = {{ client = [{networks}] }}\naction = \"deny\"\n{}[[dimension.tier]]\nname = \"api\"\n\
             match = {{ path = \"/api\" }}\nquota = [{{ limit = {limit}, per = \"1m\" }}]\n",
            dimension("client", "")
        )
    };
    let first = policy(&text("\"192.0.2.0/24\"", 1));
    let limiter = first.request_limiter().unwrap();
    let api = [("client", "198.51.100.7"), ("path", "/api")];
    assert!(admits(&limiter, &first, &api) && !admits(&limiter, &first, &api));
    let second = policy(&text("\"198.51.100.0/25\", \"203.0.113.0/24\"", 2));
    second.apply(&limiter).unwrap();
    assert!(matches!(ask(&limiter, &second, &api), Asked::Denied { rule: 0 }));
    first.apply(&limiter).unwrap();
    second.apply(&limiter).unwrap();
    let other = [("client", "198.51.100.200"), ("path", "/api")];
    assert!(admits(&limiter, &second, &other) && admits(&limiter, &second, &other));
    assert!(!admits(&limiter, &second, &other));
    // A rule on another field.
    let third = policy(&text("\"192.0.2.0/24\"", 2).replacen("client =", "host = \"a.example\", client =", 1));
    assert_eq!(third.apply(&limiter).unwrap_err(), tollgate_policy::ApplyError::Fields);
    let no_tier = policy(&text("\"192.0.2.0/24\"", 2).replace("\"api\"", "\"other\""));
    assert!(matches!(no_tier.apply(&limiter).unwrap_err(), tollgate_policy::ApplyError::NoTier { .. }));
}

#[test]
fn mistakes_are_told_with_their_places() {
    let of_match = |field: &str, error: MatchError| PolicyProblem::Match {
        field: field.into(),
        error: Box::new(error),
        line: None,
    };
    let text = |text: &str| text.to_owned();
    let network = |value: &str| MatchError::Network { value: value.into() };
    for (fields, line, column, problem) in [
        ("match = {}", 4, 9, PolicyProblem::EmptyMatch),
        ("match = { path = [] }", 4, 18, PolicyProblem::EmptyCondition { field: text("path") }),
        ("match = { path = [\"/a\", \"\"] }", 4, 25, of_match("path", MatchError::Empty)),
        ("match = { path = \"login\" }", 4, 18, of_match("path", MatchError::Path { value: text("login") })),
        ("match = { path = \"/a/\" }", 4, 18, of_match("path", MatchError::Path { value: text("/a/") })),
        ("match = { path = \"/a/{*r}/b\" }", 4, 18, of_match("path", MatchError::Path { value: text("/a/{*r}/b") })),
        ("match = { method = \"get\" }", 4, 20, of_match("method", MatchError::Method { value: text("get") })),
        ("match = { host = \"a:80\" }", 4, 18, of_match("host", MatchError::Host { value: text("a:80") })),
        ("match = { host = \"*\" }", 4, 18, of_match("host", MatchError::Host { value: text("*") })),
        ("match = { user = [\"a\", \"a\"] }", 4, 24, of_match("user", MatchError::Repeated { value: text("a") })),
        ("match = { client = \"10.0.0.0/33\" }", 4, 20, of_match("client", network("10.0.0.0/33"))),
        (
            "match = { client = [\"10.0.0.0/8\",\n \"10.1.0.0/16\"] }",
            5,
            2,
            of_match("client", MatchError::Overlap { value: text("10.1.0.0/16"), other: text("10.0.0.0/8") }),
        ),
        (
            "match = { client = [\"10.1.0.0/16\", \"10.0.0.0/8\"] }",
            4,
            36,
            of_match("client", MatchError::Overlap { value: text("10.0.0.0/8"), other: text("10.1.0.0/16") }),
        ),
        (
            "match = { client = \"10.0.0.1/8\" }",
            4,
            20,
            of_match("client", MatchError::BitsAfterPrefix { value: text("10.0.0.1/8"), network: text("10.0.0.0/8") }),
        ),
        ("tier_by = \"plan\"", 4, 11, PolicyProblem::NoTierByName),
        ("[[dimension.tier]]\nname = \" \"\nunlimited = true", 5, 8, PolicyProblem::EmptyTierName),
        (
            "[[dimension.tier]]\nname = \"a\"\nunlimited = true\n[[dimension.tier]]\nname = \"a\"\nunlimited = true",
            8,
            8,
            PolicyProblem::RepeatedTier { name: text("a") },
        ),
        ("[[dimension.tier]]\nname = \"a\"\nunlimited = false", 6, 13, PolicyProblem::QuotaAndUnlimited),
        (
            "[[dimension.tier]]\nname = \"a\"\nunlimited = true\nquota = [{ limit = 1, per = \"1s\" }]",
            6,
            13,
            PolicyProblem::QuotaAndUnlimited,
        ),
        (
            "[[rule]]\nmatch = { path = \"/\" }\naction = \"block\"",
            6,
            10,
            PolicyProblem::UnknownAction { word: text("block") },
        ),
    ] {
        let error = Policy::from_toml(&dimension("user", fields)).unwrap_err();
        assert_eq!((error.line(), error.column(), error.problem()), (line, column, &problem), "{fields}: {error}");
        let words = error.to_string();
        let remedies = ["write", "leave", "give", "add", "remove"];
        assert!(remedies.iter().any(|remedy| words.contains(remedy)), "{words}");
    }
    for (fields, words) in [
        ("match = { path = 7 }", "a text, a list of texts, or { file"),
        ("match = \"/login\"", "a match such as"),
        ("match = { path = { fle = \"a\" } }", "unknown field `fle`, expected `file`"),
        ("match = { path = { file = \"a\" } }", "the list a can't be read: only `Policy::load` reads other files"),
        ("[[rule]]\naction = \"deny\"", "missing field `match`"),
        ("[[dimension.tier]]\nname = \"a\"", "quota"),
    ] {
        let error = Policy::from_toml(&dimension("user", fields)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let zero = Policy::from_toml(&dimension("user", "").replace("limit = 5", "limit = 0")).unwrap_err();
    assert!(zero.to_string().ends_with("to deny requests, write a `[[rule]]` with `action = \"deny\"`"), "{zero}");
}

#[test]
fn sixteen_dimensions_and_limited_tiers_are_the_most() {
    let tiers = |count: usize| -> String {
        (0..count).map(|at| format!("[[dimension.tier]]\nname = \"{at}\"\n{QUOTA}")).collect()
    };
    let unlimited = "[[dimension.tier]]\nname = \"office\"\nunlimited = true\n";
    assert!(policy(&(dimension("user", "") + unlimited + &tiers(15))).request_limiter().is_ok());
    let error = Policy::from_toml(&(dimension("user", "") + unlimited + &tiers(16))).unwrap_err();
    assert_eq!(error.problem(), &PolicyProblem::Refused(tollgate::BuildError::TooManyTiers { tiers: 16, most: 15 }));
    assert_eq!(error.line(), 4 + 3 + 15 * 3 + 1);
}

#[test]
fn a_list_is_read_beside_the_policy_and_reloaded_like_it() {
    use std::sync::Arc;

    use tollgate_policy::Reloader;

    let folder = tempfile::tempdir().unwrap();
    let (path, list) = (folder.path().join("limits.toml"), folder.path().join("blocked.txt"));
    let rule = "[[rule]]\nmatch = { client = { file = \"blocked.txt\" } }\naction = \"deny\"\n";
    std::fs::write(&path, format!("{rule}{}", dimension("client", ""))).unwrap();
    std::fs::write(&list, "# from abuse@\n192.0.2.0/24 # a crawler\n\n203.0.113.9\n").unwrap();
    let loaded = Policy::load(&path).unwrap();
    assert_eq!(loaded.rules()[0].matches().values("client").collect::<Vec<_>>(), ["192.0.2.0/24", "203.0.113.9"]);
    assert!(loaded.to_string().contains("match = { \"client\" = { file = \"blocked.txt\" } }"), "{loaded}");
    let limiter = Arc::new(loaded.request_limiter().unwrap());
    let denies = |address: &str| matches!(ask(&limiter, &loaded, &[("client", address)]), Asked::Denied { rule: 0 });
    assert!(denies("192.0.2.7") && !denies("198.51.100.7"));

    let reloader = Reloader::new(&path, loaded.clone(), Arc::clone(&limiter));
    while reloader.poll().is_some() {}
    assert!((0..3).all(|_| reloader.poll().is_none()));
    std::fs::write(&list, "198.51.100.0/24\n").unwrap();
    assert!(reloader.poll().is_none(), "it may be half written");
    assert_eq!(reloader.poll().map(|reloaded| reloaded.result()), Some("applied"));
    assert!(denies("198.51.100.7") && !denies("192.0.2.7"));
    std::fs::write(&list, "198.51.100.0/24\n198.51.100.7\n").unwrap();
    assert!(reloader.poll().is_none());
    let refused = reloader.poll().unwrap().to_string();
    assert!(refused.contains("`client`: line 2 of blocked.txt: \"198.51.100.7\" overlaps"), "{refused}");
    assert!(denies("198.51.100.7"));
    std::fs::remove_file(&list).unwrap();
    assert!(reloader.poll().is_none());
    let refused = reloader.poll().unwrap().to_string();
    assert!(refused.contains("the list blocked.txt can't be read"), "{refused}");
}
