//! `tollgate serve` beside a bare server of hyper that answers 200, on loopback:
//! `cargo run --release -p benches -- served [MILLISECONDS] [ROUNDS]`.
//!
//! Each server has one thread, the client another. Both servers get the same bytes on 32
//! connections, in turns. A ratio is that of a round, and above 1 tollgate is faster; the row has
//! the median of the rounds, and what the middle half of them lies between.

mod client;
mod servers;

use std::net::SocketAddr;
use std::time::Duration;

use benches::statistics::quartiles;
use benches::table::Table;
use client::{Served, ask_for};

/// What is sent, and what the answer begins with.
struct Row {
    name: &'static str,
    request: String,
    of_tollgate: &'static str,
    tollgate: SocketAddr,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let time = Duration::from_millis(arguments.next().unwrap_or(100));
    let rounds = arguments.next().unwrap_or(101);
    let bare = servers::bare();
    let (open, shut) = (servers::tollgate("1000000000", "1s"), servers::tollgate("1", "1d"));
    let body = r#"{"keys": {"client": "192.0.2.7"}}"#;
    let post = format!(
        "POST /acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let get = "GET /auth_request HTTP/1.1\r\nhost: localhost\r\nx-tollgate-client: 192.0.2.7\r\n\r\n".to_owned();
    let rows = [
        Row { name: "POST /acquire, admitted", request: post.clone(), of_tollgate: "HTTP/1.1 200", tollgate: open },
        Row { name: "POST /acquire, denied", request: post, of_tollgate: "HTTP/1.1 429", tollgate: shut },
        Row { name: "GET /auth_request, admitted", request: get.clone(), of_tollgate: "HTTP/1.1 204", tollgate: open },
        Row { name: "GET /auth_request, denied", request: get, of_tollgate: "HTTP/1.1 403", tollgate: shut },
    ];
    let mut table = Table::new(&[
        "request",
        "bare hyper",
        "tollgate serve",
        "ratio of processor time",
        "ratio of requests a second",
    ]);
    for Row { name, request, of_tollgate, tollgate } in rows {
        // The first request of the server that denies is admitted.
        ask_for(tollgate, &request, "HTTP/1.1 ", time);
        let of_round =
            |_| [ask_for(bare, &request, "HTTP/1.1 200", time), ask_for(tollgate, &request, of_tollgate, time)];
        let all: Vec<[Served; 2]> = (0..rounds).map(of_round).collect();
        let [bare, of_tollgate] = [0, 1].map(|server| quartiles(all.iter().map(|round| round[server].processor))[1]);
        let [low, middle, high] =
            quartiles(all.iter().map(|[bare, of_tollgate]| bare.processor / of_tollgate.processor));
        let processor = format!("{middle:.2}, {low:.2} to {high:.2}");
        let [low, middle, high] = quartiles(all.iter().map(|[bare, of_tollgate]| of_tollgate.rate / bare.rate));
        let requests = format!("{middle:.2}, {low:.2} to {high:.2}");
        table.row(&[name.into(), format!("{bare:.1} us"), format!("{of_tollgate:.1} us"), processor, requests]);
    }
    print!("{table}");
}
