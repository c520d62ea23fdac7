//! What attackers try: many names from one address, and to hang up before the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use login_service::{OneUser, Passwords, Service};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tollgate::MockClock;
use tollgate_policy::Policy;
use tollgate_tower::{ClientAddress, TrustedProxies};

use crate::curl;

/// Serves the example's policy with a field before it. Clients are behind a proxy on loopback. Time
/// stands still.
async fn serve(before: &str, passwords: impl Passwords) -> SocketAddr {
    let policy = Policy::from_toml(&format!("{before}\n{}", include_str!("../../policy.toml"))).unwrap();
    let clients = ClientAddress::behind(TrustedProxies::new(["127.0.0.0/8"]).unwrap());
    let app = Service::new(&policy, clients, passwords, MockClock::new()).unwrap().clients();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await });
    address
}

/// The status of the answer to a log-in.
fn log_in(server: SocketAddr, user: &str, password: &str, client: &str) -> String {
    let command = format!(
        "curl -s -o /dev/null -w '%{{http_code}}' -X POST -u '{user}:{password}' -H 'X-Forwarded-For: {client}' \
         http://127.0.0.1:3000/login"
    );
    tokio::task::block_in_place(|| curl::run(&command, server))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_names_is_not_tried_from_one_address_and_hurts_nobody_else() {
    let server = serve("key_cap = 150", OneUser).await;
    let mut statuses = Vec::new();
    for name in 0..1_500 {
        statuses.push(log_in(server, &format!("user-{name}"), "guess", "203.0.113.66"));
    }
    assert_eq!(statuses[..30], ["401"; 30]);
    assert!(statuses[30..].iter().all(|status| status == "429"), "{statuses:?}");
    // Honest users are not at the cap on keys, from other addresses.
    for user in 0..20 {
        let client = format!("192.0.2.{user}");
        assert_eq!(log_in(server, &format!("honest-{user}"), "mistyped", &client), "401", "{user}");
        assert_eq!(log_in(server, "alice", "open sesame", &client), "200", "{user}");
    }
    assert_eq!(log_in(server, "alice", "open sesame", "203.0.113.66"), "429");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_addresses_of_one_ipv6_network_are_one_address() {
    let server = serve("key_cap = 100", OneUser).await;
    for name in 0..60 {
        let status = log_in(server, &format!("user-{name}"), "guess", &format!("2001:db8:0:1::{:x}", name + 1));
        assert_eq!(status, if name < 30 { "401" } else { "429" }, "{name}");
    }
    // The network beside it is another's.
    assert_eq!(log_in(server, "honest", "mistyped", "2001:db8:0:2::1").as_str(), "401");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_many_ipv6_networks_hurts_nobody_else() {
    // Three keys of each guess, and those of one other client.
    let server = serve("key_cap = 4500", OneUser).await;
    // Networks of 48 bits in one of 43 bits, each of which has 2,000 attempts.
    for network in 0..2_100 {
        let status = log_in(server, "alice", "guess", &format!("2001:db8:7:{network:x}::1"));
        assert_eq!(status, if network < 2_000 { "401" } else { "429" }, "{network}");
    }
    assert_eq!(log_in(server, "alice", "open sesame", "192.0.2.1"), "200");
}

/// Passwords whose first five checks do not end by themselves.
#[derive(Clone)]
struct Slow {
    begun: Arc<AtomicUsize>,
    began: Arc<Semaphore>,
    dropped: Arc<Semaphore>,
}

impl Passwords for Slow {
    async fn is_right(&self, _: &str, _: &str) -> bool {
        let _dropped = Dropped(Arc::clone(&self.dropped));
        let before = self.begun.fetch_add(1, Ordering::SeqCst);
        self.began.add_permits(1);
        if before < 5 { std::future::pending().await } else { false }
    }
}

/// Tells when a check is dropped.
struct Dropped(Arc<Semaphore>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_up_does_not_give_an_attempt_back() {
    let [began, dropped] = std::array::from_fn(|_| Arc::new(Semaphore::new(0)));
    let slow = Slow { begun: Arc::default(), began, dropped };
    let server = serve("", slow.clone()).await;
    for attempt in 0..30 {
        let mut stream = TcpStream::connect(server).unwrap();
        write!(
            stream,
            "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-forwarded-for: 192.0.2.1\r\n\
             authorization: Basic YWxpY2U6Z3Vlc3M=\r\n\r\n"
        )
        .unwrap();
        if attempt < 5 {
            // Hang up once the check has begun, and wait until the server has seen it.
            slow.began.acquire().await.unwrap().forget();
            drop(stream);
            slow.dropped.acquire().await.unwrap().forget();
        } else {
            let mut answer = String::new();
            tokio::task::block_in_place(|| stream.read_to_string(&mut answer)).unwrap();
            assert!(answer.starts_with("HTTP/1.1 429 "), "attempt {attempt}: {answer}");
        }
    }
    assert_eq!(slow.begun.load(Ordering::SeqCst), 5);
}
