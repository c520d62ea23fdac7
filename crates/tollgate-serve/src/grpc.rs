//! The two services of gRPC that Envoy asks.

mod authorization;
mod rate_limit;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use envoy_types::pb::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitServiceServer;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, Response, Version};
use hyper::body::Incoming;
use tokio::time::timeout;
use tonic::Status;
use tonic::codegen::Service as _;

use crate::guard::Guard;
use crate::trouble::{MAX_BODY, MISDIRECTED, Trouble};
use authorization::Check;
use rate_limit::ShouldRateLimit;

/// The body of a response with frames of gRPC.
pub(crate) type GrpcBody = tonic::body::Body;

const AUTHORIZATION: &str = "/envoy.service.auth.v3.Authorization/";
const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/";

/// `Authorization` and `RateLimitService`.
pub(crate) struct Grpc {
    authorization: AuthorizationServer<Check>,
    rate_limit: RateLimitServiceServer<ShouldRateLimit>,
    /// The time for a message to come.
    patience: Duration,
}

impl Grpc {
    pub(crate) fn new(guard: &Arc<Guard>, patience: Duration) -> Self {
        let authorization = AuthorizationServer::new(Check::new(Arc::clone(guard)));
        let rate_limit = RateLimitServiceServer::new(ShouldRateLimit::new(Arc::clone(guard)));
        Self {
            authorization: authorization.max_decoding_message_size(MAX_BODY),
            rate_limit: rate_limit.max_decoding_message_size(MAX_BODY),
            patience,
        }
    }

    /// Whether this is the path of a method of either service.
    pub(crate) fn takes(path: &str) -> bool {
        path.starts_with(AUTHORIZATION) || path.starts_with(RATE_LIMIT)
    }

    /// Whether a request is a call of gRPC. A page in a browser can send none: it has no HTTP/2
    /// without TLS, and sends this type only to a server that permits it.
    ///
    /// # Errors
    ///
    /// [`Trouble`] says why it is none.
    pub(crate) fn check<B>(request: &Request<B>) -> Result<(), Trouble> {
        if !is_grpc(request.headers()) {
            return Err(Trouble::ContentType { wanted: "application/grpc" });
        }
        if request.version() != Version::HTTP_2 {
            return Err(Trouble::GrpcVersion);
        }
        if request.method() != Method::POST {
            return Err(Trouble::Method { allowed: "POST" });
        }
        Ok(())
    }

    /// The answer to a call of a host that the server has not.
    pub(crate) fn misdirected() -> Response<GrpcBody> {
        Status::failed_precondition(MISDIRECTED).into_http()
    }

    /// The answer to a call.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<GrpcBody> {
        // Both share what is behind an `Arc`.
        let answered = if request.uri().path().starts_with(AUTHORIZATION) {
            timeout(self.patience, self.authorization.clone().call(request)).await
        } else {
            timeout(self.patience, self.rate_limit.clone().call(request)).await
        };
        match answered {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => Status::deadline_exceeded("the message did not come in time").into_http(),
        }
    }
}

impl fmt::Debug for Grpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// Whether the content type is that of gRPC, with the encoding of protocol buffers.
fn is_grpc(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    let is = |known: &str| essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(known));
    is("application/grpc") || is("application/grpc+proto")
}
