//! What a decision costs the server, beside `INCR`, the classic sorted set and GCRA, each of the two
//! in one script.
//!
//! ```sh
//! cargo run --release -p tollgate-redis --example speed
//! ```
//!
//! It starts a `redis-server` of its own, or the program that `TOLLGATE_REDIS_SERVER` names. 64 tasks
//! share a connection. The figure is how many calls a second the processor time of the server allows,
//! with what it takes to read and to answer; so it depends on no other load of the machine.

use std::error::Error;
use std::future::Future;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use tollgate::{Limiter, Quota};
use tollgate_redis::{RedisLimiter, Secret, Store};

const TASKS: u32 = 64;
const CALLS: u32 = 1000;
const LIMIT: u32 = 100;

/// ZREMRANGEBYSCORE, ZCARD, ZADD: a member a permit.
const SORTED_SET: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - tonumber(ARGV[2]))
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('ZADD', KEYS[1], now, time[1] .. time[2] .. ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000)
    return 1
end
return 0";

/// A theoretical arrival time a key.
const GCRA: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step = ARGV[2] / ARGV[1]
local arrival = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0)) + step
if arrival - now > tonumber(ARGV[2]) then
    return 0
end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return 1";

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&server))
}

async fn measure(server: &Server) -> Result<(), Box<dyn Error>> {
    let client = redis::Client::open(server.address())?;
    let connection = client.get_multiplexed_async_connection().await?;
    let store = Store::builder(&server.address(), Secret::new("the secret of the benchmark")?);
    let store = store.timeout(Duration::from_secs(60)).build()?;
    println!("{:34} | {:>9} | {:>7}", "call", "a second", "to INCR");

    let incr =
        server.rate(&client, |task, _| call(&connection, redis::cmd("INCR").arg(format!("incr:{task}")))).await?;
    show("INCR", incr, incr);
    let scripts = [("sorted set", SORTED_SET), ("GCRA", GCRA)];
    for (name, text) in scripts {
        let hash = redis::Script::new(text).prepare_invoke().load_async(&mut connection.clone()).await?;
        for (what, limit) in [("admitted", 1_000_000_u32), ("denied", LIMIT)] {
            let rate = server.rate(&client, |task, number| {
                let (key, member) = (format!("{name}:{what}:{task}"), format!("{task}-{number}"));
                let mut command = redis::cmd("EVALSHA");
                command.arg(&hash).arg(1).arg(key).arg(limit).arg(60_000_000).arg(member);
                call(&connection, &command)
            });
            show(&format!("{name}, {what}"), rate.await?, incr);
        }
    }
    let bucket = |limit| Quota::token_bucket(limit, limit, Duration::from_secs(60));
    for (name, quota) in [("log", Quota::per_minute as fn(u32) -> Quota), ("token bucket", bucket)] {
        for (what, limit) in [("admitted", 1_000_000), ("denied", LIMIT)] {
            let limiter = Arc::new(RedisLimiter::new(&store, &format!("{name} {what}"), quota(limit))?);
            let rate = server.rate(&client, |task, _| {
                let limiter = Arc::clone(&limiter);
                async move { limiter.try_acquire(task.to_be_bytes()).await.map(drop).expect("an answer") }
            });
            show(&format!("tollgate-redis {name}, {what}"), rate.await?, incr);
        }
    }
    let hot = Arc::new(RedisLimiter::new(&store, "hot", Quota::per_minute(1_000_000))?);
    let rate = server.rate(&client, |_, _| {
        let hot = Arc::clone(&hot);
        async move { hot.try_acquire("one key").await.map(drop).expect("an answer") }
    });
    show("tollgate-redis log, one hot key", rate.await?, incr);

    memory(&store, connection).await?;
    cached(&store).await?;
    leased(&store, &client).await
}

fn call(connection: &MultiplexedConnection, command: &redis::Cmd) -> impl Future<Output = ()> + Send + use<> {
    let (mut connection, command) = (connection.clone(), command.clone());
    async move { command.exec_async(&mut connection).await.expect("an answer") }
}

fn show(name: &str, rate: f64, incr: f64) {
    println!("{name:34} | {rate:9.0} | {:7.2}", rate / incr);
}

