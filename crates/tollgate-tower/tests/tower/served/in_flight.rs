//! Requests in flight: until the body ends, or its client hangs up.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{StatusCode, Uri};
use http_body::Frame;
use tokio::runtime::Runtime;
use tollgate::{DirectLimiter, JointLimiter};
use tollgate_kit::in_flight::{OpenBody, Service, USER, Work};
use tollgate_tower::{Gate, KeyExtractor, RateLimitLayer, Tower, header};

use crate::served::support::serve;

/// A body of the bank as hyper has it.
struct Open(OpenBody);

impl http_body::Body for Open {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_part(context).map(|part| Some(part?.map(|part| Frame::data(part.into()))))
    }
}

async fn answer(State(work): State<Work>, uri: Uri) -> Response {
    let open = || work.open(uri.query().unwrap().parse().unwrap());
    match uri.path() {
        "/stream" => Response::new(Body::new(Open(open()))),
        "/never" => {
            let _open = open();
            std::future::pending().await
        }
        _ => StatusCode::NO_CONTENT.into_response(),
    }
}

/// A server with two threads.
struct Served {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Served {
    fn start<L, X>(layer: RateLimitLayer<L, X>, work: Work) -> Self
    where
        L: Gate<Tower, X, Keys: Send + Sync> + Send + Sync + 'static,
        X: KeyExtractor<Key: Send + Sync> + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let app = Router::new().fallback(answer).with_state(work).layer(layer);
        Self { address: runtime.block_on(serve(app)), _runtime: runtime }
    }
}

impl Service for Served {
    fn direct(limiter: Arc<DirectLimiter>, work: Work) -> Self {
        Self::start(RateLimitLayer::new(limiter), work)
    }

    fn joint(limiter: Arc<JointLimiter<(String, String)>>, work: Work) -> Self {
        Self::start(RateLimitLayer::new(limiter).key((header(USER), header(USER))), work)
    }

    fn address(&self) -> SocketAddr {
        self.address
    }
}

tollgate_kit::in_flight_until_the_body_ends!(Served);

#[cfg(feature = "redis")]
mod on_a_store {
    use tollgate_kit::in_flight::OnStore;
    use tollgate_policy::Policy;
    use tollgate_tower::PolicyLimiter;

    use super::{Arc, RateLimitLayer, Served, USER, Work, header};

    impl OnStore for Served {
        fn of_policy(policy: &Policy, work: Work) -> Self {
            let limiter = PolicyLimiter::<(String, String)>::new(policy).unwrap();
            Self::start(RateLimitLayer::new(Arc::new(limiter)).key((header(USER), header(USER))), work)
        }
    }

    tollgate_kit::in_flight_on_a_store_until_the_body_ends!(Served);
}
