//! Every interleaving of requests on several keys at once, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --features snapshot --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use super::joint::Together;
use super::kit::*;
use crate::cell::Freed;
use crate::decision::Decision;

/// A clock that stands still at the given reading.
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// One key of each dimension, or none.
type Asked<'a> = &'a [Option<u64>];

/// A table of dimensions whose keys each have a quota of so many permits in ten nanoseconds.
fn table(limits: &[u32]) -> Table {
    let plan = |&limit| Versions::new(&[Quota::new(limit, Duration::from_nanos(10))]);
    Table::together(limits.iter().map(plan).collect(), 8, 3)
}

fn key(dimension: usize, number: u64) -> Fingerprint {
    Fingerprint::new((number << 56) | dimension as u64, number << 4).in_dimension(dimension)
}

impl Table {
    /// Permits of all the keys that are asked: granted (1) or denied (0).
    fn all(&self, asked: Asked<'_>, cost: u32, at: u64) -> u32 {
        let keys: Vec<_> = asked.iter().enumerate().map(|(at, number)| number.map(|number| key(at, number))).collect();
        match self
            .acquire_together(Together { keys: &keys, cost, admits_without_place: false, may_wait: true }, &At(at))
        {
            Decision::Admitted(_) => cost,
            Decision::Denied(_) => 0,
        }
    }

    /// Permits of one key of the first dimension, to be given back.
    fn charge(&self, number: u64, cost: u32, at: u64) -> Option<Refundable> {
        let mut refundable = Vec::new();
        let asked = Together { keys: &[Some(key(0, number))], cost, admits_without_place: false, may_wait: true };
        let _ = self.acquire_together_status(asked, &At(at), Some(&mut refundable));
        refundable.pop()
    }

    fn left(&self, dimension: usize, number: u64, at: u64) -> u32 {
        self.peek(key(dimension, number), 0, &At(at)).remaining()
    }
}

fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    crate::sync::check_model(&model, body);
}

/// Runs `first` in a thread of its own beside `second`.
fn race<A: 'static, B>(
    table: &Arc<Table>,
    first: impl FnOnce(&Table) -> A + Send + 'static,
    second: impl FnOnce(&Table) -> B,
) -> (A, B) {
    let shared = Arc::clone(table);
    let thread = thread::spawn(move || first(&shared));
    let second = second(table);
    (thread.join().unwrap(), second)
}

#[test]
fn loom_joint_two_requests_for_the_last_permits() {
    explore(1, || {
        let table = table(&[2, 2]);
        assert_eq!(table.all(&[Some(1), Some(1)], 1, 0), 1);
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 5);
        let (first, second) = race(&table, both, both);
        assert_eq!(first + second, 1, "one permit was left in each dimension");
        assert_eq!((table.left(0, 1, 5), table.left(1, 1, 5)), (0, 0));
        assert_eq!((table.left(0, 1, 15), table.left(1, 1, 15)), (2, 2));
    });
}

/// A request that is denied in its second dimension never makes another be denied in the first.
#[test]
fn loom_joint_a_denied_request_leaves_no_trace() {
    explore(2, || {
        let table = table(&[1, 1]);
        // The second dimension's key 1 has no permit left.
        assert_eq!(table.all(&[None, Some(1)], 1, 0), 1);
        assert_eq!(table.all(&[Some(1), Some(2)], 1, 0), 1);
        let table = Arc::new(table);
        // At 10 the permits at 0 have expired, and the threads race for key 1 of the second
        // dimension, too.
        let (denied, granted) =
            race(&table, |table| table.all(&[Some(1), Some(1)], 1, 9), |table| table.all(&[Some(1), Some(2)], 1, 10));
        assert_eq!((denied, granted), (0, 1));
        assert_eq!((table.left(0, 1, 10), table.left(1, 1, 10), table.left(1, 2, 10)), (0, 1, 0));
    });
}

