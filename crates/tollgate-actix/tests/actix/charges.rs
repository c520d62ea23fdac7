//! What handlers have of a limit: a charge of their own, the decision, the client's address, and their part in refunds
//! and costs.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::server::{Server, item};
use actix_web::{App, HttpResponse, Responder, ResponseError, web};
use tollgate::{DirectLimiter, Limiter, MockClock, Quota};
use tollgate_actix::{
    Admitted, Client, ClientIp, DenialKind, Headers, RateLimit, Rejected, ShadowSwitch, TrustedProxies,
};

type Attempts = RateLimit<Limiter<(String, IpAddr), MockClock>>;

fn attempts(limit: u32) -> Attempts {
    let limiter = Limiter::builder(Quota::per_hour(limit)).clock(MockClock::new()).build().unwrap();
    RateLimit::new(Arc::new(limiter))
}

fn direct(limit: u32) -> Arc<DirectLimiter<MockClock>> {
    Arc::new(DirectLimiter::with_clock(Quota::per_hour(limit), MockClock::new()).unwrap())
}

async fn log_in(
    attempts: web::Data<Attempts>,
    Client(address): Client,
    password: web::Path<String>,
) -> Result<impl Responder, Rejected> {
    let charge = attempts.charge(("alice".to_owned(), address))?;
    Ok(if *password == "sesame" {
        charge.refund().on(HttpResponse::Ok().body("welcome"))
    } else {
        charge.keep().on(HttpResponse::Unauthorized().body("wrong"))
    })
}

