use std::net::IpAddr;
use std::sync::Arc;

use tollgate::{JointLimiter, Limiter};
use tollgate_tower::{ClientIp, Head, RateLimitLayer};
use tower::Layer;

fn in_front_of_a_service(_: impl Layer<()>) {}

fn no_key(limiter: Arc<Limiter<IpAddr>>) {
    in_front_of_a_service(RateLimitLayer::new(limiter));
}

fn no_keys(limiter: Arc<JointLimiter<(IpAddr, u64)>>) {
    in_front_of_a_service(RateLimitLayer::new(limiter));
}

fn a_closure(limiter: Arc<Limiter<IpAddr>>) {
    let _ = RateLimitLayer::new(limiter).key(|_: &Head<'_>| Ok(IpAddr::from([0; 4])));
}

fn one_extractor_for_dimensions(limiter: Arc<JointLimiter<(IpAddr, u64)>>) {
    let _ = RateLimitLayer::new(limiter).key(ClientIp::peer());
}

fn main() {}
