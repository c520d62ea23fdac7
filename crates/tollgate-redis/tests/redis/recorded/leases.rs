//! Processes that hold leases while they are killed, or stopped in the middle of a step.

use std::process::Command;
use std::time::Duration;

use tollgate::Quota;

use super::{MICROSECOND, PROCESSES};
use crate::recorded::client::{Client, Mode};
use tollgate_kit::checker::record::READING_ERROR;
use tollgate_kit::checker::{Event, Expiry, Limit, Run, Told};
use tollgate_kit::redis::Server;

const LIMIT: u32 = 200;
const WINDOW: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(60);

/// How often processes are stopped and killed, at least and at most.
const ROUNDS: (u32, u32) = (24, 150);

pub(crate) fn quota() -> Quota {
    Quota::quantised_log(LIMIT, WINDOW, STEP)
}

fn signal(name: &str, client: &Client) {
    let command = format!("kill -{name} {}", client.child.id());
    assert!(Command::new("sh").args(["-c", &command]).status().expect("a shell").success());
}

/// A denial may be of permits that others hold and never spend, about which a record says nothing.
fn without_reason(event: Event) -> Event {
    let told = if event.told == Told::Admitted { Told::Admitted } else { Told::InTheWay };
    Event { told, ..event }
}

#[test]
fn no_window_holds_more_than_n_while_holders_are_killed_and_stopped() {
    let Some(server) = Server::start(&[]) else { return };
    let mut running: Vec<Client> = (0..PROCESSES).map(|number| Client::start(Mode::Leased, number, &server)).collect();
    let mut killed = vec![];
    let leased = |clients: &[Client]| -> usize {
        clients.iter().map(|client| client.records().iter().filter(|record| record.is_leased()).count()).sum()
    };
    for round in 0..ROUNDS.1 {
        if round >= ROUNDS.0 && leased(&running) + leased(&killed) > 1_000 {
            break;
        }
        // Two are stopped for more than a step, wherever they are in it; meanwhile another one dies.
        let victim = usize::try_from(round % PROCESSES).unwrap();
        let stopped = [(victim + 1) % running.len(), (victim + 4) % running.len()];
        stopped.iter().for_each(|&number| signal("STOP", &running[number]));
        std::thread::sleep(STEP * 3 / 2);
        running[victim].child.kill().expect("a child that runs for ever");
        running[victim].child.wait().expect("a child");
        let another = Client::start(Mode::Leased, PROCESSES + round, &server);
        killed.push(std::mem::replace(&mut running[victim], another));
        stopped.iter().for_each(|&number| signal("CONT", &running[number]));
        std::thread::sleep(STEP * 2 / 3);
    }
    for client in &mut running {
        assert!(client.child.try_wait().expect("a child").is_none(), "a process ended by itself");
        client.child.kill().expect("a child that runs");
        client.child.wait().expect("a child");
    }
    killed.append(&mut running);
    let by_lease = leased(&killed);
    let records = killed.iter().flat_map(Client::records);
    let events: Vec<Event> = records.map(|record| without_reason(record.event)).collect();
    let limits = vec![Limit { permits: LIMIT, window: u64::try_from(WINDOW.as_nanos()).unwrap() }];
    let reading_error = READING_ERROR + MICROSECOND;
    let run = Run { limits, events, reading_error, expiry: Expiry::EachOnItsOwn };
    let summary = run.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    assert!(by_lease > 1_000 && summary.denials > 100, "{by_lease} by leases, {summary:?}");
}