/// Bytes a permit of a key with 10,000 of them.
async fn memory(store: &Store, mut connection: MultiplexedConnection) -> Result<(), Box<dyn Error>> {
    const PERMITS: u32 = 10_000;
    let limiter = RedisLimiter::new(store, "memory", Quota::per_hour(PERMITS))?;
    for number in 0..PERMITS {
        let _ = limiter.try_acquire("alice").await?;
        redis::cmd("ZADD")
            .arg("set")
            .arg(number)
            .arg(1_790_000_000_000_000_u64 + u64::from(number))
            .exec_async(&mut connection)
            .await?;
    }
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("*{}*", limiter.digest("alice"))).query_async(&mut connection).await?;
    for (name, key) in [("log", &*keys[0]), ("sorted set", "set")] {
        let bytes: u32 = redis::cmd("MEMORY").arg("USAGE").arg(key).query_async(&mut connection).await?;
        println!("{name}: {:.1} bytes a permit", f64::from(bytes) / f64::from(PERMITS));
    }
    Ok(())
}

/// A cached denial beside a denial in process.
async fn cached(store: &Store) -> Result<(), Box<dyn Error>> {
    const TIMES: u32 = 2_000_000;
    let quota = Quota::per_hour(1);
    let remote = RedisLimiter::builder(store, "cached", quota).cache_denials(1024).build()?;
    let local = Limiter::<str>::new(quota)?;
    for _ in 0..2 {
        let _ = (remote.try_acquire("alice").await?, local.try_acquire("alice"));
    }
    let start = Instant::now();
    for _ in 0..TIMES {
        assert!(local.try_acquire("alice").is_denied());
    }
    let in_process = start.elapsed() / TIMES;
    let start = Instant::now();
    for _ in 0..TIMES {
        assert!(remote.try_acquire("alice").await?.is_denied());
    }
    println!("a cached denial: {:?}; a denial in process: {in_process:?}", start.elapsed() / TIMES);
    Ok(())
}

/// Leases of 100, with the calls that take them, beside a log in process. 64 tasks have a key each, and
/// share a thread.
async fn leased(store: &Store, client: &redis::Client) -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    let remote = RedisLimiter::builder(store, "leased", Quota::quantised_log(1 << 30, 60 * second, second));
    let remote = Arc::new(remote.lease(100, 4096).build()?);
    let local = Arc::new(Limiter::<u32>::new(Quota::per_minute(1 << 20))?);
    let before = Server::used(client)?;
    let leased = per_call(|task| {
        let remote = Arc::clone(&remote);
        async move {
            for _ in 0..LEASED {
                assert!(remote.try_acquire(task.to_be_bytes()).await.expect("an answer").is_admitted());
            }
        }
    });
    let (leased, counts) = (leased.await, remote.counts());
    let requests = counts.admitted + counts.admitted_by_lease;
    let at_server = Duration::from_secs_f64((Server::used(client)? - before) / requests as f64);
    let in_process = per_call(|task| {
        let local = Arc::clone(&local);
        async move {
            for _ in 0..LEASED {
                assert!(local.try_acquire(task).is_admitted());
            }
        }
    });
    let in_process = in_process.await;
    println!("a request by leases of 100: {leased}, of the server {at_server:?}; by a log in process: {in_process}");
    Ok(())
}

const LEASED: u32 = 20_000;

/// The time of a request, and that of the processor where Linux tells it, in the best of five rounds.
async fn per_call<F: Future<Output = ()> + Send + 'static>(all: impl Fn(u32) -> F) -> String {
    let (mut best, mut used) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let (start, before) = (Instant::now(), used_here());
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            tasks.spawn(all(task));
        }
        tasks.join_all().await;
        best = best.min(start.elapsed() / (TASKS * LEASED));
        used = used.min((used_here() - before) / (TASKS * LEASED));
    }
    format!("{best:?}, of the processor {used:?}")
}

/// The processor time of this thread so far.
fn used_here() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_ascii_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

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
        let server = Self { child: command.stdout(Stdio::null()).spawn()?, folder };
        while redis::Client::open(server.address())?.get_connection().is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    fn address(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("socket").display())
    }

    /// The processor time of the server so far, in seconds.
    fn used(client: &redis::Client) -> Result<f64, Box<dyn Error>> {
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut client.get_connection()?)?;
        let of = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        Ok(of("used_cpu_sys:").ok_or("no figure")? + of("used_cpu_user:").ok_or("no figure")?)
    }

    /// Calls for each second of the server's processor time, in the best of five rounds.
    async fn rate<F: Future<Output = ()> + Send + 'static>(
        &self,
        client: &redis::Client,
        call: impl Fn(u32, u32) -> F,
    ) -> Result<f64, Box<dyn Error>> {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let before = Self::used(client)?;
            for number in 0..CALLS {
                let mut tasks = tokio::task::JoinSet::new();
                for task in 0..TASKS {
                    tasks.spawn(call(task, number));
                }
                tasks.join_all().await;
            }
            best = best.min(Self::used(client)? - before);
        }
        Ok(f64::from(CALLS * TASKS) / best)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
