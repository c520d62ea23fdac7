//! Clients that hold a connection, or memory of the server, without a request.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::{Request, Version};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{PATIENCE, POLICY, Running, read_all, server};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A server that gives a request this time.
fn hasty(time: u64) -> Running {
    Running::start(server(POLICY).time_for_requests(Duration::from_millis(time)))
}

/// Whether the server ends a connection before it has got all of these bytes, one every 300 ms.
fn ends_before_all_of(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.set_nonblocking(true).unwrap();
    bytes.iter().any(|byte| {
        std::thread::sleep(Duration::from_millis(300));
        let sent = stream.write_all(&[*byte]);
        sent.is_err() || stream.read(&mut [0; 64]).is_ok_and(|read| read == 0)
    })
}

#[test]
fn a_connection_without_a_request_ends_in_the_time_of_one() {
    let served = hasty(300);
    assert_eq!(read_all(&mut served.connect()), "");
    // Not a byte more comes after these, which would tell the version, or say it.
    for begun in [&b"PRI"[..], PREFACE, &[PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat()] {
        let mut stream = served.connect();
        stream.write_all(begun).unwrap();
        read_all(&mut stream);
    }
    // The health is looked at by all the tests: there are places again.
    assert_eq!(served.get("/health", &[]).status, 200);
}

#[test]
fn a_head_that_drips_ends_the_connection_whatever_its_version() {
    let served = hasty(500);
    let mut stream = served.connect();
    assert!(ends_before_all_of(&mut stream, PREFACE));
    let mut stream = served.connect();
    assert!(ends_before_all_of(&mut stream, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    // The frame of a head of 40 bytes, after the settings.
    let mut stream = served.connect();
    stream.write_all(&[PREFACE, b"\0\0\0\x04\0\0\0\0\0\0\0\x28\x01\x05\0\0\0\x01"].concat()).unwrap();
    assert!(ends_before_all_of(&mut stream, &[0x82; 40]));
}

/// What a client of HTTP/2 with such windows does on a connection of its own, until its end.
fn over_http2(served: &Running, window: u32, requests: impl AsyncFnOnce(&mut SendRequest<Bytes>)) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
        let mut builder = Builder::new();
        builder.initial_window_size(window);
        let (mut client, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
        // It answers the server's pings, whatever it takes of the answers.
        let ended = tokio::spawn(timeout(PATIENCE, connection));
        requests(&mut client).await;
        ended.await.unwrap().is_ok()
    })
}

fn look(served: &Running, path: &str) -> Request<()> {
    Request::builder().uri(served.url(path)).version(Version::HTTP_2).body(()).unwrap()
}

#[test]
fn an_answer_that_is_not_taken_ends_the_connection_however_small_the_window() {
    let served = hasty(500);
    for window in [0, 1] {
        let ends = over_http2(&served, window, async |client| {
            let (first, _) = client.send_request(look(&served, "/metrics"), true).unwrap();
            let (second, _) = client.send_request(look(&served, "/health"), true).unwrap();
            assert_eq!(first.await.unwrap().status(), 200);
            // The bodies are not taken, and the connection is not dropped by the client.
            let kept = second.await.unwrap();
            std::mem::forget((kept, client.clone()));
        });
        assert!(ends, "with a window of {window}");
    }
}

#[test]
fn a_connection_of_http_2_without_a_request_is_told_to_go_and_ends() {
    let served = hasty(500);
    let ends = over_http2(&served, 65_535, async |client| {
        let (answer, _) = client.send_request(look(&served, "/health"), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
        std::mem::forget(client.clone());
    });
    assert!(ends);
}

#[test]
fn bodies_above_what_a_connection_holds_are_refused_and_the_others_are_decided() {
    const BODIES: usize = 40;
    const LENGTH: usize = 60_000;
    let served = Running::start(server(POLICY).time_for_requests(PATIENCE * 10));
    let body =
        Bytes::from(format!("{:<LENGTH$}", r#"{"keys": {"client": "192.0.2.1", "user": "alice"}, "peek": true}"#));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let (mut sent, mut answers) = (Vec::new(), JoinSet::new());
        for _ in 0..BODIES {
            let request = Request::builder().method("POST").uri(served.url("/acquire")).version(Version::HTTP_2);
            let request = request.header("content-type", "application/json").body(()).unwrap();
            let (answer, mut stream) = client.send_request(request, false).unwrap();
            // All but the last byte, so that no body is whole.
            stream.send_data(body.slice(..LENGTH - 1), false).unwrap();
            sent.push(stream);
            answers.spawn(async { answer.await.unwrap().status().as_u16() });
        }
        // A connection has room for 8 of them.
        for refused in 1..=BODIES - 8 {
            let status = timeout(PATIENCE, answers.join_next()).await;
            assert_eq!(status.expect("it holds more").unwrap().unwrap(), 503, "the answer {refused}");
        }
        for mut stream in sent {
            // Those that were refused are over.
            let _ = stream.send_data(body.slice(LENGTH - 1..), true);
        }
        let mut decided = 0;
        while let Some(status) = answers.join_next().await {
            decided += usize::from(status.unwrap() == 200);
        }
        assert!(decided > 0);
        let (answer, _) = client.send_request(look(&served, "/health"), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
    });
}
