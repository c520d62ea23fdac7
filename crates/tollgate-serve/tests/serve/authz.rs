//! `/auth_request` and `/authz`, asked by a client in place of a proxy.

use crate::place::by_both;
use crate::support::{Answer, POLICY, Running, problem_of};

const ALICE: [(&str, &str); 2] = [("x-tollgate-client", "192.0.2.1"), ("x-tollgate-user", "alice")];

#[test]
fn nginx_gets_204_or_403_and_what_the_client_is_to_get() {
    by_both(|place| {
        let served = place.of(POLICY);
        for left in ["2", "1", "0"] {
            let admitted = served.get("/auth_request", &ALICE);
            assert_eq!((admitted.status, admitted.body.as_str()), (204, ""));
            assert!(admitted.field("ratelimit").unwrap().starts_with(&format!("\"user\";r={left};t=")));
            assert_eq!(admitted.field("tollgate-status"), None);
        }
        let denied = served.get("/auth_request", &ALICE);
        assert_eq!((denied.status, denied.body.as_str()), (403, ""));
        assert_eq!(denied.field("tollgate-status"), Some("429"));
        assert!(denied.field("retry-after").is_some());
        let problem = problem_of(denied.field("tollgate-problem").unwrap(), 429);
        assert_eq!(problem["violated-policies"], serde_json::json!(["user"]));
    });
}

#[test]
fn envoy_gets_the_answer_for_the_client_whatever_path_and_method_it_asks_for() {
    by_both(|place| {
        let served = place.of(POLICY);
        for path in ["/authz", "/authz/", "/authz/metrics?x=y"] {
            assert_eq!(served.get(path, &ALICE).status, 200);
        }
        let denied = served.get("/authz/health", &ALICE);
        assert_eq!(denied.status, 429);
        assert_eq!(denied.problem()["violated-policies"], serde_json::json!(["user"]));
        // Not a path below.
        assert_eq!(served.get("/authzebra", &ALICE).status, 404);
        let text = served.raw(b"DELETE /authz/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    });
}

#[test]
fn a_field_that_is_missing_or_malformed_is_refused_and_charges_nothing() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        let long = "x".repeat(1025);
        let bad: [&[(&str, &str)]; 7] = [
            &[],
            &[("x-tollgate-client", "192.0.2.1")],
            &[("x-tollgate-client", "192.0.2.1"), ("x-tollgate-user", "")],
            &[("x-tollgate-client", "192.0.2.1"), ("x-tollgate-user", "alice"), ("x-tollgate-user", "alice")],
            &[("x-tollgate-client", "192.0.2.1, here"), ("x-tollgate-user", "alice")],
            &[("x-tollgate-client", "192.0.2.1"), ("x-tollgate-user", &long)],
            &[("x-tollgate-client", "here"), ("x-tollgate-user", "alice")],
        ];
        for fields in bad {
            let answer = served.get("/authz", fields);
            assert_eq!(answer.status, 400, "{fields:?}");
            // It goes to clients, and does not tell how the server is set up.
            assert_eq!(answer.body, r#"{"title":"Bad Request","status":400}"#);
            let answer = served.get("/auth_request", fields);
            assert_eq!((answer.status, answer.field("tollgate-status")), (403, Some("400")), "{fields:?}");
        }
        assert_eq!(served.metric(r#"tollgate_requests_total{result="missing_key"}"#), 6);
        assert_eq!(served.metric(r#"tollgate_requests_total{result="malformed"}"#), 8);
        for _ in 0..3 {
            assert_eq!(served.get("/authz", &ALICE).status, 200);
        }
    });
}

#[test]
fn another_header_field_takes_the_place_of_the_usual_one() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).header("user", "x-api-key").unwrap());
        let client = ("x-tollgate-client", "192.0.2.1");
        assert_eq!(served.get("/authz", &[client, ("X-Api-Key", "k")]).status, 200);
        let refused = served.get("/authz", &[client, ("x-tollgate-user", "k")]);
        assert_eq!(refused.status, 400);
        // The client is to send it, so that the answer tells which it is.
        let detail = |answer: &Answer| answer.problem()["detail"].as_str().map(str::to_owned);
        assert_eq!(detail(&refused).as_deref(), Some("The request needs the header field x-api-key."));
        let twice = served.get("/authz", &[client, ("x-api-key", "k"), ("x-api-key", "k")]);
        assert!(detail(&twice).unwrap().starts_with("The request has the header field x-api-key twice"));
        // How a proxy sends the other is a matter of the set-up.
        let refused = served.get("/authz", &[("x-api-key", "k")]);
        assert_eq!((refused.status, &*refused.body), (400, r#"{"title":"Bad Request","status":400}"#));
    });
}
