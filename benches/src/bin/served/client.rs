//! A client that sends the same bytes again and again, on several connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 32;

/// What a server did in some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    /// Requests in a second.
    pub(crate) rate: f64,
    /// Processor time of the server for a request, in microseconds.
    pub(crate) processor: f64,
}

/// Sends requests for this time. Each answer must begin as expected.
pub(crate) fn ask_for(server: SocketAddr, request: &str, expected: &'static str, time: Duration) -> Served {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (begin, all, client) = (Instant::now(), ProcessTime::now(), ThreadTime::now());
    let answered: u64 = runtime.block_on(async {
        let mut connections = JoinSet::new();
        for _ in 0..CONNECTIONS {
            connections.spawn(ask(server, request.to_owned(), expected, begin + time));
        }
        connections.join_all().await.into_iter().sum()
    });
    // The client has this thread for itself, and of the servers only one is asked.
    let processor = all.elapsed().saturating_sub(client.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
    let answered = answered as f64;
    Served { rate: answered / begin.elapsed().as_secs_f64(), processor: processor.as_secs_f64() * 1e6 / answered }
}

async fn ask(server: SocketAddr, request: String, expected: &str, end: Instant) -> u64 {
    let mut stream = TcpStream::connect(server).await.expect("a connection");
    stream.set_nodelay(true).expect("an option of the socket");
    let (mut answered, mut text) = (0, Vec::with_capacity(4096));
    while Instant::now() < end {
        stream.write_all(request.as_bytes()).await.expect("the request is sent");
        text.clear();
        while !is_whole(&text) {
            assert_ne!(stream.read_buf(&mut text).await.expect("an answer"), 0, "the server ended the connection");
        }
        assert!(text.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&text));
        answered += 1;
    }
    answered
}

/// Whether the head is there, and as many bytes as it tells.
fn is_whole(text: &[u8]) -> bool {
    let Some(head) = text.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let lines = text[..head].split(|byte| *byte == b'\n');
    let length = lines.filter_map(|line| line.strip_prefix(b"content-length: ")).next();
    let length = length.map_or(0, |digits| {
        let digits = core::str::from_utf8(digits).expect("digits");
        digits.trim().parse::<usize>().expect("a length")
    });
    text.len() >= head + 4 + length
}
