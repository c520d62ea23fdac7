//! A process that asks, and writes down each call as soon as it is answered.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tollgate::Decision;
use tollgate_redis::{Decided, DecidedBy, RedisLimiter, Store};

use super::{leases, limits, quota};
use tollgate_kit::checker::{Event, Told};
use tollgate_kit::programs::Process;
use tollgate_kit::redis::{Server, patient, runtime};

/// Tells a process that it is a client, and what it does.
const CLIENT: &str = "TOLLGATE_TEST_CLIENT";

/// Tasks of a process, which share its connection.
pub(crate) const TASKS: u32 = 3;
pub(crate) const CALLS: u32 = 150;
const KEYS: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Direct,
    Cached,
    /// For ever.
    Leased,
}

impl Mode {
    fn limiter(self, store: &Store) -> RedisLimiter {
        let [first, second] = limits().map(quota);
        let direct = RedisLimiter::builder(store, "recorded", first).and(second);
        let builder = match self {
            Self::Direct => direct,
            Self::Cached => direct.cache_denials(64),
            Self::Leased => RedisLimiter::builder(store, "recorded", leases::quota()).lease(32, 64),
        };
        builder.build().unwrap()
    }
}

/// A call, and who decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) event: Event,
    by: char,
}

impl Record {
    fn new(key: u32, cost: u32, (before, after): (u64, u64), decided: &Decided<Decision>) -> Self {
        let told = match **decided {
            Decision::Admitted(_) => Told::Admitted,
            // It is told as of when the answer came, which may be later than exact.
            Decision::Denied(_) if decided.decided_by() == DecidedBy::CachedDenial => Told::InTheWay,
            Decision::Denied(denial) => {
                let retry_after = u64::try_from(denial.retry_after().as_nanos()).expect("short");
                Told::Denied { retry_after, quota: denial.quota() }
            }
        };
        let by = match decided.decided_by() {
            DecidedBy::Store => 'S',
            DecidedBy::Lease => 'L',
            DecidedBy::CachedDenial => 'C',
            other => panic!("by {other:?}"),
        };
        Self { event: Event { key, cost, before, after, told }, by }
    }

    pub(crate) fn is_leased(&self) -> bool {
        self.by == 'L'
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.by == 'C'
    }

    fn line(&self) -> String {
        let Event { key, cost, before, after, told } = self.event;
        let (retry_after, quota) = match told {
            Told::Denied { retry_after, quota } => (retry_after, quota),
            _ => (0, 0),
        };
        let is_denied = u8::from(told != Told::Admitted);
        format!("{} {is_denied} {key} {cost} {before} {after} {retry_after} {quota}\n", self.by)
    }

    fn read(line: &str) -> Self {
        let (by, numbers) = line.split_at(1);
        let by = by.chars().next().expect("a letter");
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect();
        let [is_denied, key, cost, before, after, retry_after, quota] = *numbers else { panic!("{line}") };
        let told = match (is_denied, by) {
            (0, _) => Told::Admitted,
            (_, 'C') => Told::InTheWay,
            _ => Told::Denied { retry_after, quota: usize::try_from(quota).unwrap() },
        };
        let (key, cost) = (u32::try_from(key).unwrap(), u32::try_from(cost).unwrap());
        Self { event: Event { key, cost, before, after, told }, by }
    }
}

/// A client as its parent has it.
pub(crate) struct Client {
    pub(crate) child: Process,
    file: PathBuf,
}

impl Client {
    pub(crate) fn start(mode: Mode, number: u32, server: &Server) -> Self {
        let folder = server.socket().parent().expect("a folder").to_owned();
        let file = folder.join(format!("client-{number}"));
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", "recorded::client::a_client"])
            .env(CLIENT, format!("{mode:?} {number} {}", server.address()));
        command.current_dir(folder).stdout(Stdio::null());
        Self { child: Process(command.spawn().expect("this test, once more")), file }
    }

    /// What it has done until its end.
    pub(crate) fn finish(mut self) -> Vec<Record> {
        assert!(self.child.wait().expect("a child").success());
        self.records()
    }

    /// What it has done so far. A line without an end is not whole yet, or its process died.
    pub(crate) fn records(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text[..whole].lines().map(Record::read).collect()
    }
}

/// What a client does. Does nothing in a run of all tests.
#[test]
fn a_client() {
    let Ok(task) = std::env::var(CLIENT) else { return };
    let [mode, number, address] = *task.splitn(3, ' ').collect::<Vec<_>>() else { panic!("{task}") };
    let modes = [Mode::Direct, Mode::Cached, Mode::Leased];
    let mode = modes.into_iter().find(|it| format!("{it:?}") == mode).expect("a mode");
    let number: u32 = number.parse().unwrap();
    let store = patient(address).build().unwrap();
    let limiter = Arc::new(mode.limiter(&store));
    let file = Arc::new(File::create(Path::new(&format!("client-{number}"))).unwrap());
    let calls = if mode == Mode::Leased { u32::MAX } else { CALLS };
    runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let seed = (u64::from(number * TASKS + task) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            tasks.spawn(ask(Arc::clone(&limiter), Arc::clone(&file), seed, calls));
        }
        tasks.join_all().await;
    });
    let counts = limiter.counts();
    assert_eq!((counts.unavailable, counts.abandoned), (0, 0));
    assert!(counts.calls + counts.denied_by_cache <= u64::from(TASKS * CALLS));
}

/// A task: asks, and at times waits as long as it was told, so that many ask at the same moment.
async fn ask(limiter: Arc<RedisLimiter>, file: Arc<File>, mut seed: u64, calls: u32) {
    for _ in 0..calls {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (key, cost) = (u32::try_from(seed % KEYS).unwrap(), 1 + u32::try_from(seed >> 33).unwrap() % 3);
        let before = now();
        let decision = limiter.try_acquire_n(key.to_be_bytes(), cost).await.expect("the server answers");
        let record = Record::new(key, cost, (before, now().max(before)), &decision);
        (&*file).write_all(record.line().as_bytes()).expect("the file takes a line");
        if let (Some(wait), 0) = (decision.retry_after(), seed % 4) {
            tokio::time::sleep(wait).await;
        }
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_nanos()).expect("before 2554")
}
