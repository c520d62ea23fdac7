//! Eight processes on few keys of one server, and afterwards the question whether what they were told
//! was right, by an offline checker.
//!
//! The processes read the clock that the server reads. A stamp is rounded down to a microsecond, so
//! it can lie that much before the call.

mod client;
mod leases;
mod settled;

use std::time::Duration;

use client::{CALLS, Client, Mode, TASKS};
use tollgate::Quota;
use tollgate_kit::checker::record::READING_ERROR;
use tollgate_kit::checker::{Expiry, Limit, Run};
use tollgate_kit::redis::Server;

const PROCESSES: u32 = 8;
const MICROSECOND: u64 = 1_000;

fn limits() -> [Limit; 2] {
    let window = |millis: u64| millis * 1_000_000;
    [Limit { permits: 20, window: window(40) }, Limit { permits: 50, window: window(300) }]
}

fn quota(limit: Limit) -> Quota {
    Quota::new(limit.permits, Duration::from_nanos(limit.window))
}

/// The events of all processes, and how many denials were cached ones.
fn record(mode: Mode) -> Option<(Run, usize)> {
    let server = Server::start(&[])?;
    let clients: Vec<Client> = (0..PROCESSES).map(|number| Client::start(mode, number, &server)).collect();
    let (mut events, mut cached) = (vec![], 0);
    for client in clients {
        let records = client.finish();
        assert_eq!(records.len(), usize::try_from(TASKS * CALLS).unwrap());
        cached += records.iter().filter(|record| record.is_cached()).count();
        events.extend(records.iter().map(|record| record.event));
    }
    let reading_error = READING_ERROR + MICROSECOND;
    Some((Run { limits: limits().to_vec(), events, reading_error, expiry: Expiry::EachOnItsOwn }, cached))
}

#[test]
fn no_window_is_exceeded_and_every_denial_is_explained() {
    let Some((run, cached)) = record(Mode::Direct) else { return };
    let summary = run.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    assert!(summary.permits > 150 && summary.denials > 100, "{summary:?}");
    assert_eq!(cached, 0);
}

#[test]
fn a_cached_denial_is_what_the_store_would_say() {
    let Some((run, cached)) = record(Mode::Cached) else { return };
    run.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    assert_eq!(run.not_in_the_way(), []);
    assert!(cached > 100, "{cached} cached denials");
}
