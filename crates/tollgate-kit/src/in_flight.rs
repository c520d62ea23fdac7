//! What a service does whose requests a concurrency limit counts, whatever its framework. One bank of
//! behaviours: a real server on loopback, asked through sockets.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tollgate::{DirectLimiter, JointLimiter, Quota};

/// The header field with the key of both dimensions of a joint limiter.
pub const USER: &str = "x-user";

/// A service behind a limit. It answers by path:
/// - `/stream?N`: the body [`Work::open`] of this number;
/// - `/empty`: 204, without a body;
/// - `/never?N`: never, and holds that body meanwhile.
pub trait Service: Sized + Sync {
    /// A limit without keys.
    fn direct(limiter: Arc<DirectLimiter>, work: Work) -> Self;

    /// A limit whose two dimensions have the key [`USER`].
    fn joint(limiter: Arc<JointLimiter<(String, String)>>, work: Work) -> Self;

    fn address(&self) -> SocketAddr;
}

/// The same service, behind the limiter of a policy on a store. Both dimensions have the key [`USER`].
#[cfg(feature = "limited")]
pub trait OnStore: Service {
    fn of_policy(policy: &tollgate_policy::Policy, work: Work) -> Self;
}

/// The bodies that a server has open. Each ends as the test says.
#[derive(Clone, Default)]
pub struct Work(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    open: usize,
    most: usize,
    ends: HashMap<u32, End>,
    wakers: Vec<Waker>,
}

/// How a body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Whole,
    Fails,
}

impl Work {
    /// A body, which counts as open until it is dropped.
    pub fn open(&self, number: u32) -> OpenBody {
        let mut state = self.state();
        state.open += 1;
        state.most = state.most.max(state.open);
        self.0.1.notify_all();
        OpenBody { work: self.clone(), number, has_begun: false }
    }

    fn end(&self, number: u32, end: End) {
        let mut state = self.state();
        state.ends.insert(number, end);
        state.wakers.drain(..).for_each(Waker::wake);
    }

    /// Waits until so many are open.
    fn until_open(&self, wanted: usize) {
        let waited = self.0.1.wait_timeout_while(self.state(), PATIENCE, |state| state.open != wanted).unwrap();
        assert!(!waited.1.timed_out(), "{} are open, and not {wanted}", waited.0.open);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }
}

/// A body that sends one part at once, and then waits for its end.
pub struct OpenBody {
    work: Work,
    number: u32,
    has_begun: bool,
}

impl OpenBody {
    pub fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<&'static str>>> {
        if !self.has_begun {
            self.has_begun = true;
            return Poll::Ready(Some(Ok("part")));
        }
        let mut state = self.work.state();
        match state.ends.get(&self.number) {
            Some(End::Whole) => Poll::Ready(None),
            Some(End::Fails) => Poll::Ready(Some(Err(io::Error::other("the body fails")))),
            None => {
                state.wakers.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.work.state().open -= 1;
        self.work.0.1.notify_all();
    }
}

/// No test waits so long, unless it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection with one request.
struct Client(TcpStream);

impl Client {
    fn ask(service: &impl Service, method: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{USER}: alice\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        Self(stream)
    }

    /// Reads to the end of this text.
    fn until(&mut self, end: &str) -> String {
        let (mut read, mut byte) = (Vec::new(), [0]);
        while !read.ends_with(end.as_bytes()) {
            self.0.read_exact(&mut byte).unwrap();
            read.push(byte[0]);
        }
        String::from_utf8(read).unwrap().to_ascii_lowercase()
    }

    fn head(&mut self) -> String {
        self.until("\r\n\r\n")
    }

    /// The rest. A body that fails may reset the connection.
    fn rest(mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8(rest).unwrap()
    }
}

/// The value of a header field in a head.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn is_admitted(head: &str) -> bool {
    let status = head.split(' ').nth(1);
    assert!(matches!(status, Some("200" | "204" | "429")), "{head}");
    status != Some("429")
}

/// Asks until there is a place, since no answer tells when one is free.
fn admitted(service: &impl Service, method: &str, path: &str) -> (Client, String) {
    loop {
        let mut client = Client::ask(service, method, path);
        let head = client.head();
        if is_admitted(&head) {
            return (client, head);
        }
        thread::yield_now();
    }
}

const BODIES: u32 = 12;
const AT_A_TIME: u32 = 2;

/// Twelve clients want a body each. The others are denied while two are open, and a body that ends, a
/// body that fails and a client that hangs up each leave a place.
fn twelve(service: &impl Service, work: &Work, policy: &str, denied: &str) {
    let (send, receive) = channel();
    thread::scope(|scope| {
        for number in 0..BODIES {
            let send = send.clone();
            scope.spawn(move || {
                let (mut client, head) = admitted(service, "GET", &format!("/stream?{number}"));
                assert_eq!(field(&head, "ratelimit-policy"), Some(policy));
                client.until("part");
                send.send((number, client)).unwrap();
            });
        }
        let mut open = Vec::new();
        for left in (1..=BODIES).rev() {
            while open.len() < AT_A_TIME.min(left) as usize {
                open.push(receive.recv_timeout(PATIENCE).expect("there is a place"));
            }
            if open.len() == AT_A_TIME as usize {
                is_told_that_two_are_in_flight(service, policy, denied);
            }
            let (number, client) = open.remove(0);
            match left % 3 {
                0 => drop(client),
                end => {
                    let end = if end == 1 { End::Whole } else { End::Fails };
                    work.end(number, end);
                    assert_eq!(client.rest().ends_with("\r\n0\r\n\r\n"), end == End::Whole, "{end:?}");
                }
            }
        }
    });
    work.until_open(0);
    assert_eq!(work.state().most, AT_A_TIME as usize);
}

