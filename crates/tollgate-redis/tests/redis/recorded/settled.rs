//! Eight processes that charge an estimate, hold the request in flight, settle it at the actual cost
//! and leave, while some of them are killed. What the store has charged in the end is what was used,
//! give or take the one call of each task that its process had under way when it died. The killed
//! hold their places until their time is over, and not longer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Connection;
use tokio::task::JoinSet;
use tollgate::{Decision, Quota};
use tollgate_redis::{RedisJointLimiter, Store};

use super::client::now;
use super::{MICROSECOND, PROCESSES};
use tollgate_kit::checker::in_flight::{self, Stay};
use tollgate_kit::checker::record::READING_ERROR;
use tollgate_kit::checker::settled::{Call, Charge, check};
use tollgate_kit::programs::Process;
use tollgate_kit::redis::{Server, ask, patient, runtime};

/// Tells a process that it is such a client: its number and the address of the server.
const CLIENT: &str = "TOLLGATE_TEST_SETTLING_CLIENT";

/// Tasks of a process. Each has one call under way.
const TASKS: u32 = 3;
const LIMIT: u32 = 200;
/// So many requests of a key at a time, and for how long one that was killed is taken for one of them.
const IN_FLIGHT: u32 = 8;
const HOLD: Duration = Duration::from_millis(50);
/// A task goes on to the next key after so many denials.
const DENIALS: u32 = 3;
/// How often a process is killed, at least and at most.
const ROUNDS: (u32, u32) = (16, 200);

/// A log and a window of which nothing expires while this runs, and the requests in flight.
fn limiter(store: &Store) -> RedisJointLimiter {
    let hour = Duration::from_secs(3600);
    let builder = RedisJointLimiter::builder(store, "settled").dimension("log", [Quota::new(LIMIT, hour)]);
    let builder = builder.dimension("window", [Quota::fixed_window(LIMIT, hour)]);
    builder.dimension("in flight", [Quota::concurrent(IN_FLIGHT).held_at_most(HOLD)]).build().unwrap()
}

/// What a client does until it is killed. Does nothing in a run of all tests.
#[test]
fn a_client_that_settles() {
    let Ok(task) = std::env::var(CLIENT) else { return };
    let (number, address) = task.split_once(' ').expect("a number and an address");
    let number: u64 = number.parse().unwrap();
    let limiter = Arc::new(limiter(&patient(address).build().unwrap()));
    let file = Arc::new(File::create(Path::new(&format!("settling-{number}"))).unwrap());
    runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..u64::from(TASKS) {
            let seed = (number * u64::from(TASKS) + task + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            tasks.spawn(charge_and_settle(Arc::clone(&limiter), Arc::clone(&file), task, seed));
        }
        tasks.join_all().await;
    });
}

/// A task: writes each call down before it makes it, and again once it is answered.
async fn charge_and_settle(limiter: Arc<RedisJointLimiter>, file: Arc<File>, task: u64, mut seed: u64) {
    let (mut key, mut denials) = (0_u32, 0);
    for number in 0.. {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let drawn = |shift: u32, below: u64| u32::try_from((seed >> shift) % below).expect("small");
        let (id, cost, actual) = (number * u64::from(TASKS) + task, 1 + drawn(8, 6), drawn(24, 13));
        let write = |line: String| (&*file).write_all(line.as_bytes()).expect("the file takes a line");
        write(format!("asks {id} {key} {cost} {}\n", now()));
        let name = key.to_be_bytes();
        let decided = limiter.try_enter_n(&[Some(name.as_slice()); 3], cost).await.expect("the server answers");
        // The dimensions that deny.
        let denies = match *decided {
            Decision::Admitted(_) => 0,
            Decision::Denied(denial) => denial.violated().map(|it| 1_u64 << it).sum(),
        };
        write(format!("told {id} {denies} {}\n", now()));
        if denies > 0 {
            denials += u32::from(denies & PERMITS != 0);
            (key, denials) = if denials < DENIALS { (key, denials) } else { (key + 1, 0) };
            continue;
        }
        let (in_flight, receipt) = decided.enter();
        // Some are never settled.
        if drawn(40, 5) > 0 {
            write(format!("settles {id} {actual} {}\n", now()));
            let charged = limiter.settle(receipt, actual).await.expect("the server answers");
            write(format!("settled {id} {charged} {}\n", now()));
        }
        // Work that takes longer than a call, so that others certainly find it there.
        tokio::time::sleep(Duration::from_millis(drawn(48, 8).into())).await;
        write(format!("leaves {id} 0 {}\n", now()));
        in_flight.leave().await.expect("the server answers");
        write(format!("left {id} 0 {}\n", now()));
    }
}

