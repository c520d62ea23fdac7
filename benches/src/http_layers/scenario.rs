//! What is asked of the layers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// What the layer stands around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// A service that answers at once: what the layer itself adds.
    Service,
    /// The routes of an axum router, which boxes futures and bodies.
    Router,
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// What the layer stands around.
    pub around: Around,
    /// Whether all requests are admitted, or all are denied.
    pub admitted: bool,
    /// How many clients take turns.
    pub keys: u32,
    /// Whether responses tell clients about their limits.
    pub headers: bool,
}

impl Scenario {
    /// All of them, in the order of the table.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for around in [Around::Service, Around::Router] {
            for admitted in [true, false] {
                for keys in [1, 100_000] {
                    all.extend([true, false].map(|headers| Self { around, admitted, keys, headers }));
                }
            }
        }
        all
    }

    /// As shown in tables.
    #[must_use]
    pub fn label(self) -> String {
        let around = if self.around == Around::Service { "service" } else { "axum router" };
        let decision = if self.admitted { "admitted" } else { "denied" };
        let keys = if self.keys == 1 { "1 key".into() } else { format!("{} k keys", self.keys / 1_000) };
        let headers = if self.headers { "headers" } else { "no headers" };
        format!("{around}, {decision}, {keys}, {headers}")
    }

    /// The limit of a client, and the window. Admitted: so short that it is never reached. Denied:
    /// one permit, which each client has used before anything is measured.
    #[must_use]
    pub const fn quota(self) -> (u32, Duration) {
        if self.admitted { (1_000, Duration::from_micros(100)) } else { (1, Duration::from_secs(3_600)) }
    }

    /// The clients, in the order in which they take turns.
    #[must_use]
    pub fn clients(self) -> Vec<SocketAddr> {
        let address = |n: u32| SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n)), 4711);
        let mut clients: Vec<SocketAddr> = (0..self.keys).map(address).collect();
        clients.shuffle(&mut StdRng::seed_from_u64(1));
        clients
    }
}

/// The request of a client, as a server hands it on.
///
/// # Panics
///
/// Never: its parts are fixed and valid.
#[must_use]
pub fn request(client: SocketAddr) -> Request {
    let request = Request::get("/")
        .header("host", "example.com")
        .header("user-agent", "curl/8.14.1")
        .header("accept", "*/*")
        .extension(ConnectInfo(client));
    request.body(Body::empty()).expect("a valid request")
}
