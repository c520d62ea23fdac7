//! A service behind a layer, and what it answers.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate_kit::{layered, limited};
use tollgate_tower::{Gate, KeyExtractor, RateLimitLayer, Tower};
use tower::{Layer, Service, ServiceExt};

pub(crate) use crate::common::{Answer, item, items};

/// A service that counts its calls and answers with the status in the request's field `answer`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inner {
    calls: Arc<AtomicUsize>,
}

impl Inner {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// This service behind a layer.
    pub(crate) fn behind<L, T>(&self, layer: &L) -> T
    where
        L: Layer<InnerService, Service = T>,
    {
        layer.layer(InnerService(self.clone()))
    }
}

/// The inner service of a layer.
#[derive(Debug, Clone)]
pub(crate) struct InnerService(Inner);

impl Service<Request<Full<Bytes>>> for InnerService {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        let status = request.headers().get("answer").map_or(200, |status| status.to_str().unwrap().parse().unwrap());
        let mut response = Response::builder().status(status);
        // What an inner layer has set.
        for (name, value) in request.headers() {
            if let Some(name) = name.as_str().strip_prefix("inner-") {
                response = response.header(name, value);
            }
        }
        std::future::ready(Ok(response.body(Full::from("inner")).unwrap()))
    }
}

/// Asks a service once, by a clone of it, as servers do.
pub(crate) async fn ask<S, B>(service: &S, request: Request<Full<Bytes>>) -> Answer
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let Ok(response) = service.clone().oneshot(request).await;
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    Answer { status: head.status, fields: head.headers, body: body.to_bytes() }
}

/// A service behind this layer, for a client with one address.
pub(crate) fn served<L, X>(layer: &RateLimitLayer<L, X>) -> layered::Send
where
    L: Gate<Tower, X, Keys: Send + Sync> + Send + Sync + 'static,
    X: KeyExtractor<Key: Send + Sync> + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let service = Inner::default().behind(layer);
    Box::new(move |method, path, fields| {
        let mut request = from("192.0.2.1");
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = path.parse().unwrap();
        for (name, value) in fields {
            request.headers_mut().append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let answer = runtime.block_on(ask(&service, request));
        let field = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
        limited::Answer {
            status: answer.status.as_u16(),
            fields: answer.fields.iter().map(field).collect(),
            body: String::from_utf8(answer.body.to_vec()).unwrap(),
        }
    })
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).body(Full::default()).unwrap()
}

/// A request with this peer.
pub(crate) fn from(peer: &str) -> Request<Full<Bytes>> {
    let mut request = get("/");
    let peer: IpAddr = peer.parse().unwrap();
    request.extensions_mut().insert(tollgate_http::Peer::from(peer));
    request
}

/// The same request with one more field.
pub(crate) fn with(mut request: Request<Full<Bytes>>, name: &'static str, value: &str) -> Request<Full<Bytes>> {
    request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
    request
}
