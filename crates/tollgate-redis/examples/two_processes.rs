//! Two processes share one limit of 100: of any split of the requests, exactly 100 are admitted, or
//! all if there are less.
//!
//! ```sh
//! cargo run -p tollgate-redis --example two_processes
//! cargo run -p tollgate-redis --example two_processes redis://127.0.0.1:6379
//! ```
//!
//! Without an address it starts a `redis-server` of its own, or the program that
//! `TOLLGATE_REDIS_SERVER` names, and stops it at the end.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use tollgate::Quota;
use tollgate_redis::{RedisLimiter, Secret, Store};

const LIMIT: u32 = 100;

/// What is tried, with the requests of the one process and of the other.
const SPLITS: [(&str, u32, u32); 4] =
    [("even", 200, 200), ("uneven", 390, 10), ("one alone", 0, 400), ("below the limit", 60, 30)];

/// Tells a child what it is. Not an argument, because an address may have a password.
const CHILD: &str = "TOLLGATE_TWO_PROCESSES";

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let (server, address) = match std::env::args().nth(1) {
        Some(address) => (None, address),
        None => {
            let server = Server::start()?;
            let address = server.address();
            (Some(server), address)
        }
    };
    let run = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros();
    println!("split           | a limit of {LIMIT} a minute");
    for (number, (split, one, other)) in SPLITS.into_iter().enumerate() {
        // Another name is another limit.
        let name = format!("two-processes-{run}-{number}");
        let children = [one, other].map(|requests| spawn(&format!("{requests} {name} {address}")));
        let mut admitted = [0; 2];
        for (child, admitted) in children.into_iter().zip(&mut admitted) {
            let output = child?.wait_with_output()?;
            *admitted = String::from_utf8(output.stdout)?.trim().parse::<u32>()?;
        }
        let [by_one, by_other] = admitted;
        let (admitted, requests) = (by_one + by_other, one + other);
        println!("{split:15} | {admitted:3} of {requests:3} admitted: {by_one} of {one}, {by_other} of {other}");
    }
    drop(server);
    Ok(())
}

/// Starts this program once more.
fn spawn(task: &str) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?).env(CHILD, task).stdout(Stdio::piped()).spawn()
}

/// Sends its requests, and prints how many were admitted.
fn child(task: &str) -> Result<(), Box<dyn Error>> {
    let [requests, name, address] = *task.splitn(3, ' ').collect::<Vec<_>>() else { return Err("a task".into()) };
    let secret = Secret::new("both processes have the same")?;
    let store = Store::builder(address, secret).timeout(Duration::from_secs(10)).build()?;
    let limiter = RedisLimiter::new(&store, name, Quota::per_minute(LIMIT))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let admitted = runtime.block_on(async {
        let mut admitted = 0;
        for _ in 0..requests.parse()? {
            admitted += u32::from(limiter.try_acquire("alice").await?.is_admitted());
        }
        Ok::<u32, Box<dyn Error>>(admitted)
    })?;
    println!("{admitted}");
    Ok(())
}

/// A server on a Unix socket in a folder of its own.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Result<Self, Box<dyn Error>> {
        let program = std::env::var("TOLLGATE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(&program);
        command.current_dir(folder.path()).args(["--port", "0", "--unixsocket", "socket", "--save", ""]);
        let child = command.stdout(Stdio::null()).spawn();
        let child =
            child.map_err(|error| format!("{program}: {error}; install it, or give the address of a server"))?;
        let server = Self { child, folder };
        for _ in 0..1000 {
            let connection = redis::Client::open(server.address())?.get_connection();
            if connection.is_ok_and(|mut connection| redis::cmd("PING").exec(&mut connection).is_ok()) {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("the server does not answer".into())
    }

    fn address(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("socket").display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
