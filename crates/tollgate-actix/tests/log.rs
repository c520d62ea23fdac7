//! The log tells once what is wrong with the set-up. The log is of the whole process, so there is
//! one test.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, rt, web};
use log::{Level, LevelFilter, Log, Metadata, Record};
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_actix::{Client, ClientIp, RateLimit, header};

/// Keeps what is logged.
struct Kept(Mutex<Vec<(Level, String)>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

impl Log for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tollgate_actix")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push((record.level(), record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_wrong_set_up_is_logged_once_with_the_remedy_and_a_missing_field_is_not() {
    log::set_logger(&KEPT).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let quota = Quota::per_hour(9);
    let by_peer = RateLimit::new(Arc::new(Limiter::<IpAddr>::new(quota).unwrap())).key(ClientIp::peer());
    let by_field = RateLimit::new(Arc::new(Limiter::new(quota).unwrap())).key(header("x-key"));
    rt::System::new().block_on(async {
        // Two workers.
        for _ in 0..2 {
            let handler = web::to(|| async { "hello" });
            let service = init_service(App::new().wrap(by_peer.clone()).default_service(handler)).await;
            for _ in 0..3 {
                let request = TestRequest::get().peer_addr(([192, 0, 2, 1], 1).into());
                assert_eq!(call_service(&service, request.to_request()).await.status(), 200);
                // What a client sends is not in the log.
                let request = TestRequest::get().uri("/MaRk3r").insert_header(("x-forwarded-for", "MaRk3r"));
                assert_eq!(call_service(&service, request.to_request()).await.status(), 500);
            }
        }
        let handler = web::to(|| async { "hello" });
        let service = init_service(App::new().wrap(by_field).default_service(handler)).await;
        assert_eq!(call_service(&service, TestRequest::get().to_request()).await.status(), 400);

        // As the limit of a scope that is around the whole application, too.
        let limiter = Arc::new(DirectLimiter::new(quota).unwrap());
        let twice = RateLimit::new(Arc::clone(&limiter)).name("twice").unwrap();
        let app = App::new().wrap(twice.clone()).wrap(twice);
        let service = init_service(app.default_service(web::to(|| async { "hello" }))).await;
        for left in [7, 5] {
            assert_eq!(call_service(&service, TestRequest::get().to_request()).await.status(), 200);
            assert_eq!(limiter.peek().remaining(), left, "it charges twice");
        }

        let handler = web::to(|Client(address): Client| async move { address.to_string() });
        let service = init_service(App::new().default_service(handler)).await;
        for _ in 0..2 {
            assert_eq!(call_service(&service, TestRequest::get().to_request()).await.status(), 500);
        }
    });
    let logged = KEPT.0.lock().unwrap().clone();
    let [(Level::Error, text), (Level::Warn, twice), (Level::Warn, same_name), (Level::Error, of_client)] = &logged[..]
    else {
        panic!("two errors and two warnings: {logged:?}")
    };
    assert!(twice.contains("two limits with the same limiter"), "{twice}");
    assert!(same_name.contains("have the name 'twice'"), "{same_name}");
    assert!(of_client.contains("app_data(ClientIp::peer())"), "{of_client}");
    assert!(text.contains("peer_from(|_| Some(Peer::UnixSocket))"), "{text}");
    assert!(!text.contains("MaRk3r"), "{text}");
}
