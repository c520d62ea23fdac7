//! Keys of requests written by hand: of several parts, by path, of users that are only claimed, and
//! in a queue.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer, extension, header, path};

use crate::common::items;
use crate::served::support::{raw, raw_status, serve};

fn app() -> Router {
    Router::new().fallback(|| async { "hello" })
}

#[tokio::test]
async fn parts_of_a_key_do_not_run_into_one_another_on_the_wire() {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    let [user, tenant] = ["x-user", "x-tenant"].map(|name| header(name));
    let address = serve(app().layer(RateLimitLayer::new(limiter).key((user, tenant)))).await;
    let request =
        |user: &str, tenant: &str| format!("GET / HTTP/1.1\nHost: localhost\nX-User: {user}\nX-Tenant: {tenant}");
    let keys = [("a", "bc"), ("ab", "c"), ("abc", "a"), ("bc", "a"), ("a,b", "c"), ("a", "b,c")];
    for status in [200, 429] {
        for (user, tenant) in keys {
            assert_eq!(raw_status(address, &request(user, tenant)).await, status, "{user} {tenant}");
        }
    }
}

#[tokio::test]
async fn paths_that_mean_the_same_share_a_limit_on_the_wire() {
    let limiter = Arc::new(Limiter::new(Quota::per_hour(1)).unwrap());
    let address = serve(app().layer(RateLimitLayer::new(Arc::clone(&limiter)).key(path()))).await;
    for (target, status) in [
        ("/login", 200),
        ("/login?attempt=2", 429),
        ("/%6cogin", 429),
        ("/%6Cogin/", 429),
        ("//login", 429),
        ("/./login", 429),
        ("/x/../login", 429),
        ("/x/%2e%2E/login", 429),
        ("http://localhost/login", 429),
        ("/Login", 200),
        ("/login%2f", 200),
        ("/login/more", 200),
    ] {
        let request = format!("GET {target} HTTP/1.1\nHost: localhost");
        assert_eq!(raw_status(address, &request).await, status, "{target}");
    }
    assert_eq!(limiter.counts().live_keys, 4);
}

#[tokio::test]
async fn no_request_waits_for_a_leaky_queue() {
    let quota = Quota::leaky_queue(1, Duration::from_secs(3_600), Duration::from_secs(360_000));
    let layer = RateLimitLayer::new(Arc::new(DirectLimiter::new(quota).unwrap()));
    let address = serve(app().layer(layer)).await;
    let request = "GET / HTTP/1.1\nHost: localhost";
    assert_eq!(raw_status(address, request).await, 200);
    // There is room for a hundred in the queue, and each would wait an hour.
    for n in 0..20 {
        let response = raw(address, request).await;
        assert!(response.starts_with("HTTP/1.1 429 "), "request {n}: {response}");
        let wait: u64 = field(&response, "retry-after").unwrap().parse().unwrap();
        assert!((1..=3_600).contains(&wait), "the places before were not taken: {wait}");
    }
}

/// The value of a field in the head of a response.
fn field<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = response.split_once("\r\n\r\n").unwrap();
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A user that was authenticated.
#[derive(Clone)]
struct User(String);

/// Lets requests pass that have the password of the user that they claim to be.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let user = authenticated(request.headers()).ok_or(StatusCode::UNAUTHORIZED)?;
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

fn authenticated(fields: &HeaderMap) -> Option<User> {
    let user = fields.get("x-user")?.to_str().ok()?;
    (fields.get("x-password")? == "right").then(|| User(user.to_owned()))
}

/// A service with a limit by address, authentication inside of it, and a limit by user inside of
/// that.
async fn with_users() -> (SocketAddr, Arc<Limiter<String>>) {
    let by_address = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(100)).unwrap());
    let by_user = Arc::new(Limiter::new(Quota::per_hour(3)).unwrap());
    let users = RateLimitLayer::new(Arc::clone(&by_user)).name("user").unwrap();
    let addresses = RateLimitLayer::new(by_address).name("address").unwrap();
    let app = app()
        .layer(users.key(extension(|User(name): &User| name.clone())))
        .layer(middleware::from_fn(authenticate))
        .layer(addresses.key(ClientIp::peer()));
    (serve(app).await, by_user)
}

#[tokio::test]
async fn a_401_tells_nothing_of_the_user_that_was_claimed() {
    let (address, by_user) = with_users().await;
    let request = |password: &str| format!("GET / HTTP/1.1\nHost: localhost\nX-User: alice\nX-Password: {password}");
    let names = |response: &str| {
        let names = |name| items(field(response, name).unwrap()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("ratelimit"), names("ratelimit-policy"));
        names("ratelimit")
    };
    // Alice's traffic, until none is left. In between, guesses are told of their own address alone.
    for left in (0..3).rev() {
        let guess = raw(address, &request("guess")).await;
        assert!(guess.starts_with("HTTP/1.1 401 "), "{guess}");
        assert_eq!(names(&guess), ["address"]);
        assert_eq!(by_user.peek("alice").remaining(), left + 1, "a guess costs nothing of hers");
        let hers = raw(address, &request("right")).await;
        assert!(hers.starts_with("HTTP/1.1 200 "), "{hers}");
        assert_eq!(hers.matches("\r\nratelimit: ").count(), 2, "{hers}");
        assert!(hers.contains(&format!("\"user\";r={left};")), "{hers}");
    }
    assert_eq!(raw_status(address, &request("right")).await, 429);
    let guess = raw(address, &request("guess")).await;
    assert!(guess.starts_with("HTTP/1.1 401 "), "not 429, which would tell of hers: {guess}");
    assert_eq!(names(&guess), ["address"]);
    assert_eq!(field(&guess, "retry-after"), None);
}
