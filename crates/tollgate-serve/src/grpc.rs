//! The two services of gRPC that Envoy asks.

mod authorization;
mod rate_limit;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitServiceServer;
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tonic::Status;
use tonic::codegen::Service as _;

use crate::guard::Guard;
use crate::trouble::{MAX_BODY, MISDIRECTED, Trouble};
use crate::under_way::{Answered, UnderWay};
use crate::whole::{Unread, Whole};
use authorization::Check;
use rate_limit::ShouldRateLimit;

/// The most bytes of a message with its length in front.
const MOST: usize = MAX_BODY + 5;
/// The field that says how a message is compressed.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
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
    pub(crate) fn misdirected() -> Response<Answered> {
        of_status(Status::failed_precondition(MISDIRECTED))
    }

    /// The answer to a call of a method that there is not.
    pub(crate) fn unknown() -> Response<Answered> {
        of_status(Status::unimplemented("there is no such method"))
    }

    /// The call of a request; `None` if there is no such method.
    pub(crate) fn call_of(head: &Parts) -> Option<Call> {
        let path = [CHECK, SHOULD_RATE_LIMIT].into_iter().find(|path| *path == head.uri.path())?;
        // A copy, since the value is a part of the head.
        let encoding = head.headers.get(&ENCODING).map(|value| HeaderValue::from_bytes(value.as_bytes()));
        Some(Call { path, encoding: encoding.and_then(Result::ok) })
    }

    /// The answer to a call.
    pub(crate) async fn answer(&self, call: Call, body: Incoming, on: &UnderWay) -> Response<Answered> {
        let message = match Whole::read(body, MOST, on, self.patience).await {
            Ok(message) => message,
            Err(unread) => {
                return of_status(match unread {
                    Unread::TooLarge => Status::out_of_range(format!("the message has more than {MAX_BODY} bytes")),
                    Unread::TooSlow => Status::deadline_exceeded("the message did not come in time"),
                    Unread::Broken => Status::cancelled("the message did not come whole"),
                    Unread::NoRoom => {
                        Status::resource_exhausted("the messages that come on this connection are too many")
                    }
                });
            }
        };
        // The message is decoded at once, so that it takes no room any more.
        let request = call.with(message.bytes);
        // Both share what is behind an `Arc`.
        let answered = if call.path == CHECK {
            self.authorization.clone().call(request).await
        } else {
            self.rate_limit.clone().call(request).await
        };
        let (head, body) = match answered {
            Ok(response) => response.into_parts(),
            Err(never) => match never {},
        };
        match body.collect().await {
            Ok(body) => {
                let trailers = body.trailers().cloned();
                // As long as it is: the buffer of the encoder is longer.
                let data = Bytes::copy_from_slice(&body.to_bytes());
                Response::from_parts(head, Answered { data, trailers })
            }
            Err(status) => of_status(status),
        }
    }
}

/// A call: no more of the head than is read of it.
#[derive(Debug)]
pub(crate) struct Call {
    path: &'static str,
    /// How the message is compressed, if it is.
    encoding: Option<HeaderValue>,
}

impl Call {
    fn with(&self, message: Vec<u8>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(message)));
        *request.uri_mut() = Uri::from_static(self.path);
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().extend(self.encoding.clone().map(|encoding| (ENCODING, encoding)));
        request
    }
}

/// An answer without a message.
fn of_status(status: Status) -> Response<Answered> {
    status.into_http::<()>().map(|()| Answered::default())
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