/// The dimensions of permits, and that of requests in flight.
const PERMITS: u64 = 0b011;
const PLACES: u64 = 0b100;

/// A request as both checkers see it.
struct Request {
    charge: Charge,
    stay: Stay,
    /// The dimensions that deny it, if there was an answer.
    denies: Option<u64>,
}

impl Request {
    /// Whether these dimensions denied it, or nothing did.
    fn is_judged_by(&self, dimensions: u64) -> bool {
        self.denies.is_none_or(|denies| denies == 0 || denies & dimensions != 0)
    }
}

/// A client as its parent has it.
struct Client {
    child: Process,
    file: PathBuf,
}

impl Client {
    fn start(number: u32, server: &Server) -> Self {
        let folder = server.socket().parent().expect("a folder").to_owned();
        let file = folder.join(format!("settling-{number}"));
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "recorded::settled::a_client_that_settles"]);
        command.env(CLIENT, format!("{number} {}", server.address())).current_dir(folder).stdout(Stdio::null());
        Self { child: Process(command.spawn().expect("this test, once more")), file }
    }

    fn kill(&mut self) {
        assert!(self.child.try_wait().expect("a child").is_none(), "a process ended by itself");
        self.child.kill().expect("a child that runs for ever");
        self.child.wait().expect("a child");
    }

    /// What it has done so far. A line without an end is not whole yet, or its process died.
    fn requests(&self) -> Vec<Request> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut requests: BTreeMap<u64, Request> = BTreeMap::new();
        for line in text[..whole].lines() {
            let (what, numbers) = line.split_once(' ').expect("a word");
            let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            let small = |number: u64| u32::try_from(number).unwrap();
            if let ("asks", &[id, key, cost, before]) = (what, &*numbers) {
                let asked = Call { before, after: None };
                let (key, cost) = (small(key), small(cost));
                let charge = Charge { key, cost, asked, is_admitted: None, settled: None };
                let stay = Stay { key, entered: asked, is_admitted: None, left: None };
                requests.insert(id, Request { charge, stay, denies: None });
                continue;
            }
            let &[id, number, time] = &*numbers else { panic!("{line}") };
            let Request { charge, stay, denies } = requests.get_mut(&id).expect("it was asked before");
            match what {
                "told" => {
                    charge.asked.after = Some(time.max(charge.asked.before));
                    (*denies, stay.entered) = (Some(number), charge.asked);
                    (charge.is_admitted, stay.is_admitted) = (Some(number == 0), Some(number == 0));
                }
                "leaves" => stay.left = Some(Call { before: time, after: None }),
                "left" => {
                    let call = stay.left.as_mut().expect("it left before");
                    call.after = Some(time.max(call.before));
                }
                "settles" => charge.settled = Some((Call { before: time, after: None }, small(number))),
                "settled" => {
                    let (call, actual) = charge.settled.as_mut().expect("it was settled before");
                    // Nothing has expired, so it is what it cost.
                    assert_eq!(small(number), *actual, "{line}");
                    call.after = Some(time.max(call.before));
                }
                _ => panic!("{line}"),
            }
        }
        requests.into_values().collect()
    }
}

/// What the store has charged to a key, by its log and by its window.
fn charged(limiter: &RedisJointLimiter, connection: &mut Connection, key: u32) -> [u64; 2] {
    let mut names = |dimension: usize| -> Vec<String> {
        ask(connection, &["KEYS", &format!("*{}*", limiter.digest(dimension, key.to_be_bytes()))])
    };
    let (logs, windows) = (names(0), names(1));
    // Behind a head of 16 bytes, 8 for each permit.
    let log = logs.first().map_or(0, |name| ask::<u64>(connection, &["STRLEN", name]) / 8 - 2);
    let window = windows.first().map_or(0, |name| {
        let value: Vec<u8> = ask(connection, &["GET", name]);
        u64::from_be_bytes(value[8..].try_into().expect("16 bytes"))
    });
    [log, window]
}

