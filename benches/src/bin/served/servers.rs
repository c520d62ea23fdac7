//! The servers, each with a thread of its own until the program ends.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tollgate_policy::Policy;
use tollgate_serve::{Listen, Server};

/// A server with this many permits in each fixed window, for each client.
pub(crate) fn tollgate(limit: &'static str, per: &'static str) -> SocketAddr {
    in_thread(move |told| async move {
        let quota = format!("{{ algorithm = \"fixed-window\", limit = {limit}, per = \"{per}\" }}");
        let text = format!("[[dimension]]\nname = \"address\"\nkey = [\"client\"]\nquota = [{quota}]");
        let server = Server::new(Policy::from_toml(&text).expect("a policy")).address("client").expect("a field");
        let bound = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("it listens");
        if let Listen::Tcp(address) = bound.listens()[0] {
            told.send(address).expect("the program waits");
        }
        bound.run(std::future::pending()).await.expect("it never ends");
    })
}

/// A server that answers each request with 200 and `ok`.
pub(crate) fn bare() -> SocketAddr {
    in_thread(|told| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
        told.send(listener.local_addr().expect("an address")).expect("the program waits");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("an option of the socket");
            let service = service_fn(|_: Request<Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

fn in_thread<F: Future<Output = ()>>(serve: impl FnOnce(mpsc::Sender<SocketAddr>) -> F + Send + 'static) -> SocketAddr {
    let (told, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime").block_on(serve(told));
    });
    address.recv().expect("it listens")
}
