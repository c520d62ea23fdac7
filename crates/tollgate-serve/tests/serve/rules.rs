//! Rules, matches, tiers and lists, over HTTP and gRPC, in process and on a store.

use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;

use crate::envoy_grpc::{attributes, check, descriptor, rate_limit, request, value};
use crate::place::{Place, by_both};
use crate::support::{Running, problem_of};

const POLICY: &str = r#"
    [[rule]]
    match = { path = "/health" }
    action = "admit"

    [[rule]]
    match = { client = ["203.0.113.0/24", "2001:db8:bad::/48"] }
    action = "deny"

    # An endpoint that is switched off.
    [[rule]]
    match = { path = "/export/{*all}", method = "POST" }
    action = "deny"

    [[dimension]]
    name = "user"
    match = { host = "api.example" }
    quota = [{ limit = 2, per = "1d" }]
    tier_by = "header.x-plan"

    [[dimension.tier]]
    name = "login"
    match = { path = "/login" }
    quota = [{ limit = 1, per = "1d" }]

    [[dimension.tier]]
    name = "internal"
    match = { client = "10.0.0.0/8" }
    unlimited = true

    [[dimension.tier]]
    name = "pro"
    quota = [{ limit = 3, per = "1d" }]
"#;

/// The fields of a request.
#[derive(Clone, Copy)]
struct Asked {
    user: Option<&'static str>,
    client: &'static str,
    host: &'static str,
    method: &'static str,
    path: &'static str,
    plan: Option<&'static str>,
}

/// A request of alice that no rule and no tier is for.
const ALICE: Asked =
    Asked { user: Some("alice"), client: "192.0.2.1", host: "api.example", method: "GET", path: "/a?b=c", plan: None };

impl Asked {
    /// The names of the fields in the policy, and their values.
    fn fields(&self) -> Vec<(&'static str, &'static str)> {
        let optional = [("user", self.user), ("header.x-plan", self.plan)];
        let mut fields: Vec<_> = optional.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        fields.extend([("client", self.client), ("host", self.host), ("method", self.method), ("path", self.path)]);
        fields
    }

    fn headers(&self) -> Vec<(String, &'static str)> {
        let name = |name: &str| name.strip_prefix("header.").map_or(format!("x-tollgate-{name}"), str::to_owned);
        self.fields().into_iter().map(|(field, value)| (name(field), value)).collect()
    }
}

/// A way to ask a server. It tells the status that the client is to get.
type Way = fn(&Running, &Asked) -> u16;

fn by_acquire(served: &Running, asked: &Asked) -> u16 {
    let keys: serde_json::Map<_, _> =
        asked.fields().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    served.acquire(&serde_json::json!({ "keys": keys }).to_string()).status
}

fn by_path(path: &str, served: &Running, asked: &Asked) -> u16 {
    let headers = asked.headers();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let answer = served.get(path, &headers);
    match (answer.status, answer.field("tollgate-status")) {
        (204, None) => 200,
        (_, Some(told)) => told.parse().unwrap(),
        (status, None) => status,
    }
}

fn by_auth_request(served: &Running, asked: &Asked) -> u16 {
    by_path("/auth_request", served, asked)
}

fn by_authz(served: &Running, asked: &Asked) -> u16 {
    by_path("/authz/any", served, asked)
}

/// Envoy sends what it knows of the request: only the user is an extension of the route.
fn by_check(served: &Running, asked: &Asked) -> u16 {
    let plan = asked.plan.map(|plan| ("x-plan", plan));
    let user = asked.user.map(|user| ("user", user));
    let mut attributes = attributes(asked.client, plan.as_slice(), user.as_slice());
    let http = attributes.request.as_mut().unwrap().http.as_mut().unwrap();
    (http.method, http.path, http.host) = (asked.method.into(), asked.path.into(), format!("{}:443", asked.host));
    match check(served, attributes).unwrap().http_response.unwrap() {
        HttpResponse::DeniedResponse(denied) => u16::try_from(denied.status.unwrap().code).unwrap(),
        _ => 200,
    }
}

/// Envoy answers any denial with 429.
fn by_rate_limit(served: &Running, asked: &Asked) -> u16 {
    match rate_limit(served, request(vec![descriptor(&asked.fields())], 0)) {
        Ok(answer) if answer.overall_code() == Code::Ok => 200,
        Ok(_) => 429,
        Err(status) => panic!("{status:?}"),
    }
}

const WAYS: [(&str, Way); 5] = [
    ("acquire", by_acquire),
    ("auth_request", by_auth_request),
    ("authz", by_authz),
    ("Check", by_check),
    ("ShouldRateLimit", by_rate_limit),
];

