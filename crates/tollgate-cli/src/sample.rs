//! A made-up access log with a few clients that misbehave. The same seed always gives the same log.

use std::fmt::Write;

use serde_json::json;

use crate::args::{SampleArgs, SampleFormat};
use crate::errors::RunError;
use crate::terminal;
use crate::time::SECOND;

/// 2026-03-02 08:00:00 UTC, a Monday morning.
const START: i64 = 1_772_438_400;
/// The log covers six hours.
const SPAN: u64 = 6 * 3600;

const PAGES: &[&str] = &[
    "/",
    "/about",
    "/pricing",
    "/docs",
    "/docs/install",
    "/docs/limits",
    "/blog",
    "/blog/windows",
    "/blog/fairness",
    "/search?q=limits",
    "/search?q=tickets",
    "/account",
    "/cart",
    "/static/app.css",
    "/static/app.js",
    "/static/logo.svg",
    "/favicon.ico",
];

const PROBES: &[&str] = &[
    "/.env",
    "/.git/config",
    "/wp-login.php",
    "/wp-admin/setup.php",
    "/phpmyadmin/",
    "/backup.zip",
    "/config.php.bak",
    "/server-status",
    "/admin/",
    "/console/",
    "/cgi-bin/test.cgi",
    "/actuator/env",
    "/debug/pprof/",
    "/old/",
    "/.aws/credentials",
];

const BROWSERS: &[&str] = &[
    "Mozilla/5.0 (X11; Linux x86_64; rv:134.0) Gecko/20100101 Firefox/134.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/132.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_2 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1",
];

/// Prints a sample.
///
/// # Errors
///
/// [`RunError::Write`] when standard output can't be written.
pub(crate) fn print(args: &SampleArgs) -> Result<(), RunError> {
    terminal::print(&log(args.seed, args.lines, args.log_format))
}

/// A request that is to be logged.
struct Request {
    second: u64,
    client: String,
    user: &'static str,
    request: String,
    status: u16,
    agent: &'static str,
}

/// The text of a log of so many lines.
fn log(seed: u64, lines: u32, format: SampleFormat) -> String {
    let mut random = Random(seed);
    let mut requests = Vec::new();
    // Those that misbehave make up a bit over a third; how many each of them sends goes with the
    // length of the log.
    let share = |per_mille: u32| u64::from(lines) * u64::from(per_mille) / 1000;
    scanner(&mut requests, &mut random, share(110));
    brute_force(&mut requests, &mut random, share(120));
    impatient_scripts(&mut requests, &mut random, share(110));
    crawler(&mut requests, &mut random, share(50));
    let visits = usize::try_from(lines).unwrap_or(usize::MAX).saturating_sub(requests.len());
    visitors(&mut requests, &mut random, visits);
    requests.sort_by_key(|request| request.second);
    log_when_answered(&mut requests, &mut random);
    let mut text = String::new();
    for request in &requests {
        write_line(&mut text, request, &mut random, format);
    }
    text
}

/// People who look at a few pages a minute.
fn visitors(requests: &mut Vec<Request>, random: &mut Random, count: usize) {
    let end = requests.len() + count;
    while requests.len() < end {
        let client = address(random);
        let agent = random.one_of(BROWSERS);
        let user = if random.below(6) == 0 { random.one_of(&["ann", "bela", "chidi", "dana", "emil"]) } else { "-" };
        // More come towards the middle of the log: the larger of two draws, mirrored half of the
        // time.
        let late = random.below(SPAN).max(random.below(SPAN)) / 2;
        let mut second = if random.below(2) == 0 { late } else { SPAN - 1 - late };
        for _ in 0..=random.below(14) {
            if requests.len() == end || second >= SPAN {
                break;
            }
            let page = random.one_of(PAGES);
            let status = if page == "/favicon.ico" { 404 } else { 200 };
            requests.push(Request { second, client: client.clone(), user, request: get(page), status, agent });
            second += if page.starts_with("/static") { random.below(2) } else { 2 + random.below(40) };
        }
    }
}