/// Waits until the server has done what the killed have sent.
fn hears_nobody_else(connection: &mut Connection) {
    let until = Instant::now() + Duration::from_secs(60);
    while ask::<String>(connection, &["CLIENT", "LIST"]).lines().count() > 1 {
        assert!(Instant::now() < until, "the server has other clients still");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_charged_is_what_was_used_while_those_who_settle_are_killed() {
    let Some(server) = Server::start(&[]) else { return };
    let mut running: Vec<Client> = (0..PROCESSES).map(|number| Client::start(number, &server)).collect();
    let mut killed: Vec<Client> = vec![];
    let done = |clients: &[Client]| {
        let requests = clients.iter().flat_map(Client::requests);
        requests.filter(|request| request.charge.settled.is_some()).count()
    };
    for round in 0..ROUNDS.1 {
        if round >= ROUNDS.0 && done(&running) + done(&killed) > 1_000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(60));
        let victim = usize::try_from(round % PROCESSES).unwrap();
        running[victim].kill();
        let another = Client::start(PROCESSES + round, &server);
        killed.push(std::mem::replace(&mut running[victim], another));
    }
    running.iter_mut().for_each(Client::kill);
    killed.append(&mut running);
    let mut connection = server.connect();
    hears_nobody_else(&mut connection);

    let requests: Vec<Request> = killed.iter().flat_map(Client::requests).collect();
    let limiter = limiter(&server.store());
    let keys: BTreeSet<u32> = requests.iter().map(|request| request.stay.key).collect();
    let runtime = runtime();
    let in_flight = || {
        runtime.block_on(async {
            let mut each = vec![];
            for &key in &keys {
                let left = limiter.peek(&[None, None, Some(&key.to_be_bytes())], 1).await.expect("the server answers");
                each.push((key, IN_FLIGHT - left.remaining()));
            }
            each
        })
    };
    let (from, held, until) = (now(), in_flight(), now());
    let hold = u64::try_from(HOLD.as_nanos()).unwrap();
    let stays = requests.iter().filter(|request| request.is_judged_by(PLACES)).map(|request| request.stay);
    let stays: Vec<Stay> = stays.collect();
    let limit = in_flight::Limit { requests: IN_FLIGHT, hold };
    let places = in_flight::check(limit, &stays, READING_ERROR + MICROSECOND, (from, until));
    let places = places.unwrap_or_else(|fault| panic!("{fault:?}"));
    for (key, held) in held {
        let places = &places[&key];
        assert!(places.contains(&held), "the key {key}: {held} in flight, {places:?} at most");
    }
    let died = stays.iter().filter(|stay| stay.is_admitted == Some(true) && stay.left.is_none());
    let full = stays.iter().filter(|stay| stay.is_admitted == Some(false));
    let (died, full) = (died.count(), full.count());
    assert!(died > 0 && full > 50, "{died} died in flight, {full} denied");
    // Their places are lost for no longer.
    std::thread::sleep(HOLD);
    assert!(in_flight().iter().all(|(_, held)| *held == 0), "{:?}", in_flight());
    let charges: Vec<Charge> =
        requests.iter().filter(|request| request.is_judged_by(PERMITS)).map(|request| request.charge).collect();
    let in_the_end = check(LIMIT, &charges, READING_ERROR + MICROSECOND).unwrap_or_else(|fault| panic!("{fault:?}"));
    let (mut least, mut most, mut in_debt) = (0, 0, 0);
    for (key, used) in &in_the_end {
        let [log, window] = charged(&limiter, &mut connection, *key);
        // All dimensions at once, whoever dies.
        assert_eq!(log, window, "the key {key}");
        assert!(used.contains(&log), "the key {key}: {log} charged, {used:?} used");
        (least, most) = (least + used.start(), most + used.end());
        in_debt += u32::from(log > u64::from(LIMIT));
    }
    // A call that is not answered is of at most 12 permits.
    let tasks = u64::try_from(killed.len()).unwrap() * u64::from(TASKS);
    assert!(most - least <= tasks * 12, "{least} to {most} used");
    let settled = charges.iter().filter(|charge| charge.settled.is_some()).count();
    let denied = charges.iter().filter(|charge| charge.is_admitted == Some(false)).count();
    assert!(settled > 500 && denied > 100 && in_debt > 0, "{settled} settled, {denied} denied, {in_debt} in debt");
}
