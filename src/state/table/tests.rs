//! Requests at the key cap while another thread is stopped between two of its steps.

use std::thread;

use super::*;
use crate::decision::Shadowed;
use crate::fingerprint::Fingerprint;
use crate::state::joint::{KeyedRequest, LOOKS_FOR_A_PLACE};
use crate::state::request::Request;
use crate::state::shard::kit::{At, log};
use crate::state::sync::stepped_kit::Thread;

const WINDOW: u64 = 100;

/// Whether a new key is admitted, and its wait if it is not.
fn ask(table: &Table, name: u64) -> Result<(), u64> {
    let keys = [Some(Fingerprint::new(name, name).in_dimension(0))];
    let asked = KeyedRequest {
        keys: &keys,
        request: Request::acquire(1),
        admits_without_place: false,
        shadowed: Shadowed::default(),
    };
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
            let table = Table::new(&[&[log(1, WINDOW)]], 0, 1, 1);
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

/// Two requests of two new keys each take one of the last two places, over and over. They end.
#[test]
fn requests_that_keep_the_last_places_from_each_other_end() {
    let keys_of = |name: u64| [0, 1].map(|dimension| Fingerprint::new(name << 58 | name, name).in_dimension(dimension));
    let mut most = 0;
    for names in (0..60).map(|name| [name, name + 1]) {
        let table = Table::new(&[&[log(1, WINDOW)], &[log(1, WINDOW)]], 0, 2, 1).for_joint();
        // All have cells, so that requests take as many steps, if their searches are as long.
        for key in names.into_iter().flat_map(keys_of) {
            assert!(table.takes_one(key, &At(0)) == Some(true) && table.forget(key, &At(0)));
        }
        let request = |name: u64| {
            let (keys, shadowed) = (keys_of(name).map(Some), Shadowed::default());
            let asked =
                KeyedRequest { keys: &keys, request: Request::acquire(1), admits_without_place: false, shadowed };
            table.acquire(asked, &At(WINDOW), None, None)
        };
        thread::scope(|scope| {
            let mut both = names.map(|name| Thread::spawn(scope, move || request(name)));
            let mut rounds = 0;
            while rounds < 1_000 && !both.iter().any(Thread::has_ended) {
                // Side by side, until one has a place. Then the other takes one, too.
                let takes = |&nth: &usize| !both[nth].step() || table.free_places() < 2;
                let first = [0, 1].into_iter().cycle().find(takes).unwrap_or(0);
                while table.free_places() > 0 && both[1 - first].step() {}
                // Side by side they find none for the next key, and give theirs back.
                while table.free_places() < 2 && both[first].step() && both[1 - first].step() {}
                rounds += 1;
            }
            assert!(rounds < 1_000, "{names:?}");
            most = most.max(rounds);
            let _ = both.map(Thread::finish);
        });
    }
    assert!(most > LOOKS_FOR_A_PLACE, "no two were in step: {most} rounds");
}
