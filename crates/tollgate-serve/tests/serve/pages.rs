//! What a page in a browser can send to a server of the machine: nothing that is charged.

use bytes::Bytes;
use http::{Method, Request, Response, Version};
use tollgate_serve::ServeError;

use crate::place::by_both;
use crate::support::{POLICY, Running, post, problem_of, server};

const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// A field of a message, with bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
    field.extend(value);
    field
}

/// A `RateLimitRequest` for the client 192.0.2.1, framed as gRPC has it.
fn message() -> Vec<u8> {
    let entry = [field(1, b"client"), field(2, b"192.0.2.1")].concat();
    let request = [field(1, b"edge"), field(2, &field(1, &entry))].concat();
    [&[0, 0, 0, 0, u8::try_from(request.len()).unwrap()][..], &request].concat()
}

/// The answer over HTTP/2, and its trailers.
fn over_http2(served: &Running, request: Request<()>, body: Vec<u8>) -> (Response<()>, http::HeaderMap) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let (response, mut sent) = client.send_request(request, false).unwrap();
        sent.send_data(Bytes::from(body), true).unwrap();
        let (head, mut body) = response.await.unwrap().into_parts();
        while body.data().await.is_some() {}
        let trailers = body.trailers().await.unwrap().unwrap_or_default();
        (Response::from_parts(head, ()), trailers)
    })
}

fn request(served: &Running, method: Method, path: &str, kind: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(served.url(path)).version(Version::HTTP_2);
    request.header("content-type", kind).body(()).unwrap()
}

fn charged(served: &Running) -> u64 {
    served.metric(r#"tollgate_requests_total{result="admitted"}"#)
}

#[test]
fn grpc_is_taken_as_grpc_over_http_2_alone_so_that_a_page_charges_nothing() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).address("client").unwrap());
        for path in [RATE_LIMIT, CHECK] {
            // A page may send these types anywhere, without asking.
            for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json", ""] {
                let answer = post(&served.url(path), kind, &message());
                assert_eq!(answer.status, 415, "{path} {kind}");
                answer.problem();
                let (over_2, _) = over_http2(&served, request(&served, Method::POST, path, kind), message());
                assert_eq!(over_2.status().as_u16(), 415, "{path} {kind}");
            }
            for kind in ["application/grpc", "application/grpc+proto"] {
                assert_eq!(post(&served.url(path), kind, &message()).problem()["status"], 505, "{path} {kind}");
            }
            for kind in ["application/grpc-web", "application/grpc+json", "application/grpcx"] {
                assert_eq!(post(&served.url(path), kind, &message()).status, 415, "{path} {kind}");
            }
            let (other, _) = over_http2(&served, request(&served, Method::PUT, path, "application/grpc"), message());
            assert_eq!((other.status().as_u16(), &other.headers()["allow"]), (405, &"POST".parse().unwrap()));
        }
        assert_eq!(charged(&served), 0);
        for kind in ["application/grpc", "Application/GRPC+proto"] {
            let sent = request(&served, Method::POST, RATE_LIMIT, kind);
            let (answer, trailers) = over_http2(&served, sent, message());
            assert_eq!((answer.status().as_u16(), &trailers["grpc-status"]), (200, &"0".parse().unwrap()), "{kind}");
        }
        assert_eq!(charged(&served), 2);
    });
}