/// One address that tries every door it knows of, several a second, twice.
fn scanner(requests: &mut Vec<Request>, random: &mut Random, count: u64) {
    for nth in 0..count {
        let (second, probe) = (if nth < count / 2 { 5_400 } else { 15_000 }, random.one_of(PROBES));
        requests.push(Request {
            second: second + nth % (count / 2).max(1) / 8,
            client: "203.0.113.66".to_owned(),
            user: "-",
            request: get(probe),
            status: 404,
            agent: "probe/1.3",
        });
    }
}

/// One address that tries passwords, about one a second for some minutes.
fn brute_force(requests: &mut Vec<Request>, random: &mut Random, count: u64) {
    let mut second = 9_000;
    for nth in 0..count {
        second += random.below(3);
        requests.push(Request {
            second,
            client: "198.51.100.23".to_owned(),
            user: "-",
            request: "POST /login HTTP/1.1".to_owned(),
            status: if nth + 1 == count { 302 } else { 401 },
            agent: "python-requests/2.32.3",
        });
    }
}

/// Three customers whose scripts ask in bursts, with pauses between.
fn impatient_scripts(requests: &mut Vec<Request>, random: &mut Random, count: u64) {
    const CUSTOMERS: &[(&str, &str)] =
        &[("192.0.2.10", "reports"), ("192.0.2.77", "nightly"), ("2001:db8:5::41", "sync")];
    let mut left = count;
    while left > 0 {
        let (client, user) = random.one_of(CUSTOMERS);
        let start = random.below(SPAN - 60);
        let burst = left.min(12 + random.below(20));
        for nth in 0..burst {
            requests.push(Request {
                second: start + nth / 6,
                client: client.to_owned(),
                user,
                request: get(&format!("/api/v1/items?page={}", nth + 1)),
                status: 200,
                agent: "curl/8.11.1",
            });
        }
        left -= burst;
    }
}

/// A crawler that keeps its distance: nobody that a limit should hit.
fn crawler(requests: &mut Vec<Request>, random: &mut Random, count: u64) {
    let pause = SPAN / count.max(1);
    for nth in 0..count {
        requests.push(Request {
            second: nth * pause + random.below(pause.max(1)),
            client: "192.0.2.200".to_owned(),
            user: "-",
            request: get(random.one_of(PAGES)),
            status: 200,
            agent: "examplebot/2.1 (+https://example.org/bot)",
        });
    }
}

/// Servers log a request when it is answered, so slow ones come after later ones: a few lines
/// change places.
fn log_when_answered(requests: &mut [Request], random: &mut Random) {
    for at in 1..requests.len() {
        let near = requests[at].second.abs_diff(requests[at - 1].second) <= 3;
        if near && random.below(20) == 0 {
            requests.swap(at - 1, at);
        }
    }
}

fn write_line(text: &mut String, request: &Request, random: &mut Random, format: SampleFormat) {
    let Request { second, client, user, request, status, agent } = request;
    let time = jiff::Timestamp::from_nanosecond((i128::from(START) + i128::from(*second)) * i128::from(SECOND));
    // The log lies within six hours of its start, so there is always such a time.
    let time = time.unwrap_or_default();
    let bytes = if *status == 200 { 300 + random.below(20_000) } else { 120 + random.below(80) };
    // Writing to a string can't fail.
    let _ = match format {
        SampleFormat::Clf => {
            let time = time.strftime("%d/%b/%Y:%H:%M:%S %z");
            writeln!(text, "{client} - {user} [{time}] \"{request}\" {status} {bytes} \"-\" \"{agent}\"")
        }
        SampleFormat::Jsonl => {
            let mut words = request.split(' ');
            let (method, path) = (words.next(), words.next());
            let user = (*user != "-").then_some(user);
            let line = json!({
                "time": time.to_string(), "client": client, "user": user, "method": method, "path": path,
                "status": status, "bytes": bytes, "agent": agent,
            });
            writeln!(text, "{line}")
        }
    };
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1")
}

/// Addresses set aside for benchmarks (RFC 2544): nobody's.
fn address(random: &mut Random) -> String {
    format!("198.{}.{}.{}", 18 + random.below(2), random.below(256), 1 + random.below(254))
}

/// SplitMix64: the same numbers on every machine and in every release.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is small against 2^64: the bias of the remainder is nothing
    /// here.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let bound = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        choices[usize::try_from(self.below(bound)).unwrap_or(0)]
    }
}