/// A server for each way, and the statuses of these requests there.
fn decides(place: &Place, policy: &str, requests: &[(Asked, u16)]) {
    for (name, way) in WAYS {
        let served = place.of(policy);
        for (at, (asked, status)) in requests.iter().enumerate() {
            // A store has the permits of all ways.
            let asked = &Asked { user: asked.user.and(Some(name)), ..*asked };
            let status = if name == "ShouldRateLimit" && *status == 403 { 429 } else { *status };
            assert_eq!(way(&served, asked), status, "{name}: request {at}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_decides_before_any_limit() {
    by_both(|place| {
        let health = Asked { path: "/health?deep", client: "203.0.113.9", ..ALICE };
        let denied = Asked { client: "203.0.113.9", ..ALICE };
        let off = Asked { path: "/export/all?x=y", method: "POST", ..ALICE };
        decides(
            place,
            POLICY,
            &[
                (health, 200),
                (denied, 403),
                (Asked { client: "2001:db8:bad:7::1", ..ALICE }, 403),
                (off, 403),
                // Neither charges: both permits are left.
                (ALICE, 200),
                (Asked { method: "GET", ..off }, 200),
                (ALICE, 429),
                (health, 200),
                (denied, 403),
            ],
        );
    });
}

#[test]
fn a_tier_is_chosen_by_a_match_or_by_the_value_that_names_it() {
    by_both(|place| {
        let pro = Asked { plan: Some("pro"), ..ALICE };
        let gold = Asked { plan: Some("gold"), ..ALICE };
        let login = Asked { path: "/login", ..pro };
        let (own, of_pro) =
            ([(ALICE, 200), (gold, 200), (ALICE, 429)], [(pro, 200), (pro, 200), (pro, 200), (pro, 429)]);
        decides(place, POLICY, &[&own[..], &of_pro[..], &[(login, 200), (login, 429), (gold, 429)]].concat());
    });
}

#[test]
fn a_request_that_no_limit_is_for_is_admitted_and_needs_no_field_of_a_key() {
    by_both(|place| {
        let internal = Asked { client: "10.1.2.3", plan: Some("pro"), ..ALICE };
        let elsewhere = Asked { host: "www.example", ..ALICE };
        let nobody = Asked { user: None, ..elsewhere };
        for (name, way) in WAYS {
            let served = place.of(POLICY);
            let user = Asked { user: Some(name), ..ALICE };
            for asked in [internal, elsewhere].iter().cycle().take(6) {
                assert_eq!(way(&served, asked), 200, "{name}");
            }
            // A descriptor has the fields of a dimension, or is none.
            if name != "ShouldRateLimit" {
                assert_eq!(way(&served, &nobody), 200, "{name}");
                assert_eq!(way(&served, &Asked { user: None, ..ALICE }), 400, "{name}");
            }
            assert_eq!([way(&served, &user), way(&served, &user), way(&served, &user)], [200, 200, 429], "{name}");
        }
    });
}

#[test]
fn clients_are_told_the_quotas_of_their_tier_and_no_number_of_a_rule() {
    by_both(|place| {
        let served = place.of(POLICY);
        let ask = |fields: &str, client: &str| {
            let rest = r#""user": "alice", "host": "api.example", "path": "/", "method": "GET""#;
            served.acquire(&format!(r#"{{"keys": {{{rest}, "client": "{client}"{fields}}}}}"#))
        };
        for left in ["2", "1", "0"] {
            let admitted = ask(r#", "header.x-plan": "pro""#, "192.0.2.1");
            assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"user\";r={left};t=")), "{admitted:?}");
            assert_eq!(admitted.field("ratelimit-policy"), Some(r#""user";q=3;w=86400"#));
        }
        let denied = ask(r#", "header.x-plan": "pro""#, "192.0.2.1");
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["user"]));
        assert_eq!(denied.field("ratelimit-policy"), Some(r#""user";q=3;w=86400"#));
        let own = ask(r#", "header.x-plan": "gold""#, "192.0.2.1");
        assert_eq!(own.field("ratelimit-policy"), Some(r#""user";q=2;w=86400"#));
        assert_eq!([ask("", "192.0.2.1").status, ask("", "192.0.2.1").status], [200, 429]);
        let unlimited = ask("", "10.0.0.1");
        assert_eq!((unlimited.status, unlimited.field("ratelimit")), (200, None));
        let by_rule = ask("", "203.0.113.1");
        assert_eq!((by_rule.status, by_rule.field("retry-after"), by_rule.field("ratelimit")), (403, None, None));
        assert_eq!(by_rule.body, r#"{"title":"Forbidden","status":403}"#);

        let result = |result: &str| served.metric(&format!("tollgate_requests_total{{result=\"{result}\"}}"));
        let results = ["admitted", "quota", "unlimited", "denied_by_rule", "admitted_by_rule"].map(result);
        assert_eq!(results, [5, 2, 1, 1, 0]);
        assert_eq!(served.metric("tollgate_unknown_tiers_total"), 1);
        assert_eq!(served.metric(r#"tollgate_denials_total{dimension="user",quota="user"}"#), 1);
        assert_eq!(served.metric(r#"tollgate_denials_total{dimension="user",tier="pro",quota="user"}"#), 1);
        assert_eq!(served.metric(r#"tollgate_admissions_total{dimension="user"}"#), 5);
    });
}

#[test]
fn a_tier_is_chosen_by_an_entry_of_a_descriptor() {
    let policy = r#"
        [[dimension]]
        name = "tenant"
        quota = [{ limit = 1, per = "1d" }]
        tier_by = "plan"

        [[dimension.tier]]
        name = "pro"
        quota = [{ limit = 3, per = "1d" }, { limit = 2, per = "1h" }]
    "#;
    by_both(|place| {
        let served = place.of(policy);
        let ask = |descriptors| rate_limit(&served, request(descriptors, 0));
        let pro = || descriptor(&[("plan", "pro"), ("tenant", "acme")]);
        // In a descriptor of its own, too.
        for descriptors in [vec![pro()], vec![descriptor(&[("tenant", "acme")]), descriptor(&[("plan", "pro")])]] {
            assert_eq!(ask(descriptors).unwrap().overall_code(), Code::Ok);
        }
        let denied = ask(vec![pro()]).unwrap();
        let limit = denied.statuses[0].current_limit.clone().unwrap();
        assert_eq!(
            (denied.overall_code(), limit.name.as_str(), limit.requests_per_unit),
            (Code::OverLimit, "tenant-1h", 2)
        );
        let policies = r#""tenant-1d";q=3;w=86400, "tenant-1h";q=2;w=3600"#;
        assert_eq!(value(&denied.response_headers_to_add, "ratelimit-policy"), Some(policies));
        let labels = r#"{dimension="tenant",tier="pro",quota="tenant-1h"}"#;
        assert_eq!(served.metric(&format!("tollgate_denials_total{labels}")), 1);
        let own = || ask(vec![descriptor(&[("tenant", "acme")])]).unwrap().overall_code();
        assert_eq!([own(), own()], [Code::Ok, Code::OverLimit]);
        // It names no dimension.
        let alone = ask(vec![descriptor(&[("plan", "pro")])]).unwrap_err();
        assert!(alone.message().contains("no dimension has the entries"), "{alone:?}");
    });
}

#[test]
fn a_client_that_writes_a_field_twice_or_a_long_path_evades_no_rule() {
    by_both(|place| {
        let served = place.of(POLICY);
        let off = Asked { method: "POST", path: "/export/x", ..ALICE }.headers();
        let off: Vec<(&str, &str)> = off.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let with = |path: &str| {
            let others = off.iter().filter(|(name, _)| *name != "x-tollgate-path");
            served.get("/authz", &others.copied().chain([("x-tollgate-path", path)]).collect::<Vec<_>>())
        };
        let long = "x".repeat(3_000);
        for path in [&format!("/export/{long}"), &format!("/export/7?{long}"), "//export/./%37"] {
            assert_eq!(with(path).status, 403, "{path}");
        }
        assert_eq!(with(&format!("/a?{long}")).status, 200);
        for twice in [("x-tollgate-path", "/"), ("x-tollgate-client", "192.0.2.1")] {
            assert_eq!(served.get("/authz", &[&off[..], &[twice]].concat()).status, 400);
        }
        let plans = [("x-plan", "pro"), ("x-plan", "gold")];
        let twice = served.get("/authz", &[&off[..], &plans].concat());
        let detail = twice.problem()["detail"].as_str().map(str::to_owned).unwrap();
        assert!(detail.starts_with("The request has the header field x-plan twice"), "{detail}");
        problem_of(&twice.body, 400);
    });
}

/// A store keeps no shadow mode.
#[test]
fn metrics_count_what_a_dimension_in_shadow_mode_would_deny_and_clients_see_none_of_it() {
    let policy = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 3, per = \"1d\" }]\n\
                  [[dimension]]\nname = \"new\"\nkey = [\"user\"]\nshadow = true\nquota = [{ limit = 1, per = \"1d\" }]\n";
    let served = Running::start(Place::in_process().server(policy));
    for status in [200, 200, 200, 429] {
        let answer = served.get("/authz", &[("x-tollgate-user", "alice")]);
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("ratelimit-policy"), Some(r#""user";q=3;w=86400"#));
    }
    assert_eq!(served.metric(r#"tollgate_requests_total{result="admitted"}"#), 3);
    assert_eq!(served.metric(r#"tollgate_denials_total{dimension="new",quota="new"}"#), 2);
    assert_eq!(served.metric(r#"tollgate_denials_total{dimension="user",quota="user"}"#), 1);
    assert_eq!(served.metric(r#"tollgate_admissions_total{dimension="user"}"#), 3);
    assert_eq!(served.metric(r#"tollgate_admissions_total{dimension="new"}"#), 1);
}
