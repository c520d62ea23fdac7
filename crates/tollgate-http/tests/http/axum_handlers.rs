//! `#[rate_limit]` above handlers of a real server on loopback, asked by a real client.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use tollgate::{Denial, Limiter, MockClock, Quota, rate_limit};
use tollgate_http::Problem;

static CLOCK: LazyLock<MockClock> = LazyLock::new(MockClock::new);
static LIMITER: LazyLock<Limiter<(String, String), MockClock>> = LazyLock::new(|| {
    let quota = Quota::new(2, Duration::from_secs(30));
    Limiter::builder(quota).clock(CLOCK.clone()).build().unwrap()
});

fn user(fields: &HeaderMap) -> &str {
    fields.get("x-user").and_then(|user| user.to_str().ok()).unwrap_or("anonymous")
}

/// Period 30, threshold 2, keyed by user and path.
#[axum::debug_handler]
#[rate_limit(limiter = LIMITER, key = (user(&fields).to_owned(), uri.path().to_owned()))]
async fn page(uri: Uri, fields: HeaderMap) -> Result<String, Problem<'static>> {
    Ok(format!("{} reads {uri}", user(&fields)))
}

/// The same with a limiter of its own, as a service writes it.
#[rate_limit(limit = 2, per = "30s", key = (user, path))]
async fn read(Path((user, path)): Path<(String, String)>) -> Result<String, Problem<'static>> {
    Ok(format!("{user} reads {path}"))
}

enum AppError {
    TooMany(Denial),
    Odd,
}

impl From<Denial> for AppError {
    fn from(denial: Denial) -> Self {
        Self::TooMany(denial)
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        match self {
            Self::TooMany(denial) => Problem::from(denial).into_response(),
            Self::Odd => "odd".into_response(),
        }
    }
}

#[rate_limit(limit = 2, per = "30m", key = number)]
#[axum::debug_handler]
async fn even(Path(number): Path<u64>) -> Result<impl IntoResponse, AppError> {
    if number % 2 == 0 { Ok("even") } else { Err(AppError::Odd) }
}

#[rate_limit(limit = 2, per = "30m", on_denied = |denial| Problem::from(denial).into_response())]
async fn response() -> Response {
    "hello".into_response()
}

#[rate_limit(limit = 5, per = "30m", cost = u32::try_from(body.len()).unwrap_or(u32::MAX))]
async fn upload(body: Bytes) -> Result<Bytes, Problem<'static>> {
    Ok(body)
}

/// A server that answers until the process ends, and its address.
fn serve() -> SocketAddr {
    static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
        let router = Router::new()
            .route("/even/{number}", get(even))
            .route("/read/{user}/{path}", get(read))
            .route("/response", any(response))
            .route("/upload", post(upload))
            .fallback(page);
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        address
    });
    *ADDRESS
}

/// Of a response: its status, the value of a field, and its body.
struct Answer {
    status: u16,
    fields: ureq::http::HeaderMap,
    body: String,
}

impl Answer {
    fn of(mut response: ureq::http::Response<ureq::Body>) -> Self {
        let body = response.body_mut().read_to_string().unwrap();
        Self { status: response.status().as_u16(), fields: response.headers().clone(), body }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().unwrap())
    }
}

fn client() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

fn ask(user: &str, path: &str) -> Answer {
    let request = client().get(format!("http://{}{path}", serve())).header("x-user", user);
    Answer::of(request.call().unwrap())
}

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

#[test]
fn a_threshold_of_two_in_thirty_seconds_is_counted_by_user_and_path() {
    let first = ask("alice", "/a");
    assert_eq!((first.status, &*first.body), (200, "alice reads /a"));
    CLOCK.advance(Duration::from_millis(10_500));
    assert_eq!(ask("alice", "/a").status, 200);

    let denied = ask("alice", "/a");
    assert_eq!(denied.status, 429);
    assert_eq!(denied.field("retry-after"), Some("20"), "19.5 seconds");
    assert_eq!(denied.field("cache-control"), Some("no-store"));
    assert_eq!(denied.field("content-type"), Some("application/problem+json"));
    let body: serde_json::Value = serde_json::from_str(&denied.body).unwrap();
    assert_eq!(body["type"], QUOTA_EXCEEDED);
    assert_eq!((&body["status"], &body["detail"]), (&429.into(), &"Try again in 20 seconds.".into()));

    assert_eq!(ask("alice", "/b").status, 200);
    assert_eq!(ask("bob", "/a").status, 200);
    CLOCK.advance(Duration::from_secs(20));
    assert_eq!(ask("alice", "/a").status, 200, "after the time that the answer told");
    assert_eq!(ask("alice", "/a").field("retry-after"), Some("10"));
}

#[test]
fn connections_share_one_limiter() {
    let admitted_of_fifty = || (0..50).filter(|_| ask("", "/response").status == 200).count();
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(admitted_of_fifty)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 2);
    let denied: serde_json::Value = serde_json::from_str(&ask("", "/response").body).unwrap();
    assert_eq!(denied["type"], QUOTA_EXCEEDED);
}

#[test]
fn an_error_of_the_service_holds_the_denial() {
    assert_eq!([1, 2, 2, 2].map(|number| ask("", &format!("/even/{number}")).status), [200, 200, 200, 429]);
    assert_eq!(ask("", "/even/1").body, "odd");
    assert_eq!(ask("", "/even/1").status, 429);
}

#[test]
fn a_cost_above_the_limit_is_another_answer() {
    let upload = |body: &str| Answer::of(client().post(format!("http://{}/upload", serve())).send(body).unwrap());
    let never = upload("123456");
    assert_eq!((never.status, never.field("retry-after")), (422, None));
    assert_eq!(upload("1234").body, "1234");
    let denied = upload("12");
    assert_eq!((denied.status, denied.field("retry-after").is_some()), (429, true));
    assert_eq!(upload("1").status, 200);
}

#[test]
fn two_in_thirty_seconds_by_user_and_path_as_a_service_writes_it() {
    for round in 0.. {
        let start = Instant::now();
        let read = |name: &str, path: &str| ask("", &format!("/read/{name}-{round}/{path}"));
        let answers: Vec<Answer> = (0..5).map(|_| read("alice", "a")).collect();
        let others = [read("alice", "b").status, read("bob", "a").status];
        if start.elapsed() >= Duration::from_secs(30) {
            // Permits may have come back in between: once more, with users who have asked nothing
            // yet.
            continue;
        }
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 200, 429, 429, 429]);
        assert_eq!(others, [200, 200]);
        assert_eq!(answers[0].body, format!("alice-{round} reads a"));
        for denied in &answers[2..] {
            let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
            assert!((1..=30).contains(&wait), "{wait}");
            assert!(denied.body.contains(QUOTA_EXCEEDED), "{}", denied.body);
        }
        return;
    }
}
