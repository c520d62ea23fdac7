//! Every interleaving of a thread that exports a cell and of others that change it, on the
//! production code.
//!
//! An export shows the cell at one moment: before a step of the other thread or after it, never a
//! mixture (INV-EXPORT).
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --features snapshot --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, explore_with};
use crate::quota::Quota;

/// The cell's next key.
const NEXT: Fingerprint = Fingerprint::new(3, 4 << 4);

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn log(limit: u32) -> [Quota; 1] {
    [Quota::new(limit, nanos(10))]
}

/// One permit every ten nanoseconds.
fn bucket(capacity: u32) -> [Quota; 1] {
    [Quota::token_bucket(capacity, 1, nanos(10))]
}

/// Stamps by their age, oldest first; none if the key is as one never seen.
fn stamps(ages: &[i64]) -> Option<(Fingerprint, Export)> {
    (!ages.is_empty()).then(|| (KEY, Export::Stamps(ages.to_vec())))
}

fn account(age: i64, used: u64) -> Option<(Fingerprint, Export)> {
    Some((KEY, Export::Account { age, used }))
}

impl One {
    fn export(&self, at: u64) -> Option<(Fingerprint, Export)> {
        loop {
            let word = &self.cells.store.cells.element(self.id).head;
            let head = Head(word.load(Ordering::Acquire));
            let key = self.cells.fingerprint_of(self.id)?;
            match self.cells.seat_for(self.id, head.incarnation(), key).map(|seat| self.cells.export(seat, &At(at))) {
                Some(Some(export)) => return export.map(|(export, _)| (key, export)),
                None if word.load(Ordering::Acquire) == head.0 => return None,
                _ => {}
            }
        }
    }
}

/// The export at that time, while the other thread changes the cell.
fn export_beside(one: &Arc<One>, at: u64, change: impl FnOnce(&One) + Send + 'static) -> Option<(Fingerprint, Export)> {
    let [exporter, changer] = [Arc::clone(one), Arc::clone(one)];
    let exporter = thread::spawn(move || exporter.export(at));
    let changer = thread::spawn(move || change(&changer));
    changer.join().unwrap();
    exporter.join().unwrap()
}

#[test]
fn loom_export_beside_claims_in_a_ring_of_one() {
    explore(|| {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let export = export_beside(&one, 20, |one| {
            assert_eq!(one.acquire(1, 10), 1);
            // Denied if the keeper has published the first at 20.
            one.acquire(1, 20);
        });
        assert!([stamps(&[]), stamps(&[0])].contains(&export), "{export:?}");
    });
}

#[test]
fn loom_export_beside_claims_in_place() {
    explore(|| {
        // A ring of four: two stamps at 0, two at 5.
        let one = One::of(&log(4), 2, 0);
        assert_eq!((one.acquire(1, 5), one.acquire(1, 5)), (1, 1));
        let one = Arc::new(one);
        let export = export_beside(&one, 10, |one| {
            assert_eq!((one.acquire(1, 10), one.acquire(1, 10)), (1, 1));
        });
        assert!([stamps(&[5, 5]), stamps(&[5, 5, 0]), stamps(&[5, 5, 0, 0])].contains(&export), "{export:?}");
        assert_eq!(one.export(10), stamps(&[5, 5, 0, 0]));
    });
}

/// All the permits of one claim, or none.
#[test]
fn loom_export_beside_a_claim_of_several() {
    explore(|| {
        let one = One::of(&log(4), 2, 0);
        assert_eq!((one.acquire(1, 5), one.acquire(1, 5)), (1, 1));
        let one = Arc::new(one);
        let export = export_beside(&one, 10, |one| assert_eq!(one.acquire(2, 10), 2));
        assert!([stamps(&[5, 5]), stamps(&[5, 5, 0, 0])].contains(&export), "{export:?}");
    });
}

