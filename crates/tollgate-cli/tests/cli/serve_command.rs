//! `tollgate serve`, started as its users do, asked over a socket, and stopped by signals.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};

use tollgate_kit::programs::Process;

const POLICY: &str = r#"
[[dimension]]
name = "address"
key = ["client"]
quota = [{ limit = 5, per = "1d" }]
"#;

/// A folder of this test, which the next run replaces.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.toml"), POLICY).unwrap();
    folder
}

fn tollgate(folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(folder).arg("serve").args(options).env("SECRET_OF_TESTS", "the secret of the tests");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

struct Served {
    child: Process,
    out: BufReader<ChildStdout>,
    /// What it said when it began.
    words: String,
    address: String,
}

impl Served {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut child = Process(tollgate(folder, options).spawn().unwrap());
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { child, out, words: String::new(), address: String::new() };
        while served.address.is_empty() {
            let begins = served.words.len();
            assert_ne!(served.out.read_line(&mut served.words).unwrap(), 0, "it ended: {}", served.words);
            let address = served.words[begins..].trim_end().strip_prefix("listening on http://");
            served.address = address.unwrap_or_default().to_owned();
        }
        served
    }

    fn acquire(&self, cost: u32) -> String {
        let body = format!(r#"{{"keys": {{"client": "192.0.2.7"}}, "cost": {cost}}}"#);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = "POST /acquire HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split("\r\n").next().unwrap().to_owned()
    }

    /// Sends a signal, and gives the rest of what it says.
    fn stop(mut self, signal: &str) -> String {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
        rest
    }
}

#[test]
fn what_was_charged_before_a_signal_is_charged_after_the_next_start() {
    let folder = folder("signals");
    let options = ["--listen", "127.0.0.1:0", "--address", "client", "--snapshot", "limits", "policy.toml"];
    for (signal, costs, told) in
        [("TERM", 3, None), ("HUP", 2, Some("restored 1 keys")), ("INT", 1, Some("restored 1"))]
    {
        let served = Served::start(&folder, &options);
        assert!(served.words.contains("policy.toml: good, 1 dimension\n"), "{}", served.words);
        assert!(served.words.contains("at most 5 in any 1d"), "{}", served.words);
        assert_eq!(served.words.contains("restored"), told.is_some(), "{}", served.words);
        assert!(served.words.contains(told.unwrap_or_default()), "{}", served.words);
        // 3 and 2 are all; one more is denied, also after another start.
        let expected = if costs == 1 { "HTTP/1.1 429 Too Many Requests" } else { "HTTP/1.1 200 OK" };
        assert_eq!(served.acquire(costs), expected);
        assert_eq!(served.stop(signal), "stopped, saved 1 keys\n");
    }
}

#[test]
fn what_makes_no_sense_ends_the_program_with_a_word_on_it() {
    let folder = folder("nonsense");
    std::fs::write(folder.join("broken.toml"), "[[dimension]]\nname = 7").unwrap();
    std::fs::write(folder.join("limits"), "no snapshot").unwrap();
    let run = |options: &[&str]| {
        let Output { status, stderr, .. } = tollgate(&folder, options).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    };
    for (options, code, expected) in [
        (&["policy.toml", "--optional", "user"][..], 2, "the policy has no field \"user\", only \"client\""),
        (&["policy.toml", "--header", "client"], 2, "write FIELD=NAME, such as user=x-api-key"),
        (&["policy.toml", "--header", "client=x y"], 2, "no header field can have the name \"x y\""),
        (&["policy.toml", "--listen", "localhost"], 2, "write 127.0.0.1:7117, [::1]:7117 or unix:"),
        (&["policy.toml", "--listen", "192.0.2.1:1"], 1, "192.0.2.1:1 can't be listened on: "),
        (&["policy.toml", "--max-connections", "0"], 2, "--max-connections"),
        (
            &["policy.toml", "--listen", "127.0.0.1:0", "--snapshot", "limits"],
            1,
            "the snapshot can't be read: limits: ",
        ),
        (
            &["policy.toml", "--listen", "127.0.0.1:0", "--snapshot", "no/such/limits"],
            1,
            "the snapshot can't be written: no/such/limits: ",
        ),
        (&["policy.toml", "--listen", "127.0.0.1:0", "--snapshot", "."], 1, "the snapshot can't be written: .: "),
        (&["broken.toml"], 2, "line 2, column 8"),
        (&["missing.toml"], 1, "missing.toml can't be read"),
    ] {
        let (status, text) = run(options);
        assert_eq!(status, code, "{options:?}: {text}");
        assert!(text.contains(expected), "{options:?}: {text}");
    }
}

/// A FIFO ends when a writer has come and gone, and there is none.
#[test]
fn a_policy_that_is_no_regular_file_is_refused_at_once() {
    let folder = folder("fifo");
    assert!(Command::new("mkfifo").arg(folder.join("fifo.toml")).status().unwrap().success());
    let commands: [&[&str]; 5] = [
        &["check", "fifo.toml"],
        &["serve", "--listen", "127.0.0.1:0", "fifo.toml"],
        &["replay", "--policy", "fifo.toml", "-"],
        &["compare", "--policy", "fifo.toml", "-"],
        &["check", "."],
    ];
    for arguments in commands {
        // One that waits for a writer is ended, so that the test fails and does not hang.
        let mut command = Command::new("timeout");
        command.arg("60").arg(env!("CARGO_BIN_EXE_tollgate")).args(arguments).current_dir(&folder);
        let Output { status, stderr, .. } = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert!(
            status.code() == Some(1) && text.contains(" is not a regular file\n"),
            "{arguments:?}: {status} {text}"
        );
    }
}

#[test]
fn check_shows_no_password_of_a_policy() {
    let folder = folder("password");
    let secret = "secret = { env = \"S\" }";
    let url = "redis://me:hunter2@host";
    for store in [format!("url = \"{url}\"\n{secret}"), "url = \"redis://host\"\nsecret = \"hunter2\"".to_owned()] {
        std::fs::write(folder.join("policy.toml"), format!("[store]\n{store}\n{POLICY}")).unwrap();
        for format in ["text", "json"] {
            let mut check = Command::new(env!("CARGO_BIN_EXE_tollgate"));
            let Output { status, stdout, stderr } =
                check.current_dir(&folder).args(["check", "--format", format, "policy.toml"]).output().unwrap();
            let text = [stdout, stderr].map(|text| String::from_utf8(text).unwrap()).concat();
            assert!(status.code() == Some(2) && text.contains("policy.toml"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

/// A number of HPACK with a prefix of seven bits.
#[cfg(target_os = "linux")]
fn number(mut value: usize) -> Vec<u8> {
    if value < 127 {
        return vec![u8::try_from(value).unwrap()];
    }
    let mut out = vec![127];
    value -= 127;
    while value >= 128 {
        out.push(u8::try_from(value % 128).unwrap() | 128);
        value /= 128;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

/// The frames of a request, whose head has a field of this length; its body does not end.
#[cfg(target_os = "linux")]
fn request(stream: u32, path: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let long = "x".repeat(length);
    let kind = if path == "/acquire" { "application/json" } else { "application/grpc" };
    let fields = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    let fields = fields.into_iter().chain([("content-type", kind), ("x-long", &long)]);
    let text = |text: &str| [&number(text.len())[..], text.as_bytes()].concat();
    let block: Vec<u8> = fields.flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
    let parts: Vec<&[u8]> = block.chunks(16_000).collect();
    let mut out = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        // HEADERS, or CONTINUATION; the last of them ends the head.
        let (kind, flags) = (if at == 0 { 1 } else { 9 }, if at + 1 == parts.len() { 4 } else { 0 });
        out.extend(frame(kind, flags, stream, part));
    }
    out.extend(frame(0, u8::from(path != "/acquire"), stream, body));
    out
}

#[cfg(target_os = "linux")]
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Clients that hold all that they can: heads near the most and above it, bodies that do not end, and
/// answers that are not taken.
#[cfg(target_os = "linux")]
#[test]
fn a_connection_holds_no_more_memory_than_the_guide_says() {
    const CONNECTIONS: usize = 20;
    /// As the guide has it.
    const KIB_EACH: usize = 1_536;
    const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    // The only descriptor has the entry `client`, with the value 192.0.2.1.
    let message = b"\0\0\0\0\x17\x12\x15\x0a\x13\x0a\x06client\x12\x09192.0.2.1";
    for (path, head, body, window) in [
        ("/acquire", 60_000, &[b' '; 500][..], 65_535),
        ("/acquire", 100, &[b' '; 500], 65_535),
        ("/acquire", 8_000, &[b' '; 500], 65_535),
        ("/acquire", 15_000, &[b' '; 500], 65_535),
        (RATE_LIMIT, 100, message, 0),
        (RATE_LIMIT, 15_000, message, 1),
    ] {
        let folder = folder("memory");
        let served = Served::start(&folder, &["--listen", "127.0.0.1:0", "--request-time", "10m", "policy.toml"]);
        let before = served.memory();
        let held: Vec<TcpStream> = std::thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CONNECTIONS).map(|_| scope.spawn(|| served.hold(path, head, body, window))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let after = served.memory();
        println!(
            "{path}, heads of {head}, a window of {window}: {} KiB each",
            after.saturating_sub(before) / CONNECTIONS
        );
        assert!(
            after.saturating_sub(before) < CONNECTIONS * KIB_EACH,
            "{path} {head} {window}: {before} to {after} KiB"
        );
        drop(held);
        assert_eq!(served.acquire(1), "HTTP/1.1 200 OK");
    }
}

#[cfg(target_os = "linux")]
impl Served {
    /// KiB of memory.
    fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// A connection with 64 such requests, all of which have come.
    fn hold(&self, path: &str, head: usize, body: &[u8], window: u32) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let window = [&[0, 4][..], &window.to_be_bytes()].concat();
        stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &window)[..]].concat()).unwrap();
        for at in 0..64 {
            stream.write_all(&request(2 * at + 1, path, head, body)).unwrap();
        }
        // The answer to a ping comes when all before it is read.
        stream.write_all(&frame(6, 0, 0, b"all read")).unwrap();
        let mut read = BufReader::new(stream.try_clone().unwrap());
        loop {
            let mut head = [0; 9];
            read.read_exact(&mut head).unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            read.read_exact(&mut payload).unwrap();
            if head[3] == 6 && payload == b"all read" {
                return stream;
            }
        }
    }
}

#[test]
fn a_start_says_by_which_ways_no_request_is_held_in_flight() {
    let folder = folder("in-flight");
    let in_flight = "[[dimension]]\nname = \"exports\"\nkey = [\"client\"]\n\
                     quota = [{ algorithm = \"concurrency\", limit = 5 }]\n";
    std::fs::write(folder.join("policy.toml"), format!("{POLICY}{in_flight}")).unwrap();
    let served = Served::start(&folder, &["--listen", "127.0.0.1:0", "policy.toml"]);
    for words in ["`/acquire` holds a request until `/release`", "asked by nginx or Envoy, which tell no end"] {
        assert!(served.words.contains(words), "{}", served.words);
    }
    // A request counts once, whatever its cost: the address has one left of its five.
    assert_eq!((served.acquire(4), served.acquire(1)), ("HTTP/1.1 200 OK".to_owned(), "HTTP/1.1 200 OK".to_owned()));
}

/// The policy on a store.
#[cfg(feature = "redis")]
fn on_store(folder: &Path, redis: &tollgate_kit::redis::Server, limit: u32) {
    let store = format!("[store]\nurl = \"{}\"\nsecret = {{ env = \"SECRET_OF_TESTS\" }}\n", redis.address());
    let policy = POLICY.replace("limit = 5", &format!("limit = {limit}"));
    std::fs::write(folder.join("policy.toml"), format!("{store}timeout = \"20s\"\n{policy}")).unwrap();
}

#[cfg(feature = "redis")]
#[test]
fn two_processes_on_one_store_admit_exactly_the_limit_also_when_one_is_killed() {
    let Some(redis) = tollgate_kit::redis::Server::start(&[]) else { return };
    let folder = folder("store");
    on_store(&folder, &redis, 100);
    let options = ["--listen", "127.0.0.1:0", "policy.toml"];
    let (one, two) = (Served::start(&folder, &options), Served::start(&folder, &options));
    assert!(one.words.contains("on the store redis+unix://"), "{}", one.words);
    assert!(one.words.contains("while it is away, requests are refused\n"), "{}", one.words);
    let admitted = |served: &Served, times: u32| (0..times).filter(|_| served.acquire(1) == "HTTP/1.1 200 OK").count();
    let both: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = [&one, &two, &one, &two].map(|it| scope.spawn(move || admitted(it, 15))).into();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(both, 60);
    // Killed, it loses nothing.
    drop(one);
    let third = Served::start(&folder, &options);
    let rest: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = [&third, &two, &third, &two].map(|it| scope.spawn(move || admitted(it, 25))).into();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(rest, 40);
    assert_eq!(two.stop("TERM"), "stopped\n");
}

#[cfg(feature = "redis")]
#[test]
fn what_no_store_does_ends_the_program_with_a_word_on_it() {
    let Some(redis) = tollgate_kit::redis::Server::start(&[]) else { return };
    let folder = folder("no-store");
    let refused = |options: &[&str]| {
        let Output { status, stderr, .. } = tollgate(&folder, options).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    };
    on_store(&folder, &redis, 5);
    let (code, text) = refused(&["--snapshot", "limits", "policy.toml"]);
    assert!(code == 2 && text.contains("leave out the snapshot"), "{text}");
    let policy = std::fs::read_to_string(folder.join("policy.toml")).unwrap();
    std::fs::write(folder.join("policy.toml"), policy.replace("SECRET_OF_TESTS", "NOT_SET")).unwrap();
    let (code, text) = refused(&["policy.toml"]);
    assert!(code == 2 && text.contains("NOT_SET: it is not set"), "{text}");
}

#[cfg(feature = "redis")]
#[test]
fn check_refuses_what_serve_refuses_with_the_same_words() {
    let folder = folder("refused");
    let store = |url: &str| format!("[store]\nurl = \"{url}\"\nsecret = {{ env = \"SECRET_OF_TESTS\" }}\n");
    let penalty = "[dimension.penalty]\ndenials = 3\nwithin = \"1m\"\nblocked_for = \"1h\"\n";
    for (policy, reason) in [
        (store("rediss://db:6379") + POLICY, "the address of the server cannot be used: write redis://host:port"),
        (store("redis://db:6379") + POLICY + penalty, "a store keeps no `penalty`"),
    ] {
        std::fs::write(folder.join("policy.toml"), policy).unwrap();
        let check = |arguments: &[&str]| {
            let mut check = Command::new(env!("CARGO_BIN_EXE_tollgate"));
            check.current_dir(&folder).arg("check").args(arguments).arg("policy.toml").output().unwrap()
        };
        let served = tollgate(&folder, &["policy.toml"]).output().unwrap();
        for Output { status, stderr, .. } in [served, check(&[])] {
            let text = String::from_utf8(stderr).unwrap();
            assert!(status.code() == Some(2) && text.contains(reason), "{text}");
        }
        let json = String::from_utf8(check(&["--format", "json"]).stdout).unwrap();
        assert!(json.contains("\"good\": false") && json.contains(reason), "{json}");
    }
}

#[cfg(not(feature = "redis"))]
#[test]
fn a_policy_for_a_store_is_refused_where_there_can_be_none() {
    let folder = folder("without");
    let store = "[store]\nurl = \"redis://db:6379\"\nsecret = { env = \"S\" }\n";
    std::fs::write(folder.join("policy.toml"), format!("{store}{POLICY}")).unwrap();
    let Output { status, stderr, .. } = tollgate(&folder, &["policy.toml"]).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && text.contains("built without the feature `redis`"), "{text}");
}
