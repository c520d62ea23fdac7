//! An admitted request costs no allocation.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;
use actix_web::{Error, HttpResponse};
use allocation_counter::measure;
use tollgate::{JointLimiter, Limiter, Quota};
use tollgate_actix::{ClientIp, RateLimit, header, path};
use tollgate_http::{Headers, TrustedProxies};

struct Inner;

impl Service<ServiceRequest> for Inner {
    type Response = ServiceResponse;
    type Error = Error;
    type Future = Ready<Result<ServiceResponse, Error>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        // So that the map of fields is there, and has room.
        let mut response = HttpResponse::Ok();
        for name in ["content-type", "etag", "vary", "server"] {
            response.insert_header((name, "x"));
        }
        ready(Ok(request.into_response(response.finish())))
    }
}

/// The allocations of one request, after others.
fn allocations<S, B>(service: &S) -> u64
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut once = || {
        let request = TestRequest::with_uri("/a/%62/../c").peer_addr(([10, 0, 0, 1], 1).into());
        // Values share their text, as those do that servers read.
        let fields = [("x-forwarded-for", "192.0.2.7, 10.1.1.1"), ("x-api-key", "k-123")];
        let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let request = fields.into_iter().fold(request, TestRequest::insert_header).to_srv_request();
        let mut response = None;
        let info = measure(|| {
            let mut future = pin!(service.call(request));
            let Poll::Ready(Ok(answer)) = future.as_mut().poll(&mut context) else { panic!("the answer is ready") };
            response = Some(answer);
        });
        assert!(response.is_some_and(|response| response.status().is_success()));
        info.count_total
    };
    // The key is new, and its ring grows.
    for _ in 0..100 {
        once();
    }
    once()
}

/// The allocation of a key that is the text of a header field.
const TEXT_OF_KEY: u64 = 1;

fn clients() -> ClientIp {
    ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"]).unwrap())
}

#[test]
fn for_an_admitted_request_there_is_none_but_for_a_list_of_all_limits() {
    let of_inner = allocations(&Inner);
    let quotas = [Quota::per_hour(100_000), Quota::per_day(1_000_000)];
    for (headers, all, list) in [
        (Headers::Off, false, 0),
        (Headers::Draft11, false, 0),
        (Headers::XRateLimit, false, 0),
        (Headers::Draft11, true, 1),
    ] {
        let text = format!("{headers:?}, all limits: {all}");
        let limiter = Limiter::<(IpAddr, _)>::builder(quotas[0]).and(quotas[1]).build().unwrap();
        let limit = RateLimit::new(Arc::new(limiter)).key((clients(), path())).headers(headers).all_limits(all);
        let service = limit.new_transform(Inner).into_inner().unwrap();
        assert_eq!(allocations(&service), of_inner + list, "{text}");

        let joint = JointLimiter::builder().dimension("key", quotas).dimension("address", quotas).build().unwrap();
        let key = (header("x-api-key"), clients());
        let limit = RateLimit::new(Arc::new(joint)).key(key).headers(headers).all_limits(all);
        let service = limit.new_transform(Inner).into_inner().unwrap();
        assert_eq!(allocations(&service), of_inner + TEXT_OF_KEY + list, "joint, {text}");
    }
}
