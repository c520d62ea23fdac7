//! Clients of the example.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// The status and the body of one request, by a connection of its own.
///
/// # Errors
///
/// When the service can't be reached, or what it answers is no HTTP.
pub async fn ask(service: SocketAddr, path: &str, client: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(service).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {service}\r\nX-Forwarded-For: {client}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, answer.clone());
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    Ok((status, body.to_owned()))
}

/// Clients that ask until the service ends: forty that keep to the limits, one that is greedy, one
/// in bursts, and some that want reports, once a minute all at once.
pub async fn traffic(service: SocketAddr) {
    let mut clients = JoinSet::new();
    for client in 1..=40 {
        clients.spawn(every(
            Duration::from_millis(2_000 + 50 * client),
            service,
            "/items",
            format!("192.0.2.{client}"),
        ));
    }
    for path in ["/items", "/search"] {
        clients.spawn(every(Duration::from_millis(400), service, path, "203.0.113.7".to_owned()));
    }
    clients.spawn(async move {
        let mut minutes = interval(Duration::from_secs(45));
        loop {
            minutes.tick().await;
            for _ in 0..120 {
                let _ = ask(service, "/search", "198.51.100.9").await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    for client in 1..=8 {
        let time = Duration::from_millis(2_000 + 170 * client);
        clients.spawn(every(time, service, "/report", format!("192.0.2.{}", 100 + client)));
    }
    for client in 1..=10 {
        clients.spawn(every(Duration::from_secs(60), service, "/report", format!("192.0.2.{}", 120 + client)));
    }
    clients.join_all().await;
}

async fn every(time: Duration, service: SocketAddr, path: &'static str, client: String) {
    let mut times = interval(time);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let _ = ask(service, path, &client).await;
    }
}
