//! The end of a server, and the start of the next.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use tollgate_serve::{Listen, ServeError, Server, Stopped};

#[cfg(feature = "redis")]
use crate::place::Place;
use crate::place::by_both;
use crate::support::{POLICY, Running, read_all, server, until};

const ALICE: &str = r#"{"keys": {"client": "192.0.2.1", "user": "alice"}, "cost": 3}"#;

#[test]
fn what_was_charged_is_charged_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits");
    let start = || Running::start(server(POLICY).snapshot(&path));
    let served = start();
    assert_eq!(served.acquire(ALICE).status, 200);
    let stopped = served.stop();
    assert_eq!((stopped.cut_off, stopped.saved), (false, Some(2)));

    let served = start();
    assert_eq!(served.acquire(ALICE).status, 429);
    assert_eq!(served.acquire(r#"{"keys": {"client": "192.0.2.1", "user": "bob"}, "cost": 2}"#).status, 200);
    assert_eq!(served.stop().saved, Some(3));
}

/// The end of a server of `POLICY` that is told to stop while a request has begun, which is answered.
fn ended_with_a_request(server: Server) -> Stopped {
    let mut served = Running::start(server.time_to_stop(Duration::from_secs(600)));
    let mut stream = served.connect();
    let head = "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue";
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n", ALICE.len()).as_bytes()).unwrap();
    // The server waits for the body.
    let mut told = [0; 25];
    std::io::Read::read_exact(&mut stream, &mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");

    let mut idle = served.connect();
    served.tell_to_stop();
    until("end of new connections", || TcpStream::connect(served.address).is_err().then_some(()));
    // A connection without a request is ended at once.
    assert_eq!(read_all(&mut idle), "");
    stream.write_all(ALICE.as_bytes()).unwrap();
    // The connection ends after the answer.
    let text = read_all(&mut stream);
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    served.stop()
}

#[test]
fn a_request_that_has_begun_is_answered_and_in_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits");
    let stopped = ended_with_a_request(server(POLICY).snapshot(&path));
    assert_eq!((stopped.cut_off, stopped.saved), (false, Some(2)));
    assert_eq!(Running::start(server(POLICY).snapshot(&path)).acquire(ALICE).status, 429);
}

#[cfg(feature = "redis")]
#[test]
fn a_request_that_has_begun_is_answered_and_charged_on_the_store() {
    let Some(place) = Place::on_store() else { return };
    let stopped = ended_with_a_request(place.server(POLICY));
    assert_eq!((stopped.cut_off, stopped.saved), (false, None));
    assert_eq!(place.of(POLICY).acquire(ALICE).status, 429);
}

#[test]
fn a_connection_that_does_not_end_is_cut_off() {
    by_both(|place| {
        let served = Running::start(place.server(POLICY).time_to_stop(Duration::from_millis(50)));
        let mut stream = served.connect();
        let head =
            "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue";
        stream.write_all(format!("{head}\r\ncontent-length: 60\r\n\r\n").as_bytes()).unwrap();
        let mut told = [0; 25];
        std::io::Read::read_exact(&mut stream, &mut told).unwrap();
        let stopped = served.stop();
        assert_eq!((stopped.cut_off, stopped.saved), (true, None));
        assert_eq!(read_all(&mut stream), "");
    });
}

#[test]
fn a_snapshot_that_cannot_be_used_keeps_the_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = |policy: &str| {
        let listens = ["127.0.0.1:0".parse::<Listen>().unwrap()];
        let error = runtime.block_on(server(policy).snapshot(&path).bind(&listens)).unwrap_err();
        (error.to_string(), error)
    };
    std::fs::write(&path, "not a snapshot").unwrap();
    let (text, broken) = error(POLICY);
    assert!(matches!(broken, ServeError::SnapshotUnread(_)) && text.contains("limits: "), "{text}");

    std::fs::remove_file(&path).unwrap();
    let served = Running::start(server(POLICY).snapshot(&path));
    assert_eq!(served.acquire(ALICE).status, 200);
    assert_eq!(served.stop().saved, Some(2));
    let (text, other) = error("[[dimension]]\nname = \"user\"\nquota = [{ limit = 3, per = \"1d\" }]");
    assert!(matches!(other, ServeError::Restore { .. }), "{text}");
    assert!(text.ends_with("; remove the file to start afresh"), "{text}");
    // It is as it was.
    assert_eq!(Running::start(server(POLICY).snapshot(&path)).acquire(ALICE).status, 429);
}

#[test]
fn what_killed_saves_left_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3_600);
    let file = |name: &str, time| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(time).unwrap();
    };
    file(".tollgate-aB3dE9", long_ago);
    file(".tollgate-secrets", long_ago);
    // Another server may be saving.
    file(".tollgate-aB3dE8", std::time::SystemTime::now());
    Running::start(server(POLICY).snapshot(folder.path().join("limits"))).stop();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".tollgate-aB3dE8", ".tollgate-secrets", "limits"]);
}

#[test]
fn a_unix_socket_is_served_and_removed_and_one_that_was_left_behind_is_replaced() {
    use std::os::unix::net::{UnixListener, UnixStream};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.sock");
    // Nobody listens there any more.
    drop(UnixListener::bind(&path).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let bind = || server(POLICY).bind(std::slice::from_ref(&listen(&path))).await_on(&runtime);
    let bound = bind().unwrap();
    assert!(matches!(bind(), Err(ServeError::Bind { .. })), "a server listens");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.spawn(bound.run(async { drop(stopped.await) }));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.ends_with("\r\n\r\nok\n"), "{text}");
    drop(stop);
    runtime.block_on(server).unwrap().unwrap();
    assert!(!path.exists());
    // What is no socket stays.
    std::fs::write(&path, "a file").unwrap();
    assert!(matches!(bind(), Err(ServeError::Bind { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
}

fn listen(path: &std::path::Path) -> Listen {
    format!("unix:{}", path.display()).parse().unwrap()
}

trait AwaitOn: Future + Sized {
    fn await_on(self, runtime: &tokio::runtime::Runtime) -> Self::Output {
        runtime.block_on(self)
    }
}

impl<F: Future> AwaitOn for F {}

/// The default clock of a limiter may run seconds off in a day, and a client's timer does not.
#[test]
fn a_limit_of_a_day_runs_by_the_clock_of_the_system() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bound = runtime.block_on(server(POLICY).bind(&["127.0.0.1:0".parse().unwrap()])).unwrap();
    let shown = format!("{bound:?}");
    assert!(shown.contains("clock: InstantClock"), "{shown}");
}
