//! Programs of others that tests start, and the service behind a proxy.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::place::Place;
use crate::support::{Running, until};
use tollgate::MockClock;
use tollgate_kit::programs::Process;

/// The policy of the guide, on a clock that stands still.
pub(crate) fn guided(place: &Place) -> (Running, MockClock) {
    let clock = place.clock();
    let server = place.server(include_str!("../../guide/policy.toml")).address("client").unwrap();
    (Running::start(server.clock(clock.clone())), clock)
}

/// Starts a proxy by a configuration that has the ports of the guide, and waits until it listens.
/// Another proxy may take the port in between, so it is tried again.
pub(crate) fn proxy(
    configuration: &str,
    [tollgate, service]: [SocketAddr; 2],
    start: impl Fn(&str, &Path) -> Command,
) -> (Process, SocketAddr, tempfile::TempDir) {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // Waits that no machine is too slow for.
        let mut text = configuration.replace("timeout 1s", "timeout 60s").replace("timeout: 1s", "timeout: 60s");
        for (port, address) in [(7117, tollgate), (3000, service), (8080, address)] {
            for form in [format!("127.0.0.1:{port}"), format!("127.0.0.1, port_value: {port} ")] {
                text = text.replace(&form, &form.replace(&port.to_string(), &address.port().to_string()));
            }
        }
        let mut process = Process(start(&text, folder.path()).spawn().unwrap());
        let listens = until("proxy", || match process.try_wait().unwrap() {
            Some(_) => Some(false),
            None => TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok().then_some(true),
        });
        if listens {
            return (process, address, folder);
        }
    }
    panic!("the proxy does not start with this configuration");
}

/// A service that greets, and has one page that is forbidden. It ends with the test program.
pub(crate) fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            std::thread::spawn(move || greet(stream));
        }
    });
    address
}

fn greet(stream: TcpStream) {
    let mut lines = BufReader::new(&stream).lines();
    let Some(Ok(first)) = lines.next() else { return };
    let _ = lines.find(|line| line.as_ref().map_or(true, String::is_empty));
    let (status, body) = match first.split(' ').nth(1) {
        Some("/forbidden") => ("403 Forbidden", "forbidden by the service\n"),
        _ => ("200 OK", "hello\n"),
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
}
