//! Requests whose clients are the same in all programs and layers that decide by one policy file.

/// Five requests a day for each client, behind proxies.
pub const POLICY: &str = r#"
[client]
trusted_proxies = ["10.0.0.0/8"]

[[dimension]]
name = "address"
key = ["client"]
quota = [{ limit = 5, per = "1d" }]
"#;

/// A request.
pub struct Request {
    pub peer: String,
    /// Its field `X-Forwarded-For`.
    pub forwarded: Option<String>,
    /// What becomes of it after those before.
    pub is_admitted: bool,
}

impl Request {
    /// The hops that it came by, the last of them the peer.
    #[must_use]
    pub fn hops(&self) -> String {
        self.forwarded.iter().chain([&self.peer]).cloned().collect::<Vec<_>>().join(", ")
    }
}

/// Several clients, one after the other: all requests of each, of which five are admitted.
#[must_use]
pub fn requests() -> Vec<Request> {
    let mut all = Vec::new();
    let mut client = |count: usize, hops: &dyn Fn(usize) -> (String, Option<String>)| {
        all.extend((0..count).map(|at| {
            let (peer, forwarded) = hops(at);
            Request { peer, forwarded, is_admitted: at < 5 }
        }));
    };
    // Of one IPv6 network of 64 bits.
    client(50, &|at| (format!("2001:db8:1:2::{at:x}"), None));
    // IPv4, half of it as a socket for both shows it.
    client(8, &|at| (["192.0.2.7", "::ffff:192.0.2.7"][at % 2].to_owned(), None));
    // By proxies, with what the client wrote in front.
    client(8, &|at| (format!("10.0.0.{at}"), Some(format!("203.0.113.{at}, 198.51.100.7, 10.1.2.3"))));
    client(8, &|at| ("::ffff:10.0.0.2".to_owned(), Some(format!("2001:db8:5:6::{at}"))));
    // By nobody that is trusted.
    client(8, &|at| ("192.0.2.99".to_owned(), Some(format!("203.0.113.{at}"))));
    all
}
