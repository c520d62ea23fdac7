//! Servers and clients.

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::common::Answer;

/// Serves an application on loopback.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    serve_at("127.0.0.1:0", app).await
}

pub(crate) async fn serve_at(address: &str, app: Router) -> SocketAddr {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

/// One connection of HTTP/1.1.
pub(crate) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    /// A connection from this address of the machine.
    pub(crate) async fn open_from(client: IpAddr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((client, 0).into()).unwrap();
        Self::over(socket.connect(address).await.unwrap()).await
    }

    async fn over(stream: TcpStream) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Answer {
        self.0.ready().await.unwrap();
        answer(self.0.send_request(request).await.unwrap()).await
    }
}

/// One connection of HTTP/2, known in advance and without TLS. Clones send at the same time.
#[derive(Clone)]
pub(crate) struct Streams(http2::SendRequest<Full<Bytes>>);

impl Streams {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Answer {
        self.0.ready().await.unwrap();
        answer(self.0.send_request(request).await.unwrap()).await
    }
}

pub(crate) async fn answer(response: http::Response<Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status, fields: head.headers, body }
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("host", "localhost").body(Full::default()).unwrap()
}

pub(crate) fn with(mut request: Request<Full<Bytes>>, name: &'static str, value: &str) -> Request<Full<Bytes>> {
    request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
    request
}

/// Sends these bytes and reads to the end. Lines end with `\n` here, and there with `\r\n`.
pub(crate) async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{}\nConnection: close\n\n", request.trim_end()).replace('\n', "\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    String::from_utf8(response).unwrap()
}

/// The status of the answer to such a request.
pub(crate) async fn raw_status(address: SocketAddr, request: &str) -> u16 {
    let response = raw(address, request).await;
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{response}"))
}
