//! The layers that are compared, each set up as its own documentation advises, with the peer's
//! address as the key.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum_governor::extractor::PeerIp;
use tollgate::{Limiter, Quota};
use tollgate_http::Headers;
use tollgate_tower::{ClientIp, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

use crate::http_layers::scenario::{Around, Scenario, request};

/// The layers that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// No layer.
    None,
    /// tollgate-tower, over the sliding window log.
    Tollgate,
    /// The crate `tower_governor`.
    TowerGovernor,
    /// The crate `axum-governor`.
    AxumGovernor,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Tollgate, Self::TowerGovernor, Self::AxumGovernor];

    /// Those that are layers.
    pub const LAYERS: [Self; 3] = [Self::Tollgate, Self::TowerGovernor, Self::AxumGovernor];

    /// As shown in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::None => "no layer",
            Self::Tollgate => "tollgate-tower",
            Self::TowerGovernor => "tower_governor",
            Self::AxumGovernor => "axum-governor",
        }
    }

    /// Whether it takes part. axum-governor always writes its header fields.
    #[must_use]
    pub const fn takes_part(self, scenario: Scenario) -> bool {
        !matches!(self, Self::AxumGovernor) || scenario.headers
    }

    /// The service of this scenario with this layer around it.
    ///
    /// # Panics
    ///
    /// Never: each layer takes these quotas.
    #[must_use]
    pub fn service(self, scenario: Scenario) -> Box<dyn Requests> {
        let (limit, window) = scenario.quota();
        // One permit is back after that, by the algorithm of the peers.
        let period = window / limit;
        match self {
            Self::None => match scenario.around {
                Around::Service => Box::new(Inner),
                Around::Router => Box::new(router()),
            },
            Self::Tollgate => {
                let limiter = Limiter::<IpAddr>::new(Quota::new(limit, window)).expect("a valid quota");
                let headers = if scenario.headers { Headers::Draft11 } else { Headers::Off };
                let layer = RateLimitLayer::new(Arc::new(limiter)).key(ClientIp::peer()).headers(headers);
                match scenario.around {
                    Around::Service => Box::new(layer.layer(Inner)),
                    Around::Router => Box::new(router().layer(layer)),
                }
            }
            Self::TowerGovernor => {
                let mut builder = GovernorConfigBuilder::default();
                builder.period(period).burst_size(limit);
                match (scenario.headers, scenario.around) {
                    (true, around) => {
                        let config = builder.use_headers().finish().expect("a valid quota");
                        match around {
                            Around::Service => Box::new(GovernorLayer::new(config).layer(Inner)),
                            Around::Router => Box::new(router().layer(GovernorLayer::new(config))),
                        }
                    }
                    (false, around) => {
                        let config = builder.finish().expect("a valid quota");
                        match around {
                            Around::Service => Box::new(GovernorLayer::new(config).layer(Inner)),
                            Around::Router => Box::new(router().layer(GovernorLayer::new(config))),
                        }
                    }
                }
            }
            Self::AxumGovernor => {
                let limit = limit.try_into().expect("not zero");
                let quota = governor::Quota::with_period(period).expect("not zero").allow_burst(limit);
                let config = axum_governor::GovernorConfigBuilder::default()
                    .with_extractor(PeerIp::default())
                    .expect_connect_info()
                    .quota_default(quota.into());
                let layer = axum_governor::GovernorLayer::new(config.finish().expect("a valid set-up"));
                match scenario.around {
                    Around::Service => Box::new(layer.layer(Inner)),
                    Around::Router => Box::new(router().layer(layer)),
                }
            }
        }
    }
}

/// The routes that a layer stands around.
fn router() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// A service that answers at once, as the router's handler does.
#[derive(Debug, Clone, Copy)]
pub struct Inner;

impl Service<Request> for Inner {
    type Response = Response;
    type Error = Infallible;
    type Future = Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        let mut response = Response::new(Body::from("hello"));
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
        ready(Ok(response))
    }
}

/// A service as the rounds see it. The call is dynamic once a round; the loop inside is compiled
/// for each contender.
pub trait Requests {
    /// Makes and sends a request of each of these clients, one after the other, each to a clone of
    /// the service. Gives the number of those that the inner service has answered.
    ///
    /// Requests are made here, as a server makes one when it has dropped the one before: memory
    /// that one gives back serves the next.
    fn send(&self, clients: &[SocketAddr]) -> usize;
}

impl<S, B> Requests for S
where
    S: Service<Request, Response = Response<B>, Error = Infallible> + Clone,
{
    fn send(&self, clients: &[SocketAddr]) -> usize {
        clients.iter().map(|&client| usize::from(one(self, request(client)))).sum()
    }
}

/// Sends a request; whether the inner service has answered it.
fn one<S, B>(service: &S, request: Request) -> bool
where
    S: Service<Request, Response = Response<B>, Error = Infallible> + Clone,
{
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(response)) = pin!(service.clone().oneshot(request)).poll(&mut context) else {
        panic!("all services answer at once");
    };
    match response.status() {
        StatusCode::OK => true,
        StatusCode::TOO_MANY_REQUESTS => false,
        status => panic!("answered with {status}"),
    }
}
