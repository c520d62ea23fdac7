//! Servers and clients of the tests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use tollgate_policy::Policy;
use tollgate_serve::{Listen, Server, Stopped};

/// Clients and users, with 5 a day and 3 a day: time that passes in a test changes nothing.
pub(crate) const POLICY: &str = r#"
    [[dimension]]
    name = "address"
    key = ["client"]
    quota = [{ limit = 5, per = "1d" }]

    [[dimension]]
    name = "user"
    quota = [{ limit = 3, per = "1d" }]
"#;

pub(crate) fn server(policy: &str) -> Server {
    Server::new(Policy::from_toml(policy).unwrap())
}

/// A server that runs in a thread of its own until it is stopped or dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Stopped>>,
}

impl Running {
    pub(crate) fn of(policy: &str) -> Self {
        Self::start(server(policy))
    }

    pub(crate) fn start(server: Server) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let server = server.bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
                let Listen::Tcp(address) = server.listens()[0] else { panic!("it listens on an address") };
                bound.send(address).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap()
            })
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    /// Tells the server to stop, and does not wait for its end.
    pub(crate) fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) fn stop(mut self) -> Stopped {
        self.tell_to_stop();
        self.thread.take().unwrap().join().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn acquire(&self, body: &str) -> Answer {
        post(&self.url("/acquire"), "application/json", body.as_bytes())
    }

    /// The answer to a request with these header fields.
    pub(crate) fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let agent = agent();
        let mut request = agent.get(self.url(path));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        Answer::of(request.call().unwrap())
    }

    /// A figure of `/metrics`. The server may not have seen the end of a connection before.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = until("place", || Some(self.get("/metrics", &[])).filter(|answer| answer.status != 503)).body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// A connection, for requests that no client would send.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        // A test that would never end fails.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// All that comes back after these bytes, until the server ends the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        read_all(&mut stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

/// The longest that a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until the answer is there.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Some(found) => return found,
            None => assert!(Instant::now() < end, "no {what}"),
        }
        std::thread::yield_now();
    }
}

pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        // The server ended a connection of which it had not read all.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&text)),
    }
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into()
}

pub(crate) fn post(url: &str, kind: &str, body: &[u8]) -> Answer {
    Answer::of(agent().post(url).header("content-type", kind).send(body).unwrap())
}

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn of(mut response: ureq::http::Response<ureq::Body>) -> Self {
        let field = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        Self {
            status: response.status().as_u16(),
            fields: response.headers().iter().map(field).collect(),
            body: response.body_mut().read_to_string().unwrap(),
        }
    }

    /// The value of a header field that is there once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} comes twice");
        value
    }

    /// Problem details, whose status is that of the answer.
    pub(crate) fn problem(&self) -> Value {
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        problem_of(&self.body, self.status)
    }
}

/// Problem details with this status.
pub(crate) fn problem_of(body: &str, status: u16) -> Value {
    let problem: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body:?}"));
    assert_eq!(problem["status"], status, "{problem}");
    assert!(problem["title"].is_string(), "{problem}");
    problem
}
