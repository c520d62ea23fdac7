//! Connections: as many as allowed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::place::by_both;
use crate::support::{PATIENCE, POLICY, Running, problem_of, read_all, server, until};

/// A connection that has been served once, and stays open.
fn kept_open(served: &Running) -> TcpStream {
    let mut stream = served.connect();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\nok\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    assert!(text.starts_with(b"HTTP/1.1 200 "));
    stream
}

#[test]
fn a_connection_too_many_is_told_so_and_others_go_on() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).max_connections(2).time_for_requests(PATIENCE));
        let (mut first, second) = (kept_open(&served), kept_open(&served));
        let text = served.raw(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        problem_of(body, 503);
        // Neither does it decide there.
        let keys = r#"{"keys": {"client": "192.0.2.1", "user": "alice"}, "cost": 3}"#;
        let head = "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let text = served.raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{keys}", keys.len()).as_bytes());
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");

        // Those that are open are served.
        first.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let text = read_all(&mut first);
        assert!(text.contains("\ntollgate_connections 2\n"), "{text}");
        assert!(text.contains("\ntollgate_connections_turned_away_total 2\n"), "{text}");
        // There is a place again, once the server has seen the end of another.
        drop(second);
        until("place", || (served.get("/health", &[]).status == 200).then_some(()));
        let decided = until("place", || Some(served.acquire(keys)).filter(|answer| answer.status != 503));
        assert_eq!(decided.status, 200);
    });
}

#[test]
fn many_connections_too_many_are_told_or_closed_and_the_server_stays() {
    let served = Running::start(server(POLICY).max_connections(1).time_for_requests(PATIENCE));
    let first = kept_open(&served);
    let mut others: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        let mut stream = served.connect();
        // It may be closed already.
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
        others.push(stream);
    }
    let answers: Vec<String> = others.iter_mut().map(read_all).collect();
    assert!(answers[0].starts_with("HTTP/1.1 503 "), "{}", answers[0]);
    assert!(answers.iter().all(|text| text.is_empty() || text.starts_with("HTTP/1.1 503 ")), "{answers:?}");
    drop(first);
    until("place", || (served.get("/health", &[]).status == 200).then_some(()));
    assert!(served.metric("tollgate_connections_turned_away_total") >= 200);
}
