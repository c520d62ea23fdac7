//! `#[rate_limit]` above handlers of a real server.

use std::sync::LazyLock;
use std::time::Duration;

use crate::server::Server;
use actix_web::{App, HttpRequest, HttpResponse, Responder, ResponseError, get, post, web};
use tollgate::{Denial, Limiter, MockClock, Quota, rate_limit};
use tollgate_actix::Denied;

static CLOCK: LazyLock<MockClock> = LazyLock::new(MockClock::new);
static LIMITER: LazyLock<Limiter<(String, String), MockClock>> = LazyLock::new(|| {
    let quota = Quota::new(2, Duration::from_secs(30));
    Limiter::builder(quota).clock(CLOCK.clone()).build().unwrap()
});

fn user(request: &HttpRequest) -> &str {
    request.headers().get("x-user").and_then(|user| user.to_str().ok()).unwrap_or("anonymous")
}

/// Period 30, threshold 2, keyed by user and path.
#[get("/pages/{page}")]
#[rate_limit(limiter = LIMITER, key = (user(&request).to_owned(), request.path().to_owned()))]
async fn page(request: HttpRequest) -> Result<impl Responder, Denied> {
    Ok(format!("{} reads {}", user(&request), request.path()))
}

/// As above, with the attributes in the other order.
#[rate_limit(limit = 2, per = "30m", key = (user(&request), *number))]
#[get("/numbers/{number}")]
async fn number(request: HttpRequest, number: web::Path<u64>) -> Result<impl Responder, AppError> {
    if request.query_string().is_empty() { Ok(number.to_string()) } else { Err(AppError::Query) }
}

#[derive(Debug)]
enum AppError {
    Denied(Denied),
    Query,
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not possible")
    }
}

impl From<Denial> for AppError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial.into())
    }
}

impl ResponseError for AppError {
    fn error_response(&self) -> HttpResponse {
        match self {
            Self::Denied(denied) => denied.error_response(),
            Self::Query => HttpResponse::BadRequest().finish(),
        }
    }
}

#[post("/upload")]
#[rate_limit(limit = 5, per = "30m", cost = u32::try_from(body.len()).unwrap_or(u32::MAX))]
async fn upload(body: web::Bytes) -> Result<web::Bytes, Denied> {
    Ok(body)
}

#[rate_limit(limit = 1, per = "30m", on_denied = |denial| Denied::from(denial).error_response())]
async fn response() -> HttpResponse {
    HttpResponse::Ok().body("hello")
}

fn serve() -> Server {
    let routes =
        || App::new().service(page).service(number).service(upload).route("/response", web::get().to(response));
    Server::of(routes)
}

#[test]
fn a_denied_call_is_answered_as_the_middleware_answers() {
    let server = serve();
    let ask = |user, path| server.get(path, &[("x-user", user)]);
    assert_eq!(ask("alice", "/pages/a").body, "alice reads /pages/a");
    CLOCK.advance(Duration::from_millis(10_500));
    assert_eq!(ask("alice", "/pages/a").status, 200);
    let denied = ask("alice", "/pages/a");
    assert_eq!((denied.status, denied.field("retry-after")), (429, Some("20")));
    assert_eq!(denied.field("content-type"), Some("application/problem+json"));
    assert_eq!(denied.field("cache-control"), Some("no-store"));
    assert_eq!(denied.json()["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!([ask("alice", "/pages/b").status, ask("bob", "/pages/a").status], [200, 200]);
    CLOCK.advance(Duration::from_secs(20));
    assert_eq!(ask("alice", "/pages/a").status, 200, "after the time that the answer told");
}

#[test]
fn attributes_stand_in_any_order_and_errors_of_the_service_hold_the_denial() {
    let server = serve();
    let statuses = ["/numbers/1", "/numbers/1?x", "/numbers/1", "/numbers/2"].map(|path| server.status(path));
    assert_eq!(statuses, [200, 400, 429, 200]);
    assert_eq!(server.get("/numbers/1", &[]).json()["status"], 429);
}

#[test]
fn a_function_that_returns_a_response_answers_by_on_denied() {
    let server = serve();
    assert_eq!(server.admitted_of(40, 4, "/response"), 1, "of all workers together");
    assert_eq!(server.get("/response", &[]).json()["status"], 429);
}

#[test]
fn a_cost_above_the_limit_is_another_answer() {
    let server = serve();
    let send = |body: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let response = agent.post(format!("http://{}/upload", server.address)).send(body).unwrap();
        (response.status().as_u16(), response.headers().contains_key("retry-after"))
    };
    assert_eq!(send("123456"), (422, false));
    assert_eq!(send("12345"), (200, false));
    assert_eq!(send("1"), (429, true));
}
