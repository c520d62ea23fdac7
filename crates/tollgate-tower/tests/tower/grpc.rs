//! A gRPC service of tonic behind the layer, and a client of tonic behind one. Messages are bytes.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tollgate::{DirectLimiter, Limiter, MockClock, Quota};
use tollgate_tower::{ClientIp, RateLimitLayer};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::server::TcpConnectInfo;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::{Layer, Service};

/// Messages as they are.
#[derive(Debug, Clone, Copy, Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Answers with what it is sent.
#[derive(Debug, Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut server = tonic::server::Grpc::new(Plain);
            Ok(if request.uri().path() == "/test.Echo/Unary" {
                let echo = |request: Request<Bytes>| async { Ok(Response::new(request.into_inner())) };
                server.unary(tower::service_fn(echo), request).await
            } else {
                let echo = |request: Request<Streaming<Bytes>>| async { Ok(Response::new(request.into_inner())) };
                server.streaming(tower::service_fn(echo), request).await
            })
        })
    }
}

fn peer() -> ClientIp {
    ClientIp::peer().peer_from(|extensions| extensions.get::<TcpConnectInfo>()?.remote_addr().map(Into::into))
}

async fn connect(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A server with this quota for each address, and its clock.
async fn serve(quota: Quota) -> (SocketAddr, MockClock) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clock = MockClock::new();
    let limiter = Limiter::<IpAddr>::builder(quota).clock(clock.clone()).build().unwrap();
    let layer = RateLimitLayer::new(Arc::new(limiter)).key(peer());
    let server = Server::builder().layer(layer).add_service(Echo);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    (address, clock)
}

async fn unary<S>(service: S, message: &'static str) -> Result<Response<Bytes>, Status>
where
    S: tonic::client::GrpcService<Body>,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let mut client = tonic::client::Grpc::new(service);
    client.ready().await.map_err(|_| Status::unavailable("not ready"))?;
    let path = PathAndQuery::from_static("/test.Echo/Unary");
    client.unary(Request::new(Bytes::from(message)), path, Plain).await
}

async fn streaming(channel: Channel, messages: &'static [&'static str]) -> Result<Vec<Bytes>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let messages = tokio_stream::iter(messages).map(|&message| Bytes::from(message));
    let path = PathAndQuery::from_static("/test.Echo/Streaming");
    let answers = client.streaming(Request::new(messages), path, Plain).await?.into_inner();
    answers.collect().await
}

fn assert_denied(status: &Status, milliseconds: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    let problem = "Request cannot be satisfied as assigned quota has been exceeded";
    assert_eq!(status.message(), format!("{problem}. Try again in 60 seconds."));
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), milliseconds);
}

#[tokio::test]
async fn unary_calls_are_limited_and_denials_are_statuses() {
    let (address, clock) = serve(Quota::per_minute(2)).await;
    let channel = connect(address).await;
    for left in [1, 0] {
        let response = unary(channel.clone(), "hello").await.unwrap();
        assert_eq!(response.metadata().get("ratelimit").unwrap(), &format!("\"default\";r={left};t=60"));
        assert_eq!(&response.into_inner()[..], b"hello");
    }
    clock.advance(Duration::from_millis(1));
    // Another connection of the same address.
    for channel in [channel.clone(), connect(address).await] {
        assert_denied(&unary(channel, "hello").await.unwrap_err(), "59999");
    }
    clock.advance(Duration::from_millis(59_999));
    assert_eq!(&unary(channel, "again").await.unwrap().into_inner()[..], b"again");
}

#[tokio::test]
async fn a_stream_is_one_request() {
    let (address, _clock) = serve(Quota::per_minute(2)).await;
    let channel = connect(address).await;
    for messages in [&["a", "b", "c", "d"][..], &[]] {
        assert_eq!(streaming(channel.clone(), messages).await.unwrap(), messages);
    }
    assert_denied(&streaming(channel.clone(), &["e"]).await.unwrap_err(), "60000");
    assert_denied(&unary(channel, "f").await.unwrap_err(), "60000");
}

#[tokio::test]
async fn in_front_of_a_client_calls_are_denied_without_a_server() {
    let (address, _clock) = serve(Quota::per_minute(100)).await;
    let limiter = DirectLimiter::with_clock(Quota::per_minute(1), MockClock::new()).unwrap();
    let client = RateLimitLayer::new(Arc::new(limiter)).layer(connect(address).await);
    assert!(unary(client.clone(), "hello").await.is_ok());
    assert_denied(&unary(client, "hello").await.unwrap_err(), "60000");
}
