//! A layer for tower asks the limiter, so its observers see each request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use metrics_exporter_prometheus::PrometheusBuilder;
use tollgate::{Limiter, Quota};
use tollgate_observe::{MetricsObserver, TopDenied};
use tollgate_tower::{RateLimitLayer, ShadowSwitch, header};
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// Without a line of the service's own.
#[tokio::test]
async fn requests_of_a_layer_are_observed() {
    let recorder = PrometheusBuilder::new().build_recorder();
    // The test is one thread.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metrics = Arc::new(MetricsObserver::new("api"));
    let denied = Arc::new(TopDenied::new(9));
    let builder = Limiter::<String>::builder(Quota::per_hour(2).named("keys"));
    let limiter = builder.observer(Arc::clone(&metrics)).observer(Arc::clone(&denied)).build().unwrap();
    let switch = ShadowSwitch::off();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(header("x-api-key")).shadow(switch.clone());
    let layer = layer.skip(|head| head.uri.path() == "/health").cost(|head| u32::from(head.uri.path() != "/free"));
    let service = ServiceBuilder::new().layer(layer).service(service_fn(async |_: Request<Full<Bytes>>| {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("inner")))
    }));
    let ask = async |path: &str, key: Option<&str>| {
        let mut request = Request::get(path).body(Full::default()).unwrap();
        if let Some(key) = key {
            request.headers_mut().insert("x-api-key", key.parse().unwrap());
        }
        let Ok(answer) = service.clone().oneshot(request).await;
        answer.status().as_u16()
    };
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(ask("/", Some("alice")).await);
    }
    // The limiter is not asked.
    answers.extend([ask("/", None).await, ask("/health", None).await, ask("/free", Some("alice")).await]);
    assert_eq!(answers, [200, 200, 429, 400, 200, 200]);
    // The limiter denies, and the layer admits.
    switch.set(true);
    assert_eq!([ask("/", Some("alice")).await, ask("/", None).await], [200, 200]);
    switch.set(false);
    assert_eq!(ask("/", Some("alice")).await, 429);

    assert_eq!(denied.top(9).iter().map(ToString::to_string).collect::<Vec<_>>(), ["3 alice"]);
    let text = recorder.handle().render();
    for line in [
        r#"tollgate_requests_total{policy="api",result="admitted"} 2"#,
        r#"tollgate_requests_total{policy="api",result="quota"} 2"#,
        r#"tollgate_requests_total{policy="api",result="overruled"} 1"#,
        r#"tollgate_requests_total{policy="api",result="skipped"} 2"#,
        r#"tollgate_requests_total{policy="api",result="missing_key"} 2"#,
        r#"tollgate_denials_total{policy="api",dimension="",quota="keys"} 3"#,
    ] {
        assert!(text.lines().any(|is| is == line), "{line} is not in\n{text}");
    }
}