/// A claim replaces the stamp of the claim before it: once around the ring.
#[test]
fn loom_long_export_beside_claims_that_go_around() {
    explore(|| {
        let one = Arc::new(One::of(&log(2), 2, 0));
        let export = export_beside(&one, 20, |one| {
            assert_eq!(one.acquire(2, 10), 2);
            // Denied if the keeper has published the first at 20.
            one.acquire(2, 20);
        });
        assert!([stamps(&[]), stamps(&[0, 0])].contains(&export), "{export:?}");
    });
}

#[test]
fn loom_export_while_the_ring_grows() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(4), 1, 0));
        let export = export_beside(&one, 5, |one| {
            assert_eq!((one.acquire(1, 5), one.acquire(1, 5)), (1, 1));
        });
        assert!([stamps(&[5]), stamps(&[5, 0]), stamps(&[5, 0, 0])].contains(&export), "{export:?}");
    });
}

/// The replaced ring goes to another cell's key while it is read.
#[test]
fn loom_long_export_while_the_ring_changes_hands() {
    explore(|| {
        let one = One::of(&log(8), 2, 0);
        let (other, incarnation) = one.cells.create(NEXT, 1).unwrap();
        one.cells.grant(other, incarnation, &At(0));
        let one = Arc::new(one);
        let export = export_beside(&one, 5, move |one| {
            assert_eq!(one.acquire(3, 5), 3);
            // Its first ring may be the one that was just given back.
            let seat = one.cells.seat_for(other, incarnation, NEXT).unwrap();
            assert!(one.cells.decide(Ask::Acquire, seat, 1, &At(5)).unwrap().is_admitted());
        });
        assert!([stamps(&[5, 5]), stamps(&[5, 5, 0, 0, 0])].contains(&export), "{export:?}");
    });
}

/// One thread has replaced the ring and not yet opened the cell, and the ring is another key's by
/// now.
#[test]
fn loom_long_export_while_the_ring_changes_hands_and_the_cell_still_grows() {
    explore_with(2, || {
        let one = One::of(&log(5), 2, 0);
        let (other, incarnation) = one.cells.create(NEXT, 1).unwrap();
        one.cells.grant(other, incarnation, &At(0));
        let one = Arc::new(one);
        let another = Arc::clone(&one);
        let another = thread::spawn(move || {
            let seat = another.cells.seat_for(other, incarnation, NEXT).unwrap();
            assert!(another.cells.decide(Ask::Acquire, seat, 1, &At(5)).unwrap().is_admitted());
        });
        let export = export_beside(&one, 5, |one| assert_eq!(one.acquire(3, 5), 3));
        another.join().unwrap();
        assert!([stamps(&[5, 5]), stamps(&[5, 5, 0, 0, 0])].contains(&export), "{export:?}");
    });
}

#[test]
fn loom_long_export_while_permits_are_refunded() {
    explore(|| {
        let one = One::of(&log(4), 1, 0);
        let charged = one.reserve(2, 0, 2).unwrap().1;
        let one = Arc::new(one);
        let export = export_beside(&one, 5, move |one| {
            assert_eq!(one.refund(charged, 2, 5), 2);
            assert_eq!(one.acquire(1, 5), 1);
        });
        assert!([stamps(&[5, 3, 3]), stamps(&[5]), stamps(&[5, 0])].contains(&export), "{export:?}");
    });
}

/// Reserved stamps are exported beside live ones, which a cancellation may need.
#[test]
fn loom_long_export_while_permits_are_reserved_ahead() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(2), 2, 0));
        let export = export_beside(&one, 5, |one| {
            let ahead = one.reserve(1, 9, 5).unwrap().1;
            assert_eq!(one.refund(ahead, 1, 5), 1);
        });
        assert!([stamps(&[5, 5]), stamps(&[5, 5, -5])].contains(&export), "{export:?}");
        assert_eq!(one.export(5), stamps(&[5, 5]));
    });
}

/// The moment of a reservation comes, and the cell is open again.
#[test]
fn loom_export_once_a_reserved_permit_is_due() {
    explore(|| {
        let one = One::of(&log(2), 2, 0);
        assert!(one.reserve(1, 9, 5).is_some());
        let one = Arc::new(one);
        let export = export_beside(&one, 12, |one| {
            assert_eq!((one.acquire(1, 12), one.acquire(1, 12)), (1, 0));
        });
        assert!([stamps(&[2]), stamps(&[2, 0])].contains(&export), "{export:?}");
    });
}

