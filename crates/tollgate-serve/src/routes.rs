//! The paths of a server, and the answers there.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Either, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::acquire;
use crate::answer::{Answer, Text};
use crate::authorize;
use crate::grpc::{Grpc, GrpcBody};
use crate::guard::Guard;
use crate::hosts::Hosts;
use crate::trouble::{MAX_BODY, Trouble};

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) guard: Arc<Guard>,
    grpc: Grpc,
    hosts: Hosts,
    /// The time for a body to come.
    patience: Duration,
}

/// The path of the look at the health.
const HEALTH: &str = "/health";

/// The body of a response.
pub(crate) type Body = Either<Text, GrpcBody>;

impl Routes {
    pub(crate) fn new(guard: Arc<Guard>, hosts: Hosts, patience: Duration) -> Self {
        Self { grpc: Grpc::new(&guard, patience), guard, hosts, patience }
    }

    /// The answer to a request. A page in a browser can reach a server `by_name` alone.
    pub(crate) async fn answer(&self, request: Request<Incoming>, by_name: bool) -> Response<Body> {
        let is_call = Grpc::takes(request.uri().path());
        // A look at the health tells a page nothing, and balancers have names of their own.
        let called = if by_name && request.uri().path() != HEALTH { self.hosts.check(&request) } else { Ok(()) };
        if let Err(trouble) = called {
            match trouble {
                Trouble::Misdirected => self.guard.counts.misdirected(),
                _ => self.guard.counts.malformed(),
            }
            return match Grpc::check(&request) {
                Ok(()) if is_call => Grpc::misdirected().map(Either::Right),
                _ => Response::from(trouble).map(Either::Left),
            };
        }
        if !is_call {
            return self.text(request).await.unwrap_or_else(Response::from).map(Either::Left);
        }
        match Grpc::check(&request) {
            Ok(()) => self.grpc.answer(request).await.map(Either::Right),
            Err(trouble) => {
                self.guard.counts.malformed();
                Response::from(trouble).map(Either::Left)
            }
        }
    }

    async fn text(&self, request: Request<Incoming>) -> Result<Response<Text>, Trouble> {
        let (head, body) = request.into_parts();
        let reads = || match head.method {
            Method::GET | Method::HEAD => Ok(()),
            _ => Err(Trouble::Method { allowed: "GET, HEAD" }),
        };
        match head.uri.path() {
            "/acquire" if head.method != Method::POST => Err(Trouble::Method { allowed: "POST" }),
            "/acquire" => self.acquire(&head.headers, body).await,
            // nginx asks with GET whatever the method of the request.
            "/auth_request" => {
                reads()?;
                Ok(authorize::for_nginx(authorize::decide(&self.guard, &head.headers).await))
            }
            // Envoy appends the path of the request, and keeps its method.
            path if path == "/authz" || path.starts_with("/authz/") => {
                Ok(authorize::decide(&self.guard, &head.headers).await.into_response())
            }
            HEALTH => {
                reads()?;
                Ok(plain("ok\n".to_owned(), "text/plain; charset=utf-8"))
            }
            "/metrics" => {
                reads()?;
                Ok(plain(self.guard.metrics(), "text/plain; version=0.0.4; charset=utf-8"))
            }
            _ => Err(Trouble::NoSuchPath),
        }
    }

    async fn acquire(&self, headers: &HeaderMap, body: Incoming) -> Result<Response<Text>, Trouble> {
        let read = async {
            if !is_json(headers) {
                return Err(Trouble::ContentType { wanted: "application/json" });
            }
            let body = self.read(headers, body).await?;
            let (values, ask) = acquire::parse(&self.guard.fields, &body)?;
            Ok(Answer::of(&self.guard, &self.guard.decide(&values, ask).await).into_response())
        };
        read.await.inspect_err(|_| self.guard.counts.malformed())
    }

    /// The whole body, if it is short enough and comes in time.
    async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Trouble> {
        let too_large = Trouble::BodyTooLarge;
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > MAX_BODY as u64) {
            return Err(too_large);
        }
        match timeout(self.patience, Limited::new(body, MAX_BODY).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large),
            Ok(Err(_)) => Err(Trouble::BodyBroken),
            Err(_) => Err(Trouble::BodyTooSlow),
        }
    }
}

/// Whether the content type is that of JSON. A page of a browser can't send it to another origin
/// without asking, and so can't charge permits.
fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn plain(text: String, kind: &'static str) -> Response<Text> {
    let mut response = Response::new(Text::new(text.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The answer on a connection that is one too many.
pub(crate) fn turn_away() -> Response<Body> {
    Response::from(Trouble::TooManyConnections).map(Either::Left)
}
