//! The log tells once what is wrong with the set-up.

use std::fmt::{Debug, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tollgate::{Limiter, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer, header};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::layer::support::{Inner, ask, from, get};

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tollgate_tower")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_missing_peer_is_logged_once_with_the_remedy() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_hour(9)).unwrap());
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).key(ClientIp::peer()));
    for _ in 0..3 {
        assert_eq!(ask(&service, from("192.0.2.1")).await.status, 200);
        assert_eq!(ask(&service, get("/")).await.status, 500);
    }
    let logged = log.0.lock().unwrap().clone();
    let [(Level::ERROR, text)] = &logged[..] else { panic!("one error: {logged:?}") };
    assert!(text.contains("into_make_service_with_connect_info::<SocketAddr>()"), "{text}");
}

#[tokio::test]
async fn keys_that_clients_do_not_send_are_not_logged() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let limiter = Arc::new(Limiter::new(Quota::per_hour(9)).unwrap());
    let key = header("x-api-key");
    let service = Inner::default().behind(&RateLimitLayer::new(limiter).key(key));
    assert_eq!(ask(&service, get("/")).await.status, 400);
    assert_eq!(*log.0.lock().unwrap(), []);
}
