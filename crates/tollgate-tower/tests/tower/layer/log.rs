//! The log tells once what is wrong with the set-up.

use std::fmt::{Debug, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tollgate::{Limiter, Quota};
use tollgate_tower::{ClientIp, Headers, RateLimit, RateLimitLayer, header};
use tower::{Layer, ServiceBuilder};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::layer::nested::limit;
use crate::layer::support::{Inner, ask, from, get, with};

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
    assert!(text.contains("for want of the address of the client"), "{text}");
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

/// As the layer of a nest that is around all routes, too. It charges twice, so that no request of
/// a handler's own gets around it.
#[tokio::test]
async fn a_layer_that_stands_twice_around_a_route_charges_twice_and_is_logged_once() {
    for headers in [Headers::Draft11, Headers::Off] {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let layer = limit(20).headers(headers);
        let limiter = Arc::clone(layer.limiter());
        let inner: RateLimit<_, _> = Inner::default().behind(&layer.clone().cost(|_| 1));
        let service = layer.layer(inner);
        for left in [18, 16, 14] {
            assert_eq!(ask(&service, get("/")).await.status, 200);
            assert_eq!(limiter.peek().remaining(), left);
        }
        let logged = log.0.lock().unwrap().clone();
        let [(Level::WARN, text)] = &logged[..] else { panic!("one warning: {logged:?}") };
        assert!(text.contains("two limits with the same limiter"), "{text}");
    }
}

#[tokio::test]
async fn layers_that_share_a_limiter_side_by_side_or_where_one_skips_are_not_logged() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let layer = limit(20);
    let side = [layer.clone(), layer.clone()].map(|layer| -> RateLimit<_, _> { Inner::default().behind(&layer) });
    let free = layer.clone().skip(|head| head.uri.path() == "/free");
    let skips = free.layer(Inner::default().behind::<_, RateLimit<_, _>>(&layer));
    for service in side {
        assert_eq!(ask(&service, get("/")).await.status, 200);
    }
    assert_eq!(ask(&skips, get("/free")).await.status, 200);
    assert_eq!((layer.limiter().peek().remaining(), log.0.lock().unwrap().len()), (17, 0));
}

#[tokio::test]
async fn two_limits_of_one_name_are_logged_once() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let named = |name: &str| limit(9).name(name).unwrap();
    let layers = ServiceBuilder::new().layer(named("one name")).layer(named("another")).layer(named("one name"));
    let service = Inner::default().behind(&layers);
    for _ in 0..3 {
        assert_eq!(ask(&service, get("/")).await.status, 200);
    }
    let foreign = with(get("/"), "inner-ratelimit-policy", r#""foreign";q=2;w=5"#);
    assert_eq!(ask(&Inner::default().behind(&named("not foreign")), foreign).await.status, 200);
    let logged = log.0.lock().unwrap().clone();
    let [(Level::WARN, text)] = &logged[..] else { panic!("one warning: {logged:?}") };
    assert!(text.contains("have the name 'one name'"), "{text}");
}