fn is_told_that_two_are_in_flight(service: &impl Service, policy: &str, limit: &str) {
    let mut client = Client::ask(service, "GET", "/stream?99");
    let head = client.head();
    assert!(!is_admitted(&head), "{head}");
    assert_eq!((field(&head, "retry-after"), field(&head, "ratelimit-policy")), (None, Some(policy)));
    assert_eq!(field(&head, "ratelimit"), Some(limit));
    let body = client.rest();
    let detail = r#""status":429,"detail":"Too many requests are in flight. Try again when one has ended.""#;
    assert!(body.contains(detail), "{body}");
}

pub fn of_twelve_bodies_two_are_open_at_a_time<S: Service>() {
    let limiter = Arc::new(DirectLimiter::new(Quota::concurrent(AT_A_TIME)).unwrap());
    let work = Work::default();
    let service = S::direct(Arc::clone(&limiter), work.clone());
    twelve(&service, &work, r#""default";q=2;qu="concurrent-requests""#, r#""default";r=0"#);
    assert_eq!(limiter.peek().remaining(), AT_A_TIME);
}

/// Denied requests are charged nothing, and admitted ones keep their permits.
pub fn of_twelve_bodies_two_are_open_at_a_time_and_the_rate_is_kept<S: Service>() {
    let limiter = JointLimiter::builder()
        .dimension("rate", [Quota::per_day(100)])
        .dimension("streams", [Quota::concurrent(AT_A_TIME)])
        .build();
    let (limiter, work) = (Arc::new(limiter.unwrap()), Work::default());
    let service = S::joint(Arc::clone(&limiter), work.clone());
    let policy = r#""rate";q=100;w=86400, "streams";q=2;qu="concurrent-requests""#;
    twelve(&service, &work, policy, r#""streams";r=0"#);
    let left = limiter.peek(("alice", "alice")).unwrap();
    assert_eq!(left.quotas().map(|quota| quota.remaining()).collect::<Vec<_>>(), [100 - BODIES, AT_A_TIME]);
    let (_, head) = admitted(&service, "GET", "/empty");
    let told = field(&head, "ratelimit").unwrap();
    assert!(told.starts_with("\"rate\";r=87;t=") && told.ends_with(", \"streams\";r=1"), "{told}");
}

/// As in process: of two servers that share a store, too.
#[cfg(feature = "limited")]
pub fn of_twelve_bodies_two_are_open_at_a_time_on_a_store<S: OnStore>() {
    let Some(store) = crate::redis::PolicyStore::start() else { return };
    let dimensions = "[[dimension]]\nname = \"rate\"\nquota = [{ limit = 100, per = \"1d\" }]\n\
                      [[dimension]]\nname = \"streams\"\nquota = [{ algorithm = \"concurrency\", limit = 2, \
                      max_hold = \"1h\" }]\n";
    let policy = tollgate_policy::Policy::from_toml(&store.policy("", dimensions)).unwrap();
    let work = Work::default();
    let [service, another] = [(); 2].map(|()| S::of_policy(&policy, work.clone()));
    let fields = r#""rate";q=100;w=86400, "streams";q=2;qu="concurrent-requests""#;
    twelve(&service, &work, fields, r#""streams";r=0"#);
    // All places are free again, soon after the last body.
    let mut rate = 100 - BODIES;
    loop {
        let (_, head) = admitted(&another, "GET", "/empty");
        rate -= 1;
        let told = field(&head, "ratelimit").unwrap();
        assert!(told.starts_with(&format!("\"rate\";r={rate};t=")), "{told}");
        if told.ends_with(", \"streams\";r=1") {
            break;
        }
    }
}

/// With one place, no request waits for the one before.
pub fn without_a_body_a_request_is_over_with_its_head<S: Service>() {
    let limiter = Arc::new(DirectLimiter::new(Quota::concurrent(1)).unwrap());
    let service = S::direct(limiter, Work::default());
    for _ in 0..50 {
        let mut client = Client::ask(&service, "GET", "/empty");
        assert!(is_admitted(&client.head()));
    }
}

pub fn a_client_that_hangs_up_before_the_answer_leaves_its_place<S: Service>() {
    let limiter = Arc::new(DirectLimiter::new(Quota::concurrent(1)).unwrap());
    let work = Work::default();
    let service = S::direct(limiter, work.clone());
    for number in 0..5 {
        let client = Client::ask(&service, "GET", &format!("/never?{number}"));
        work.until_open(1);
        assert!(!is_admitted(&Client::ask(&service, "GET", "/empty").head()));
        drop(client);
        work.until_open(0);
        let (_, head) = admitted(&service, "GET", "/empty");
        assert!(head.contains(" 204 "), "{head}");
    }
}

/// That of a service which is [`OnStore`].
#[macro_export]
macro_rules! in_flight_on_a_store_until_the_body_ends {
    ($Service:ty) => {
        $crate::in_flight_until_the_body_ends!($Service: of_twelve_bodies_two_are_open_at_a_time_on_a_store,);
    };
}

/// The tests of the bank, for a [`Service`].
#[macro_export]
macro_rules! in_flight_until_the_body_ends {
    ($Service:ty) => {
        $crate::in_flight_until_the_body_ends!(
            $Service:
            of_twelve_bodies_two_are_open_at_a_time,
            of_twelve_bodies_two_are_open_at_a_time_and_the_rate_is_kept,
            without_a_body_a_request_is_over_with_its_head,
            a_client_that_hangs_up_before_the_answer_leaves_its_place,
        );
    };
    ($Service:ty: $($test:ident,)+) => { $(
        #[test]
        fn $test() {
            $crate::in_flight::$test::<$Service>();
        }
    )+ };
}
