//! Bodies go through as they come: none is read or kept.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use crate::server::Server;
use actix_web::{App, HttpResponse, web};
use tollgate::{DirectLimiter, Quota};
use tollgate_actix::RateLimit;

/// A service that answers with the body of the request.
fn echo(limit: u32) -> Server {
    let limiter = Arc::new(DirectLimiter::new(Quota::per_hour(limit)).unwrap());
    let limit = RateLimit::new(limiter).refund_unanswered(true);
    let handler = async |body: web::Payload| HttpResponse::Ok().streaming(body);
    Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(handler)))
}

fn connect(server: &Server, fields: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!("POST / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn a_request_is_denied_before_its_body_comes() {
    let server = echo(1);
    for (fields, status) in [("content-length: 0", "HTTP/1.1 200 "), ("content-length: 1000000", "HTTP/1.1 429 ")] {
        // Of the second, nothing is ever sent.
        let mut stream = connect(&server, fields);
        let mut start = [0; 13];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(start, status.as_bytes());
    }
}

#[test]
fn a_part_of_a_body_goes_through_before_the_next_comes() {
    let server = echo(1);
    let mut stream = connect(&server, "transfer-encoding: chunked");
    let mut received = String::new();
    for part in ["ping", "pong"] {
        stream.write_all(format!("4\r\n{part}\r\n").as_bytes()).unwrap();
        // Through the middleware and back, while the request goes on.
        while !received.contains(part) {
            let mut bytes = [0; 512];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "{received}");
            received.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    stream.read_to_string(&mut received).unwrap();
    assert!(received.starts_with("HTTP/1.1 200 ") && received.ends_with("0\r\n\r\n"), "{received}");
}
