//! A service behind a layer, and what it answers.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt};

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// All values of a field, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// The value of a field that comes once.
    pub(crate) fn one(&self, name: &str) -> &str {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name} in {self:?}");
        all[0]
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

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

/// The parameters of one item of a list, read by an implementation of RFC 9651.
pub(crate) fn items(value: &str) -> Vec<(String, Vec<(String, String)>)> {
    let list: sfv::List = sfv::Parser::new(value).parse().unwrap_or_else(|error| panic!("{value}: {error}"));
    let item = |entry: &sfv::ListEntry| {
        let sfv::ListEntry::Item(item) = entry else { panic!("{value}: no inner lists") };
        let name = item.bare_item.as_string().unwrap_or_else(|| panic!("{value}: no string")).as_str().to_owned();
        let parameters = item.params.iter().map(|(key, value)| {
            let number = value.as_integer().map(|number| number.to_string());
            (key.as_str().to_owned(), number.unwrap_or_else(|| format!("{value:?}")))
        });
        (name, parameters.collect())
    };
    list.iter().map(item).collect()
}

/// One item: a name and numbers.
pub(crate) fn item(name: &str, parameters: [(&str, u64); 2]) -> (String, Vec<(String, String)>) {
    (name.to_owned(), parameters.map(|(key, number)| (key.to_owned(), number.to_string())).to_vec())
}