/// Two requests cross: each shares one key with the other, and both fit.
#[test]
fn loom_joint_requests_that_share_a_key_both_fit() {
    explore(1, || {
        let table = table(&[1, 2, 1]);
        let seats = [key(0, 1), key(1, 1), key(2, 1)].map(|key| table.seat(key, &At(0), &mut 0).is_ok());
        assert_eq!(seats, [true; 3]);
        let table = Arc::new(table);
        let (first, second) = race(
            &table,
            |table| table.all(&[Some(1), Some(1), None], 1, 0),
            |table| table.all(&[None, Some(1), Some(1)], 1, 0),
        );
        assert_eq!((first, second), (1, 1));
        assert_eq!([table.left(0, 1, 0), table.left(1, 1, 0), table.left(2, 1, 0)], [0, 0, 0]);
    });
}

/// The rings grow with the claim, one of them or both.
#[test]
fn loom_joint_rings_grow_together() {
    explore(1, || {
        let table = table(&[4, 1]);
        assert_eq!(table.all(&[Some(1), None], 1, 0), 1);
        let seat = table.seat(key(1, 1), &At(0), &mut 0).is_ok();
        assert!(seat);
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 5);
        let (first, second) = race(&table, both, both);
        assert_eq!(first + second, 1);
        assert_eq!((table.left(0, 1, 5), table.left(1, 1, 5)), (2, 0));
        assert_eq!(table.left(0, 1, 10), 3);
    });
}

#[test]
fn loom_joint_a_key_is_forgotten_meanwhile() {
    explore(2, || {
        let table = table(&[2, 1]);
        assert_eq!(table.all(&[Some(1), None], 1, 0), 1);
        assert!(table.seat(key(1, 1), &At(0), &mut 0).is_ok());
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 5);
        let (held, granted) = race(&table, |table| table.forget(key(0, 1), &At(5)), both);
        assert!(held);
        assert_eq!((granted, table.left(1, 1, 5)), (1, 0));
        // The permit was granted before, and is forgotten too, or after.
        assert!(table.left(0, 1, 5) >= 1);
    });
}

/// A sweep never takes a cell away that a request is being granted.
#[test]
fn loom_joint_a_cell_is_freed_meanwhile() {
    explore(2, || {
        let table = table(&[1, 1]);
        assert_eq!(table.all(&[Some(1), Some(1)], 1, 0), 1);
        let seat = table.seat(key(0, 1), &At(0), &mut 0).ok().map(|seat| (seat.id, seat.head.incarnation())).unwrap();
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 10);
        let (granted, ()) = race(&table, both, move |table| {
            table.cells.free(seat.0, seat.1, time_of(10), &At(10));
        });
        assert_eq!(granted, 1);
        assert_eq!((table.left(0, 1, 19), table.left(1, 1, 19)), (0, 0));
    });
}

/// A dimension with an account, and one with a log.
#[test]
fn loom_joint_an_account_and_a_log() {
    explore(2, || {
        let ten = Duration::from_nanos(10);
        let plans = [Versions::new(&[Quota::token_bucket(2, 1, ten)]), Versions::new(&[Quota::new(2, ten)])];
        let table = Table::together(plans.into(), 8, 3);
        assert_eq!(table.all(&[Some(1), Some(1)], 1, 0), 1);
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 5);
        let (first, second) = race(&table, both, both);
        assert_eq!(first + second, 1);
        assert_eq!((table.left(0, 1, 5), table.left(1, 1, 5)), (0, 0));
        assert_eq!((table.left(0, 1, 10), table.left(1, 1, 10)), (1, 1));
    });
}

#[test]
fn loom_joint_an_account_is_read_while_it_is_held() {
    explore(2, || {
        let table =
            Table::together([Versions::new(&[Quota::token_bucket(3, 1, Duration::from_nanos(10))])].into(), 8, 3);
        assert_eq!(table.all(&[Some(1)], 2, 0), 2);
        let table = Arc::new(table);
        let [claimer, reader] = [Arc::clone(&table), Arc::clone(&table)];
        let claimer = thread::spawn(move || claimer.all(&[Some(1)], 1, 5));
        let reader = thread::spawn(move || reader.left(0, 1, 5));
        let (granted, left) = (claimer.join().unwrap(), reader.join().unwrap());
        assert_eq!(granted, 1);
        assert!(left <= 1, "{left} left of three, of which two had been taken");
        assert_eq!([5, 10].map(|at| table.left(0, 1, at)), [0, 1]);
    });
}

