//! The example of a log-in whose name is in the body stops what attackers try.

#[allow(dead_code, reason = "the example has a `main`")]
#[path = "../../../examples/axum_state.rs"]
mod example;

use http::{Method, Request};
use http_body_util::Full;

use crate::common::Answer;
use crate::served::support::{Connection, get, serve};

async fn log_in(client: &mut Connection, name: &str, password: &str) -> Answer {
    let (mut head, _) = get("/login").into_parts();
    head.method = Method::POST;
    head.headers.insert("content-type", "application/json".parse().unwrap());
    let body = serde_json::to_vec(&[name, password]).unwrap();
    client.send(Request::from_parts(head, Full::from(body))).await
}

#[tokio::test]
async fn one_address_tries_few_passwords_and_few_names_and_hurts_nobody_else() {
    let address = serve(example::app().unwrap()).await;
    let mut attacker = Connection::open(address).await;
    let mut victim = Connection::open_from([127, 0, 0, 2].into(), address).await;

    let mut statuses = Vec::new();
    for name in ["alice", "ALICE", " alice", "Alice ", "alice", "aLiCe"] {
        statuses.push(log_in(&mut attacker, name, "guess").await.status.as_u16());
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    // The right password is not told from a wrong one.
    let denied = log_in(&mut attacker, "alice", "open sesame").await;
    assert_eq!(denied.status, 429);
    assert!(denied.one("ratelimit").starts_with("\"login\";r=0;"), "{denied:?}");

    // The five are among the thirty of the address.
    let mut checked = 0;
    for name in 0..100 {
        checked += u32::from(log_in(&mut attacker, &format!("user-{name}"), "guess").await.status == 401);
    }
    assert_eq!(checked, 25);

    // Log-ins that succeed are refunded.
    for _ in 0..40 {
        assert_eq!(log_in(&mut victim, "alice", "open sesame").await.status, 200);
    }
}
