//! Requests whose clients go away, and connections without addresses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::server::Server;
use actix_web::dev::Service;
use actix_web::{App, HttpServer, web};
use tollgate::{DirectLimiter, Limiter, Quota};
use tollgate_actix::{ClientIp, RateLimit};
use tollgate_http::{Peer, TrustedProxies};

/// Tells when the future that holds it has been dropped.
struct Dropped(Sender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send("dropped");
    }
}

async fn for_ever(events: web::Data<Mutex<Sender<&'static str>>>) -> &'static str {
    events.lock().unwrap().send("started").unwrap();
    std::future::pending().await
}

/// A server whose handler never answers, and what happens to its requests.
fn pending(limit: &RateLimit<DirectLimiter>) -> (Server, Receiver<&'static str>) {
    let (send, receive) = channel();
    let (limit, events) = (limit.clone(), web::Data::new(Mutex::new(send)));
    let app = move || {
        let dropped = events.clone();
        let app = App::new().app_data(events.clone()).default_service(web::to(for_ever)).wrap(limit.clone());
        app.wrap_fn(move |request, limited| {
            let dropped = Dropped(dropped.lock().unwrap().clone());
            let answer = limited.call(request);
            async move {
                // It goes after what is awaited: then the charge is settled.
                let _dropped = dropped;
                answer.await
            }
        })
    };
    (Server::of(app), receive)
}

/// How many permits are left after three requests whose clients went away while the handler ran.
fn left_of_ten(limit: &RateLimit<DirectLimiter>) -> usize {
    let (server, events) = pending(limit);
    for _ in 0..3 {
        let mut connection = TcpStream::connect(server.address).unwrap();
        connection.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").unwrap();
        assert_eq!(events.recv().unwrap(), "started");
        drop(connection);
        assert_eq!(events.recv().unwrap(), "dropped");
    }
    (0..20).filter(|_| limit.limiter().try_acquire().is_admitted()).count()
}

#[test]
fn a_cancelled_request_keeps_its_charge_unless_said_otherwise() {
    let limit = || RateLimit::new(Arc::new(DirectLimiter::new(Quota::per_day(10)).unwrap()));
    assert_eq!(left_of_ten(&limit()), 7);
    assert_eq!(left_of_ten(&limit().refund_when(|_| true)), 7, "it has no status");
    assert_eq!(left_of_ten(&limit().refund_unanswered(true)), 10);
}

/// The status of the answer to a request on a new connection.
fn ask(connection: &mut (impl Read + Write), fields: &str) -> String {
    let request = format!("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[cfg(unix)]
#[test]
fn a_unix_socket_has_no_address_unless_it_is_trusted() {
    use std::os::unix::net::{UnixListener, UnixStream};

    let limit = |clients: ClientIp| RateLimit::new(Arc::new(Limiter::new(Quota::per_day(1)).unwrap())).key(clients);
    let untrusted = limit(ClientIp::peer());
    let clients = ClientIp::behind(TrustedProxies::unix_sockets());
    let trusted = limit(clients.peer_from(|_| Some(Peer::UnixSocket)));
    // Only proxies in this network are trusted.
    let clients = ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"]).unwrap());
    let others = limit(clients.peer_from(|_| Some(Peer::UnixSocket)));

    let directory = std::env::temp_dir().join(format!("tollgate-actix-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let serve = |name: &str, limit: RateLimit<Limiter<std::net::IpAddr>, ClientIp>| {
        let path = directory.join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let (send, receive) = channel();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let app = move || App::new().wrap(limit.clone()).default_service(web::to(|| async { "hello" }));
                let server = HttpServer::new(app).workers(1).disable_signals().listen_uds(listener).unwrap().run();
                send.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        (path, receive.recv().unwrap(), thread)
    };
    let servers = [serve("untrusted", untrusted), serve("trusted", trusted), serve("others", others)];
    let status = |at: usize, fields: &str| ask(&mut UnixStream::connect(&servers[at].0).unwrap(), fields);

    assert_eq!(status(0, ""), "500");
    assert_eq!(status(0, "x-forwarded-for: 192.0.2.7\r\n"), "500", "the client may have written it");
    assert_eq!(status(2, "x-forwarded-for: 192.0.2.7\r\n"), "500", "the client may have written it");
    assert_eq!(status(1, ""), "500");
    assert_eq!(status(1, "x-forwarded-for: 192.0.2.7\r\n"), "200");
    assert_eq!(status(1, "x-forwarded-for: 198.51.100.1, 192.0.2.7\r\n"), "429");
    assert_eq!(status(1, "x-forwarded-for: 192.0.2.8\r\n"), "200");

    for (_, handle, thread) in servers {
        drop(handle.stop(false));
        thread.join().unwrap();
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn without_proxies_the_key_is_the_address_of_the_peer() {
    let limiter = Arc::new(Limiter::new(Quota::per_day(1)).unwrap());
    let limit = RateLimit::new(Arc::clone(&limiter)).key(ClientIp::peer());
    let server = Server::of(move || App::new().wrap(limit.clone()).default_service(web::to(|| async { "hello" })));
    assert_eq!(ask(&mut TcpStream::connect(server.address).unwrap(), ""), "200");
    assert!(limiter.peek(std::net::IpAddr::from([127, 0, 0, 1])).is_denied());
}