/// A request holds a cell and then finds its second key without a permit: that denies no other
/// request.
#[test]
fn loom_joint_an_aborted_claim_denies_no_request() {
    explore(1, || {
        let table = table(&[1, 1]);
        assert!(table.seat(key(0, 1), &At(0), &mut 0).is_ok() && table.seat(key(1, 1), &At(0), &mut 0).is_ok());
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 0);
        let one_by_one = |table: &Table| (table.all(&[None, Some(1)], 1, 0), table.all(&[Some(1), None], 1, 0));
        let (together, alone) = race(&table, both, one_by_one);
        assert!(matches!((together, alone), (1, (0, 0)) | (0, (1, 1))), "{together} {alone:?}");
    });
}

/// The same for a key that is forgotten: its cell is as before it was held, or after.
#[test]
fn loom_joint_a_cell_is_forgotten_and_freed_meanwhile() {
    explore(2, || {
        let table = table(&[1]);
        assert_eq!([0, 10].map(|at| table.all(&[Some(1)], 1, at)), [1, 1]);
        let seat = table.seat(key(0, 1), &At(10), &mut 0).ok().map(|seat| (seat.id, seat.head.incarnation())).unwrap();
        let table = Arc::new(table);
        let [claimer, other] = [Arc::clone(&table), Arc::clone(&table)];
        let claimer = thread::spawn(move || claimer.all(&[Some(1)], 1, 20));
        let other = thread::spawn(move || {
            assert!(other.cells.forget(seat.0, seat.1, &At(20)));
            assert_eq!(other.cells.free(seat.0, seat.1, time_of(20), &At(20)), Freed::Gone);
        });
        other.join().unwrap();
        assert_eq!(claimer.join().unwrap(), 1);
        // Granted before, and forgotten too, or after.
        assert!(table.left(0, 1, 20) <= 1);
        assert_eq!(table.left(0, 1, 30), 1);
    });
}

/// Granted permits have their stamp when the answer is returned, without a helper.
#[test]
fn loom_joint_a_granted_claim_is_published() {
    explore(1, || {
        let table = table(&[2, 2]);
        assert_eq!(table.all(&[Some(1), Some(1)], 1, 0), 1);
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 10);
        assert_eq!(race(&table, both, both), (1, 1));
        assert_eq!((table.left(0, 1, 20), table.left(1, 1, 20)), (2, 2));
    });
}

/// A helper with a lagging clock may publish the claim, and the refund works all the same.
#[test]
fn loom_joint_a_claim_published_by_a_lagging_clock_is_refunded() {
    explore(2, || {
        let table = table(&[4]);
        assert_eq!([0, 0].map(|at| table.all(&[Some(1)], 1, at)), [1, 1]);
        let table = Arc::new(table);
        let (granted, refundable) = race(&table, |table| table.all(&[Some(1)], 1, 3), |table| table.charge(1, 1, 5));
        let refundable = refundable.expect("two are left");
        assert_eq!((granted, table.refund(&refundable, &At(9))), (1, 1));
        assert_eq!([9, 10, 12, 16].map(|at| table.left(0, 1, at)), [1, 3, 3, 4]);
    });
}

/// A slot that is published between two loads is not the value that a ring replaces.
#[test]
fn loom_joint_a_ring_of_one_grows_while_it_is_published() {
    explore(2, || {
        let table = table(&[3]);
        assert!(table.seat(key(0, 1), &At(0), &mut 0).is_ok());
        let table = Arc::new(table);
        let one = |table: &Table| table.all(&[Some(1)], 1, 5);
        assert_eq!(race(&table, one, one), (1, 1));
        assert_eq!([5, 15].map(|at| table.left(0, 1, at)), [1, 3]);
    });
}

