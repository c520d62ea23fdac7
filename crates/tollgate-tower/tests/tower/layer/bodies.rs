//! The layer takes requests whose bodies nothing can read.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tollgate::{DirectLimiter, Quota};
use tollgate_tower::RateLimitLayer;
use tower::{Layer, ServiceExt};

/// It has no trait that would let its bytes be read.
struct Sealed(u32);

#[tokio::test]
async fn a_body_that_cannot_be_read_goes_through_or_is_let_go() {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(1)).unwrap());
    let inner = tower::service_fn(async |request: Request<Sealed>| {
        let number = request.into_body().0.to_string();
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(number)))
    });
    let service = RateLimitLayer::new(limiter).layer(inner);
    for (number, status) in [(4711, 200), (4712, 429)] {
        let Ok(response) = service.clone().oneshot(Request::new(Sealed(number))).await;
        assert_eq!(response.status(), status);
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        assert_eq!(body == "4711", status == 200);
    }
}
