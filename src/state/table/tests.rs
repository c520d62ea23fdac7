//! Requests at the key cap while another thread is stopped between two of its steps.

use std::thread;

use super::*;
use crate::decision::Shadowed;
use crate::fingerprint::Fingerprint;
use crate::state::joint::Asked;
use crate::state::request::Ask;
use crate::state::shard::kit::{At, log};
use crate::state::sync::stepped_kit::Thread;

const WINDOW: u64 = 100;

/// Whether a new key is admitted, and its wait if it is not.
fn ask(table: &Table, name: u64) -> Result<(), u64> {
    let keys = [Some(Fingerprint::new(name, name).in_dimension(0))];
    let asked = Asked { keys: &keys, ask: Ask::acquire(1), admits_without_place: false, shadowed: Shadowed::default() };
    let decision = table.acquire(asked, &At(WINDOW), None, None);
    decision.into_result().map(drop).map_err(|denial| denial.wait_ns())
}

/// A request is stopped at each of its steps, while another takes the place whose key has expired.
/// It is denied by a live key then, and told the wait until that has expired.
#[test]
fn a_denial_at_the_cap_has_met_a_live_key() {
    let (mut stops, mut denied) = (0, 0);
    for names in (0..12).map(|name| [name, name + 1, name + 2].map(|name| name << 58 | name)) {
        for stop_at in 0.. {
            let table = Table::new(&[&[log(1, WINDOW)]], 1, 1);
            let [old, first, second] = names;
            let is_there = table.takes_one(Fingerprint::new(old, old).in_dimension(0), &At(0));
            assert_eq!(is_there, Some(true));
            let ended = thread::scope(|scope| {
                let mut stopped = Thread::spawn(scope, || ask(&table, first));
                let is_stopped = (0..stop_at).all(|_| stopped.step());
                let other = ask(&table, second);
                match (stopped.finish(), other) {
                    // The stopped thread has the place: the other met no live key.
                    (Ok(()), Err(wait_ns)) => assert!([1, WINDOW].contains(&wait_ns), "{stop_at}: {wait_ns}"),
                    (Err(wait_ns), Ok(())) => {
                        denied += 1;
                        assert_eq!(wait_ns, WINDOW, "stopped at {stop_at}, {names:?}");
                    }
                    both => panic!("{both:?}, stopped at {stop_at}"),
                }
                !is_stopped
            });
            stops += 1;
            if ended {
                break;
            }
        }
    }
    assert!(stops > 100 && denied > 50, "{stops} stops, {denied} denied");
}