/// The ring stays if the claim is aborted that would have put a larger one in its place.
#[test]
fn loom_joint_a_ring_stays_when_its_claim_is_aborted() {
    explore(1, || {
        let table = table(&[4, 2]);
        assert_eq!(table.all(&[Some(1), None], 1, 0), 1);
        assert!(table.seat(key(1, 1), &At(0), &mut 0).is_ok());
        let table = Arc::new(table);
        let both = |table: &Table| table.all(&[Some(1), Some(1)], 1, 5);
        let alone = |table: &Table| table.all(&[None, Some(1)], 1, 5);
        assert_eq!(race(&table, both, alone), (1, 1));
        assert_eq!((table.left(0, 1, 5), table.left(1, 1, 5)), (2, 0));
    });
}

/// The cell goes to another key between the look at it and the claim.
#[test]
fn loom_long_joint_a_cell_changes_hands_meanwhile() {
    explore(1, || {
        let table = table(&[3]);
        let seat = table.seat(key(0, 1), &At(0), &mut 0).ok().map(|seat| (seat.id, seat.head.incarnation())).unwrap();
        let table = Arc::new(table);
        let next = move |table: &Table| {
            assert!(table.forget(key(0, 1), &At(5)));
            table.cells.free(seat.0, seat.1, time_of(5), &At(5));
            table.all(&[Some(2)], 1, 5)
        };
        assert_eq!(race(&table, |table| table.all(&[Some(1)], 1, 5), next), (1, 1));
        assert_eq!(table.left(0, 2, 5), 2);
        assert!(table.left(0, 1, 5) >= 2);
    });
}

/// A helper stalls while the claim that it found ends, and the next one uses the same descriptor.
#[test]
fn loom_joint_a_helper_comes_late_to_the_next_claim() {
    explore(3, || {
        let table = table(&[2]);
        assert_eq!(table.all(&[Some(1)], 2, 0), 2);
        let seat = table.seat(key(0, 1), &At(10), &mut 0).ok().map(|seat| (seat.id, seat.head.incarnation())).unwrap();
        let table = Arc::new(table);
        let [claimer, helper] = [Arc::clone(&table), Arc::clone(&table)];
        let claimer = thread::spawn(move || {
            let claim = || {
                let seat = claimer.cells.seat_for(seat.0, seat.1, key(0, 1)).unwrap();
                match claimer.cells.prepare(seat, 1, &At(10), None) {
                    Some((part, _)) => claimer.cells.claim_together([part].iter()),
                    None => false,
                }
            };
            [claim(), claim()]
        });
        let helper = thread::spawn(move || helper.cells.free(seat.0, seat.1, time_of(5), &At(10)));
        let granted = claimer.join().unwrap().map(u32::from);
        helper.join().unwrap();
        assert_eq!(table.left(0, 1, 10), 2 - granted[0] - granted[1]);
    });
}

/// A held cell is exported as it is before the claim or after it, never as an aborted claim.
#[cfg(feature = "snapshot")]
#[test]
fn loom_joint_a_held_cell_is_exported_as_it_is_decided() {
    use crate::cell::Export;
    explore(1, || {
        let table = table(&[2, 1]);
        assert_eq!(table.all(&[Some(1), None], 1, 0), 1);
        let cells = [0, 1].map(|dimension| table.seat(key(dimension, 1), &At(0), &mut 0).ok().unwrap().id);
        let table = Arc::new(table);
        let [both, exporter] = [Arc::clone(&table), Arc::clone(&table)];
        let both = thread::spawn(move || both.all(&[Some(1), Some(1)], 1, 5));
        let exporter = thread::spawn(move || exporter.export_of(cells[0], &At(5)).map(|(_, export, _)| export));
        // Comes before the claim holds that cell, and then this claim is aborted and there is
        // another, or after it.
        assert!(table.cells.forget(cells[1], 0, &At(5)));
        let (granted, export) = (both.join().unwrap(), exporter.join().unwrap());
        assert_eq!(granted, 1);
        let (before, after) = (Some(Export::Stamps(vec![5])), Some(Export::Stamps(vec![5, 0])));
        assert!(export == before || export == after, "{export:?}");
        assert_eq!(table.export_of(cells[0], &At(5)).map(|(_, export, _)| export), after);
    });
}
