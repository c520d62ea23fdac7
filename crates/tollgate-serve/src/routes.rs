//! The paths of a server, and the answers there.

use core::time::Duration;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use prometheus_client::encoding::prometheus_text;

use crate::acquire;
use crate::answer::{Answer, Text};
use crate::authorize;
use crate::fields::{Malformed, Values, apart};
use crate::grpc::{Call, Grpc};
use crate::guard::Guard;
use crate::hosts::Hosts;
use crate::release;
use crate::trouble::{MAX_BODY, Trouble};
use crate::under_way::{Answered, Body, Open, UnderWay};
use crate::whole::Whole;

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

impl Routes {
    pub(crate) fn new(guard: Arc<Guard>, hosts: Hosts, patience: Duration) -> Self {
        Self { grpc: Grpc::new(&guard, patience), guard, hosts, patience }
    }

    /// The answer to a request. A page in a browser can reach a server `by_name` alone.
    pub(crate) async fn answer(&self, request: Request<Incoming>, by_name: bool, open: Open) -> Response<Body> {
        let on = open.under_way();
        // What takes its time has nothing of the head, and a future of its own.
        let answer = match self.route(request, by_name).unwrap_or_else(Next::trouble) {
            Next::Answer(answer) => answer,
            Next::Acquire(body) => {
                let acquired = self.acquire(body, on).await.inspect_err(|_| self.guard.counts.malformed());
                acquired.unwrap_or_else(Response::from).map(Answered::from)
            }
            Next::Release(body) => {
                let released = self.release(body, on).await.inspect_err(|trouble| {
                    if *trouble != Trouble::NotInFlight {
                        self.guard.counts.malformed();
                    }
                });
                released.unwrap_or_else(|trouble| Response::from(trouble).map(Answered::from))
            }
            Next::Decide(values, to_response) => {
                to_response(authorize::decide_by(&self.guard, values).await).map(Answered::from)
            }
            Next::Call(call, body) => self.grpc.answer(call, body, on).await,
        };
        open.answered(answer)
    }

    /// What a request asks for.
    fn route(&self, request: Request<Incoming>, by_name: bool) -> Result<Next, Trouble> {
        let is_call = Grpc::takes(request.uri().path());
        // A look at the health tells a page nothing, and balancers have names of their own.
        let called = if by_name && request.uri().path() != HEALTH { self.hosts.check(&request) } else { Ok(()) };
        if let Err(trouble) = called {
            match trouble {
                Trouble::Misdirected => self.guard.counts.misdirected(),
                _ => self.guard.counts.malformed(),
            }
            return match Grpc::check(&request) {
                Ok(()) if is_call => Ok(Next::Answer(Grpc::misdirected())),
                _ => Err(trouble),
            };
        }
        if is_call {
            Grpc::check(&request).inspect_err(|_| self.guard.counts.malformed())?;
            let (head, body) = request.into_parts();
            return Ok(match Grpc::call_of(&head) {
                Some(call) => Next::Call(call, body),
                None => Next::Answer(Grpc::unknown()),
            });
        }
        let (head, body) = request.into_parts();
        let reads = || match head.method {
            Method::GET | Method::HEAD => Ok(()),
            _ => Err(Trouble::Method { allowed: "GET, HEAD" }),
        };
        match head.uri.path() {
            "/acquire" | "/release" if head.method != Method::POST => Err(Trouble::Method { allowed: "POST" }),
            "/acquire" | "/release" if !is_json(&head.headers) => {
                self.guard.counts.malformed();
                Err(Trouble::ContentType { wanted: "application/json" })
            }
            "/acquire" => Ok(Next::Acquire(body)),
            "/release" => Ok(Next::Release(body)),
            // nginx asks with GET whatever the method of the request.
            "/auth_request" => {
                reads()?;
                Ok(Next::Decide(authorize::values(&self.guard.fields, &head.headers), authorize::for_nginx))
            }
            // Envoy appends the path of the request, and keeps its method.
            path if path == "/authz" || path.starts_with("/authz/") => {
                Ok(Next::Decide(authorize::values(&self.guard.fields, &head.headers), Answer::into_response))
            }
            HEALTH => {
                reads()?;
                Ok(Next::Answer(plain("ok\n".to_owned(), "text/plain; charset=utf-8")))
            }
            "/metrics" => {
                reads()?;
                Ok(Next::Answer(plain(self.guard.metrics(), prometheus_text::CONTENT_TYPE)))
            }
            _ => Err(Trouble::NoSuchPath),
        }
    }

    async fn acquire(&self, body: Incoming, on: &UnderWay) -> Result<Response<Text>, Trouble> {
        let body = Whole::read(body, MAX_BODY, on, self.patience).await?;
        let (values, ask) = acquire::parse(&self.guard.fields, &body.bytes)?;
        let values = apart(values);
        drop(body);
        let acquired = self.guard.acquire(values, ask).await;
        let (decided, token) = acquired.map_err(|lacks| acquire::lacks(self.guard.lacked(lacks)))?;
        Ok(Answer { token, ..Answer::of(&decided) }.into_response())
    }

    async fn release(&self, body: Incoming, on: &UnderWay) -> Result<Response<Answered>, Trouble> {
        let body = Whole::read(body, MAX_BODY, on, self.patience).await?;
        let token = release::parse(&body.bytes)?.into_owned();
        drop(body);
        if self.guard.release(&token).await? {
            Ok(plain("{\"released\":true}\n".to_owned(), "application/json"))
        } else {
            Err(Trouble::NotInFlight)
        }
    }
}

/// What a request asks for, without its head.
enum Next {
    Answer(Response<Answered>),
    Acquire(Incoming),
    Release(Incoming),
    Decide(Result<Values<'static>, Malformed>, fn(Answer) -> Response<Text>),
    Call(Call, Incoming),
}

impl Next {
    fn trouble(trouble: Trouble) -> Self {
        Self::Answer(Response::from(trouble).map(Answered::from))
    }
}

/// Whether the content type is that of JSON. A page of a browser can't send it to another origin
/// without asking, and so can't charge permits.
fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn plain(text: String, kind: &'static str) -> Response<Answered> {
    let mut response = Response::new(Answered::from(Text::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The answer on a connection that is one too many.
pub(crate) fn turn_away(open: Open) -> Response<Body> {
    open.answered(Response::from(Trouble::TooManyConnections).map(Answered::from))
}
