//! A server for tests: started on a Unix socket in a folder of its own, and stopped with the test.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionLike};
use tollgate_redis::{Secret, Store, StoreBuilder, testing};

use crate::programs::{Process, skipped};

/// Names another program than `redis-server`, for instance `valkey-server`.
const PROGRAM: &str = "TOLLGATE_REDIS_SERVER";

/// The key from which a server of tests reads its time.
pub const TIME: &str = "time-of-tests";

/// A server for the `[store]` of policies, and the secret of those who ask it.
pub struct PolicyStore {
    redis: Server,
    folder: tempfile::TempDir,
}

impl PolicyStore {
    /// `None`, and a loud line, if there is no program.
    pub fn start() -> Option<Self> {
        let store = Self { redis: Server::start(&[])?, folder: tempfile::tempdir().expect("a folder") };
        std::fs::write(store.folder.path().join("secret"), "the secret of all nodes\n").expect("a file");
        Some(store)
    }

    /// The dimensions there, with these lines in the `[store]`. A busy machine takes its time.
    pub fn policy(&self, more: &str, dimensions: &str) -> String {
        let secret = self.folder.path().join("secret");
        let (url, secret) = (self.redis.address(), secret.display());
        let breaker = "breaker = { failures = 3, pause = \"1h\" }\ntimeout = \"20s\"";
        format!("[store]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{breaker}\n{more}\n{dimensions}")
    }
}

pub struct Server {
    child: Process,
    folder: tempfile::TempDir,
    options: Vec<String>,
}

impl Server {
    /// A server with these options besides; `None`, and a loud line, if there is no program.
    pub fn start(options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = match command(&folder, &options).spawn() {
            Ok(child) => Process(child),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skipped(&format!("there is no {}; install it, or name another by {PROGRAM}", program()));
                return None;
            }
            Err(error) => panic!("{}: {error}", program()),
        };
        let server = Self { child, folder, options };
        server.answers();
        Some(server)
    }

    /// Kills it by SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again after it was killed, on the files that it left.
    pub fn start_again(&mut self) {
        self.child = Process(command(&self.folder, &self.options).spawn().expect("as before"));
        self.answers();
    }

    /// Waits until it answers, with its data.
    fn answers(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.try_connect().is_some_and(|mut connection| connection.check_connection()) {
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn address(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    fn try_connect(&self) -> Option<Connection> {
        Client::open(self.address()).expect("an address").get_connection().ok()
    }

    /// A connection that is not the limiter's.
    pub fn connect(&self) -> Connection {
        self.try_connect().expect("the server answers")
    }

    /// The settings of a store on this server.
    pub fn builder(&self) -> StoreBuilder {
        patient(&self.address())
    }

    pub fn store(&self) -> Store {
        self.builder().build().expect("a store")
    }

    /// A store whose time is what its [`clock`](Self::clock) says, and may go back.
    pub fn store_with_time(&self) -> Store {
        let century = Duration::from_secs(100 * 366 * 86_400);
        self.clock().set(START);
        testing::with_time_from(self.builder().max_clock_skew(century), TIME).build().expect("a store")
    }

    pub fn clock(&self) -> Clock {
        Clock(RefCell::new(self.connect()))
    }
}

fn program() -> String {
    std::env::var(PROGRAM).unwrap_or_else(|_| "redis-server".to_owned())
}

fn command(folder: &tempfile::TempDir, options: &[String]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder.path()).args(["--port", "0", "--unixsocket", "socket", "--save", ""]);
    command.args(["--appendonly", "no"]).args(options).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A port of this machine that nobody listens at, and whose cluster bus (10,000 more) is a port as well.
pub fn free_port() -> u16 {
    loop {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if port < 55_000 {
            return port;
        }
    }
}

/// The settings of a store at this address. A busy machine takes its time.
pub fn patient(address: &str) -> StoreBuilder {
    Store::builder(address, secret()).timeout(Duration::from_secs(20)).connect_timeout(Duration::from_secs(20))
}

pub fn secret() -> Secret {
    Secret::new("the secret of the tests").expect("long enough")
}

/// The time of a [store with time](Server::store_with_time), in microseconds.
pub struct Clock(RefCell<Connection>);

impl Clock {
    pub fn set(&self, micros: u64) {
        let mut connection = self.0.borrow_mut();
        redis::cmd("SET").arg(TIME).arg(micros).exec(&mut *connection).expect("the server takes a time");
    }
}

/// Another name of a limiter each time, so that no case sees the keys of another.
pub fn case_name() -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed))
}

/// A command whose reply is of this type.
pub fn ask<T: redis::FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query(connection).expect("a reply")
}

/// A runtime of one thread.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A moment after now, so that no key of a test expires by the real clock while it runs.
pub const START: u64 = 2_500_000_000_000_000;
