//! As much of curl as the README and the tests use, so that they need no program.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a command line asks for.
#[derive(Default)]
struct Command {
    method: Option<String>,
    fields: String,
    url: String,
    /// `-i`
    shows_fields: bool,
    /// `-o /dev/null`
    hides_body: bool,
    /// `-w`
    writes: Option<String>,
}

/// Runs such a command line, with this server in place of its own. Gives what it prints.
pub(crate) fn run(line: &str, server: SocketAddr) -> String {
    let command = parse(line);
    let mut printed = String::new();
    for url in expand(&command.url) {
        let path = url.strip_prefix("http://127.0.0.1:3000").unwrap_or_else(|| panic!("{url} is of another server"));
        let response = send(server, &command, path);
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{response}"));
        if command.shows_fields {
            writeln!(printed, "{}\n", head.replace('\r', "")).unwrap();
        }
        if !command.hides_body {
            printed += body;
        }
        if let Some(writes) = &command.writes {
            let status = head.split(' ').nth(1).unwrap();
            let wait = head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap_or_default();
            let texts = [("%{http_code}", status), ("%header{retry-after}", wait), ("\\n", "\n")];
            printed += &texts.iter().fold(writes.clone(), |written, (name, text)| written.replace(name, text));
        }
    }
    printed
}

fn parse(line: &str) -> Command {
    let mut words = words(line).into_iter();
    assert_eq!(words.next().as_deref(), Some("curl"), "{line}");
    let mut command = Command::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "-s" => {}
            "-i" => command.shows_fields = true,
            "-o" => command.hides_body = value() == "/dev/null",
            "-w" => command.writes = Some(value()),
            "-X" => command.method = Some(value()),
            "-H" => command.fields += &format!("{}\r\n", value()),
            "-u" => command.fields += &format!("authorization: Basic {}\r\n", STANDARD.encode(value())),
            url if !url.starts_with('-') => command.url = word,
            _ => panic!("{word} is not known here: {line}"),
        }
    }
    command
}

/// The words of a command line, as a shell reads them: in quotes, a space is no end.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut is_open) = (Vec::new(), None, false);
    for char in line.chars() {
        match (char, quote) {
            (' ', None) => is_open = false,
            ('\'' | '"', None) => quote = Some(char),
            (_, Some(open)) if open == char => quote = None,
            _ => {
                if !is_open {
                    words.push(String::new());
                    is_open = true;
                }
                words.last_mut().unwrap().push(char);
            }
        }
    }
    words
}

/// The URLs that one with `[1-9]` stands for.
fn expand(url: &str) -> Vec<String> {
    let Some((before, rest)) = url.split_once('[') else { return vec![url.to_owned()] };
    let (range, after) = rest.split_once(']').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let numbers = first.parse::<u32>().unwrap()..=last.parse().unwrap();
    numbers.map(|number| format!("{before}{number}{after}")).collect()
}

fn send(server: SocketAddr, command: &Command, path: &str) -> String {
    let method = command.method.as_deref().unwrap_or("GET");
    let mut stream = TcpStream::connect(server).unwrap();
    let fields = &command.fields;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:3000\r\nconnection: close\r\n{fields}\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}
