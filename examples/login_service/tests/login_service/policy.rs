//! Each field of the policy file has its effect.

use std::net::SocketAddr;

use login_service::{OneUser, Service};
use tokio::net::TcpListener;
use tollgate::MockClock;
use tollgate_policy::Policy;
use tollgate_tower::ClientAddress;

use crate::curl;

/// Serves the example's policy with a field before it and a penalty behind two dimensions. Time
/// stands still.
async fn serve(before: &str, penalty: &str) -> SocketAddr {
    let text = include_str!("../../policy.toml");
    let [login, key] = ["quota = [{ limit = 5, per = \"1m\" }]", "{ limit = 100, per = \"1m\" }]"];
    assert!([login, key].iter().all(|quotas| text.matches(quotas).count() == 1));
    let text = text.replace(login, &format!("{login}\n{penalty}")).replace(key, &format!("{key}\n{penalty}"));
    let policy = Policy::from_toml(&format!("{before}\n{text}")).unwrap();
    let app = Service::new(&policy, ClientAddress::peer(), OneUser, MockClock::new()).unwrap().clients();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await });
    address
}

/// The statuses of so many requests, each with its `Retry-After`.
fn ask(address: SocketAddr, request: &str, times: usize) -> Vec<String> {
    let command = format!("curl -s -o /dev/null -w '%{{http_code}} %header{{retry-after}}\\n' {request}?[1-{times}]");
    let printed = tokio::task::block_in_place(|| curl::run(&command, address));
    printed.lines().map(|line| line.trim().to_owned()).collect()
}

fn guess(user: &str) -> String {
    format!("-X POST -u {user}:guess http://127.0.0.1:3000/login")
}

fn call(key: &str) -> String {
    format!("-H 'x-api-key: {key}' http://127.0.0.1:3000/api/time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_shadow_mode_no_request_is_denied() {
    let address = serve("shadow = true", "").await;
    assert_eq!(ask(address, &guess("alice"), 8), ["401"; 8]);
    assert_eq!(ask(address, &call("demo"), 12), ["200"; 12]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_penalty_blocks_users_and_api_keys() {
    let address = serve("", "penalty = { denials = 2, within = \"1m\", blocked_for = \"1h\" }").await;
    assert_eq!(ask(address, &guess("alice"), 7)[5..], ["429 60", "429 3600"]);
    assert_eq!(ask(address, &call("demo"), 12)[10..], ["429 1", "429 3600"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_on_keys_holds_with_its_answer() {
    for (at_key_cap, log_in, answer) in [("deny", "503 1", "503 1"), ("admit", "401", "200")] {
        let with_cap = |cap: u32| format!("key_cap = {cap}\nat_key_cap = \"{at_key_cap}\"");
        let address = serve(&with_cap(4), "").await;
        let users = ["alice", "bob", "carol"].map(|user| ask(address, &guess(user), 1).remove(0));
        // A user at an address is one key, and the address, its site and its provider are others.
        assert_eq!(users, ["401", log_in, log_in], "{at_key_cap}");
        // An API key and the endpoint are two.
        let address = serve(&with_cap(2), "").await;
        let keys = ["demo", "another"].map(|key| ask(address, &call(key), 1).remove(0));
        assert_eq!(keys, ["200", answer], "{at_key_cap}");
    }
}
