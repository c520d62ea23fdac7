//! The program, as its users start it.
#![allow(dead_code, reason = "not each test reads all of it")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tollgate_kit::programs::Process;

/// The program, killed at the end.
pub(crate) struct Program {
    pub(crate) child: Process,
    pub(crate) clients: SocketAddr,
    /// Where operators ask.
    pub(crate) operators: SocketAddr,
    /// The lines of its log.
    log: Receiver<String>,
}

impl Program {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_login_service"));
        command.args(["--listen", "127.0.0.1:0", "--operators", "127.0.0.1:0"]).args(arguments);
        let mut child = Process(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |before: &str, after: &str| {
            let line = printed.next().unwrap().unwrap();
            let address = line.strip_prefix(before).and_then(|line| line.strip_suffix(after));
            address.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
        };
        let clients = address("listening on http://", "");
        let operators = address("for operators: http://", "/metrics and /denied");
        let (tell, log) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child, clients, operators, log }
    }

    /// The next line of the log. It comes however slow the machine is, or the test fails.
    pub(crate) fn next_of_log(&self) -> String {
        self.log.recv_timeout(Duration::from_secs(60)).expect("a line in the log")
    }
}