#[test]
fn a_page_whose_name_points_here_is_misdirected_and_charges_nothing() {
    let served = Running::start(server(POLICY).address("client").unwrap());
    let body = r#"{"keys": {"client": "192.0.2.1", "user": "alice"}}"#;
    let of = |host: &str| {
        let head = "POST /acquire HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json";
        served.raw(format!("{head}\r\n{host}content-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    };
    for host in ["evil.example", "evil.example:7117", "localhost.evil.example", "x@localhost", "[", "", "tollgate"] {
        let text = of(&format!("host: {host}\r\n"));
        assert!(text.starts_with("HTTP/1.1 421 "), "{host}: {text}");
        problem_of(text.split_once("\r\n\r\n").unwrap().1, 421);
    }
    // HTTP/1.1 demands one.
    for host in ["", "host: localhost\r\nhost: evil.example\r\n", "host: localhost\r\nhost: localhost\r\n"] {
        let text = of(host);
        assert!(text.starts_with("HTTP/1.1 400 "), "{host}: {text}");
        problem_of(text.split_once("\r\n\r\n").unwrap().1, 400);
    }
    for path in ["/auth_request", "/authz", "/authz/page", "/metrics", "/", RATE_LIMIT] {
        let fields = "x-tollgate-client: 192.0.2.1\r\nx-tollgate-user: alice\r\nconnection: close";
        for target in [path.to_owned(), format!("http://evil.example{path}")] {
            let host = if target == path { "evil.example" } else { "localhost" };
            let text = served.raw(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n\r\n").as_bytes());
            assert!(text.starts_with("HTTP/1.1 421 "), "{target}: {text}");
        }
    }
    assert_eq!((charged(&served), served.metric(r#"tollgate_requests_total{result="misdirected"}"#)), (0, 19));
    // A look at the health charges nothing, by whatever name.
    assert!(served.raw(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ends_with("\r\n\r\nok\n"));
}

#[test]
fn loopback_names_and_addresses_are_hosts_and_so_is_a_request_that_can_name_none() {
    let served = Running::start(server(POLICY).address("client").unwrap());
    for host in ["localhost", "LocalHost:7117", "localhost.", "a.localhost", "127.0.0.1:7117", "[::1]:7117", "10.1.2.3"]
    {
        let text = served.raw(format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes());
        assert!(text.starts_with("HTTP/1.1 200 "), "{host}: {text}");
    }
    // Balancers look so at a server.
    assert!(served.raw(b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
}

#[test]
fn a_host_that_the_operator_names_is_taken_over_http_and_grpc() {
    let answers = |names: &[&str], host: &str| {
        let named =
            names.iter().fold(server(POLICY).address("client").unwrap(), |server, name| server.host(name).unwrap());
        let served = Running::start(named);
        let text = served.raw(format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes());
        let mut sent = request(&served, Method::POST, RATE_LIMIT, "application/grpc");
        *sent.uri_mut() = format!("http://{host}{RATE_LIMIT}").parse().unwrap();
        let (answer, trailers) = over_http2(&served, sent, message());
        assert_eq!(answer.status().as_u16(), 200);
        // Without a message, the trailers are the head.
        let status = trailers.get("grpc-status").or(answer.headers().get("grpc-status")).unwrap();
        let is_taken = text.starts_with("HTTP/1.1 200 ");
        assert_eq!(status, if is_taken { "0" } else { "9" }, "{host}: {answer:?}");
        assert!(is_taken || text.starts_with("HTTP/1.1 421 "), "{text}");
        is_taken
    };
    assert!(!answers(&[], "tollgate"));
    assert!(answers(&["tollgate", "Edge.Example"], "tollgate:7117"));
    assert!(answers(&["tollgate", "Edge.Example"], "edge.example"));
    assert!(!answers(&["tollgate", "edge.example"], "www.edge.example"));
    for (host, taken) in [("edge.example", true), ("www.edge.example:80", true), ("notedge.example", false)] {
        assert_eq!(answers(&[".edge.example"], host), taken, "{host}");
    }
    assert!(answers(&["*"], "evil.example"));
    for wrong in ["", ".", "a b", "edge.example:7117", "*.edge.example", "http://edge.example", "a@b", "edge/"] {
        let error = server(POLICY).host(wrong).unwrap_err();
        assert!(matches!(error, ServeError::Host { .. }), "{wrong:?}");
        assert!(error.to_string().contains(".example.com"), "{error}");
    }
}

#[test]
fn a_unix_socket_has_no_name_that_a_page_could_have() {
    use std::io::{Read as _, Write as _};

    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", folder.path().join("tollgate.sock").display()).parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let bound = runtime.block_on(server(POLICY).bind(&[listen])).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = runtime.spawn(bound.run(async { drop(stopped.await) }));
    let mut stream = std::os::unix::net::UnixStream::connect(folder.path().join("tollgate.sock")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: tollgate\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    drop(stop);
    runtime.block_on(running).unwrap().unwrap();
}