#[test]
fn loom_export_while_an_account_is_charged() {
    explore(|| {
        let one = One::of(&bucket(4), 1, 0);
        let charged = one.reserve(2, 0, 0).unwrap().1;
        let one = Arc::new(one);
        let export = export_beside(&one, 5, move |one| {
            assert_eq!((one.acquire(1, 5), one.refund(charged, 2, 5)), (1, 2));
        });
        assert!([account(5, 3), account(5, 4), account(5, 2)].contains(&export), "{export:?}");
    });
}

/// An account that is over closes, and another opens.
#[test]
fn loom_export_while_an_account_opens() {
    explore(|| {
        let one = Arc::new(One::of(&bucket(2), 1, 0));
        let export = export_beside(&one, 12, |one| {
            assert_eq!((one.acquire(1, 12), one.acquire(1, 12)), (1, 1));
        });
        assert!([None, account(0, 1), account(0, 2)].contains(&export), "{export:?}");
        assert_eq!(one.export(12), account(0, 2));
    });
}

/// Opened by one thread and published by the keeper, by a clock of its own: nothing is missing, and
/// nothing is too old.
#[test]
fn loom_export_publishes_an_account_by_its_own_clock() {
    explore(|| {
        let one = Arc::new(One::of(&bucket(2), 1, 0));
        let export = export_beside(&one, 15, |one| assert_eq!(one.acquire(2, 12), 2));
        assert!([None, account(3, 2), account(0, 2)].contains(&export), "{export:?}");
    });
}

/// A counter advances: it continues under another anchor, with the weight of the last window.
#[test]
fn loom_export_while_an_account_advances() {
    explore(|| {
        let one = One::of(&[Quota::sliding_counter(4, nanos(10))], 2, 0);
        let mut moments = vec![one.export(12)];
        // The same, one step after the other.
        let again = One::of(&[Quota::sliding_counter(4, nanos(10))], 2, 0);
        for _ in 0..2 {
            assert_eq!(again.acquire(1, 12), 1);
            moments.push(again.export(12));
        }
        let one = Arc::new(one);
        let export = export_beside(&one, 12, |one| {
            assert_eq!((one.acquire(1, 12), one.acquire(1, 12)), (1, 1));
        });
        assert!(moments.contains(&export), "{export:?}, and not one of {moments:?}");
    });
}

#[test]
fn loom_export_while_the_key_is_forgotten() {
    for quotas in [log(2), bucket(2)] {
        explore(move || {
            let one = Arc::new(One::of(&quotas, 2, 0));
            let before = one.export(5);
            assert!(before.is_some());
            let export = export_beside(&one, 5, |one| assert!(one.cells.forget(one.id, one.incarnation, &At(5))));
            assert!(export.is_none() || export == before, "{export:?}");
            assert_eq!(one.export(5), None);
        });
    }
}

/// The cell goes to another key while it is read: each key has its own permits.
#[test]
fn loom_long_export_while_the_cell_changes_hands() {
    for (quotas, next) in [(log(2), Export::Stamps(vec![0])), (bucket(2), Export::Account { age: 0, used: 1 })] {
        explore_with(2, move || {
            let one = Arc::new(One::of(&quotas, 2, 0));
            let before = one.export(5);
            let export = export_beside(&one, 5, |one| {
                assert!(one.cells.forget(one.id, one.incarnation, &At(5)));
                assert_eq!(one.cells.free(one.id, one.incarnation, time_of(5), &At(5)), Freed::Gone);
                let (id, incarnation) = one.cells.create(NEXT, 1).unwrap();
                assert_eq!(id, one.id);
                one.cells.grant(id, incarnation, &At(5));
            });
            let after = Some((NEXT, next.clone()));
            assert!(export.is_none() || export == before || export == after, "{export:?}");
            assert_eq!(one.export(5), after);
        });
    }
}