#[test]
fn a_log_in_charges_by_name_and_address_and_the_answer_tells() {
    let attempts = web::Data::new(attempts(2));
    let clients = ClientIp::behind(TrustedProxies::new(["127.0.0.0/8"]).unwrap());
    let server = Server::of(move || {
        let app = App::new().app_data(attempts.clone()).app_data(clients.clone());
        app.route("/{password}", web::get().to(log_in))
    });
    for (client, path, status, left) in [
        ("192.0.2.1", "/sesame", 200, 2),
        ("192.0.2.1", "/guess", 401, 1),
        ("192.0.2.1", "/sesame", 200, 1),
        ("192.0.2.1", "/guess", 401, 0),
        ("192.0.2.1", "/sesame", 429, 0),
        ("192.0.2.2", "/sesame", 200, 2),
    ] {
        let answer = server.get(path, &[("x-forwarded-for", client)]);
        assert_eq!(answer.status, status);
        assert_eq!(answer.list("ratelimit"), [item("default", [("r", left), ("t", 3600)])]);
        assert_eq!(answer.list("ratelimit-policy"), [item("default", [("q", 2), ("w", 3600)])]);
        if status == 429 {
            assert_eq!(answer.field("retry-after"), Some("3600"));
            assert_eq!(answer.field("cache-control"), Some("no-store"));
            assert_eq!(answer.field("content-type"), Some("application/problem+json"));
            assert!(answer.body.contains(r#""violated-policies":["default"]"#), "{}", answer.body);
        }
    }
}

#[test]
fn hanging_up_while_the_password_is_checked_keeps_the_charge() {
    let limiter = direct(5);
    let limit = RateLimit::new(Arc::clone(&limiter));
    let call = || async {
        let charge = limit.charge(())?;
        std::future::pending::<()>().await;
        Ok::<_, Rejected>(charge.refund())
    };
    let mut context = Context::from_waker(Waker::noop());
    // The client closes its connection, and the server drops the handler.
    let started = (0..30).filter(|_| Box::pin(call()).as_mut().poll(&mut context).is_pending()).count();
    assert_eq!((started, limiter.peek().remaining()), (5, 0));
}

/// As much as is charged in the end is told: less than the estimate, or more than there is.
#[test]
fn a_charge_is_settled_at_the_actual_cost() {
    let limiter = direct(10);
    let limit = RateLimit::new(Arc::clone(&limiter)).headers(Headers::XRateLimit);
    for (estimate, actual, left) in [(6, 2, 8), (3, 3, 5), (1, 2, 3), (2, 30, 0)] {
        let mut fields = actix_web::http::header::HeaderMap::new();
        limit.charge_n((), estimate).unwrap().settle(actual).write_to(&mut fields);
        assert_eq!(fields.get("x-ratelimit-remaining").unwrap(), &*left.to_string());
        assert_eq!(limiter.peek().remaining(), left);
    }
    assert!(limit.charge(()).is_err());
    let _ = limit.charge_n((), 0).unwrap().settle(5);
}

#[test]
fn costs_denials_and_switches() {
    let limiter = direct(3);
    let limit = RateLimit::new(Arc::clone(&limiter)).headers(Headers::XRateLimit);
    let mut charge = limit.charge_n((), 2).unwrap();
    charge.more(9);
    assert_eq!(limiter.peek().remaining(), 0, "what was left is taken");
    let mut fields = actix_web::http::header::HeaderMap::new();
    charge.keep().write_to(&mut fields);
    assert_eq!(fields.get("x-ratelimit-remaining").unwrap(), "0");
    let denied = limit.charge(()).unwrap_err();
    assert_eq!((denied.kind(), denied.retry_after()), (DenialKind::Quota, Some(3600)));
    assert_eq!(denied.to_string(), "the call is denied: try again in 3600 s");
    assert_eq!(limit.charge_n((), 4).unwrap_err().status_code(), 422);
    assert!(limit.charge_n((), 0).is_ok(), "no cost, no question");
    let switch = ShadowSwitch::on();
    let mut none = actix_web::http::header::HeaderMap::new();
    limit.shadow(switch.clone()).charge(()).unwrap().keep().write_to(&mut none);
    assert_eq!((none.len(), switch.overruled()), (0, 1));
}

#[test]
fn without_rules_or_an_address_the_answer_is_500_and_tells_nothing() {
    let server = Server::of(|| {
        App::new().default_service(web::to(|Client(address): Client| async move { address.to_string() }))
    });
    let answer = server.get("/", &[]);
    assert_eq!((answer.status, &*answer.body), (500, r#"{"title":"Internal Server Error","status":500}"#));
}

/// An extension of the answer.
struct Tokens(u32);

/// Serves answers that cost what their path says.
fn costly(limit: RateLimit<DirectLimiter<MockClock>>) -> Server {
    Server::of(move || {
        let answer = |tokens: web::Path<u32>| async move {
            let mut response = HttpResponse::Ok().finish();
            response.extensions_mut().insert(Tokens(*tokens));
            response
        };
        App::new().route("/{tokens}", web::get().to(answer)).wrap(limit.clone())
    })
}

#[test]
fn an_extension_of_the_answer_decides_the_refund() {
    let limit = RateLimit::new(direct(1));
    let server = costly(limit.refund_when(|answer| answer.extensions.get().is_some_and(|&Tokens(it)| it == 0)));
    assert_eq!(["/0", "/0", "/1", "/0"].map(|path| server.status(path)), [200, 200, 200, 429]);
}

#[test]
fn a_cost_that_the_answer_tells_is_charged_then() {
    let limit = RateLimit::new(direct(100));
    let server = costly(limit.cost_after(|answer| answer.extensions.get().map_or(0, |&Tokens(tokens)| tokens)));
    for (path, left) in [("/39", 60), ("/1000", 0)] {
        assert_eq!(server.get(path, &[]).list("ratelimit"), [item("default", [("r", left), ("t", 3600)])]);
    }
    assert_eq!(server.status("/0"), 429);
}

#[test]
fn a_handler_is_told_the_permits_left_and_the_policy_may_be_on_denials_alone() {
    let limit = RateLimit::new(direct(2)).tell_handlers(true).policy_on_denial(true);
    let server = Server::of(move || {
        let left = |admitted: web::ReqData<Admitted>| async move {
            format!("{} of {} left", admitted.remaining(), admitted.limit())
        };
        App::new().route("/", web::get().to(left)).wrap(limit.clone())
    });
    for expected in ["1 of 2 left", "0 of 2 left"] {
        let answer = server.get("/", &[]);
        assert_eq!((&*answer.body, answer.field("ratelimit-policy")), (expected, None));
        assert!(answer.field("ratelimit").is_some());
    }
    let denied = server.get("/", &[]);
    assert_eq!((denied.status, denied.field("ratelimit-policy")), (429, Some(r#""default";q=2;w=3600"#)));
}
