//! A thread stalls before it replaces the one slot of a log, until the cell has had other keys. The
//! word that it expects must not return (INV-REFERENCE), or the cell would get a ring that is not
//! its own.

use core::time::Duration;

use crate::cell::kit::*;
use crate::quota::Quota;

struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// The key of a log of ten nanoseconds.
const LOG: Fingerprint = Fingerprint::new(1, 2 << 4);

/// The key of a fixed window of ten nanoseconds.
fn window() -> Fingerprint {
    Fingerprint::new(3, 4 << 4).in_dimension(1)
}

/// A cell that a log has outgrown and that was freed, with all at one moment; that moment; and the
/// word that a thread still expects.
fn outgrown(grants: u64) -> (Cells, u64, u64) {
    let window = Duration::from_nanos(10);
    outgrown_in([Quota::new(2, window), Quota::fixed_window(1, window)], grants)
}

/// The same, for a log and an account of these quotas.
fn outgrown_in(quotas: [Quota; 2], grants: u64) -> (Cells, u64, u64) {
    let cells = Cells::together(quotas.map(|quota| Versions::new(&[quota])).into(), 1);
    assert_eq!(cells.create(LOG, 1), Some((0, 0)));
    cells.grant(0, 0, &At(0));
    let admits = |at| {
        let seat = cells.seat_for(0, 0, LOG).unwrap();
        cells.decide(Ask::Acquire, seat, 1, &At(at)).unwrap().is_admitted()
    };
    assert!((1..=grants).all(|nth| admits(nth * 10)));
    let last = grants * 10;
    let expected = word(&cells);
    assert!(admits(last));
    assert!(cells.forget(0, 0, &At(last)));
    assert_eq!(cells.free(0, 0, time_of(last), &At(last)), Freed::Gone);
    (cells, last, expected)
}

fn word(cells: &Cells) -> u64 {
    cells.store.cells.element(0).ring.load(Ordering::Acquire)
}

#[test]
fn before_replacing_a_slot_until_a_log_has_the_cell_after_an_account() {
    for grants in 3..=6 {
        // Accounts that were charged nothing: a joint claim that failed, and a cell that was not
        // inserted. And one that was charged and forgotten at that moment.
        for costs in [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2], [2, 0], [2, 1]] {
            let (cells, now, expected) = outgrown(grants);
            let mut incarnation = 1;
            for cost in costs {
                assert_eq!(cells.create(window(), cost.min(1)), Some((0, incarnation)));
                if cost == 2 {
                    cells.grant(0, incarnation, &At(now));
                    assert!(cells.forget(0, incarnation, &At(now)));
                }
                if cost != 1 {
                    assert_eq!(cells.free(0, incarnation, time_of(now), &At(now)), Freed::Gone);
                    incarnation += 1;
                } else {
                    cells.discard(0);
                }
            }
            assert_eq!(cells.create(LOG, 1), Some((0, incarnation)));
            cells.grant(0, incarnation, &At(now));
            assert_ne!(word(&cells), expected, "{grants} {costs:?}");
        }
    }
}

#[test]
fn before_replacing_a_slot_until_an_account_has_the_cell() {
    for grants in 3..=6 {
        let (cells, now, expected) = outgrown(grants);
        assert_eq!(cells.create(window(), 1), Some((0, 1)));
        cells.grant(0, 1, &At(now));
        assert_ne!(word(&cells), expected, "{grants} grants");
    }
}

/// A bucket of which everything was refunded is over when it opened, so the next key's stamp may be
/// its anchor.
#[test]
fn before_replacing_a_slot_until_a_log_has_the_cell_after_a_refund() {
    let bucket = Fingerprint::new(5, 6 << 4).in_dimension(1);
    let plans = [Quota::new(2, Duration::from_nanos(10)), Quota::token_bucket(4, 1, Duration::from_nanos(10))];
    for grants in 3..=6 {
        let (cells, now, expected) = outgrown_in(plans, grants);
        assert_eq!(cells.create(bucket, 0), Some((0, 1)));
        let seat = || cells.seat_for(0, 1, bucket).unwrap();
        let (status, charge) = cells.decide_refundable(Ask::Acquire, seat(), 2, &At(now)).unwrap();
        assert!(status.is_admitted());
        assert_eq!(cells.refund(seat(), charge, 2, &At(now)), Some(2));
        assert_eq!(cells.free(0, 1, time_of(now), &At(now)), Freed::Gone);
        for incarnation in 2..4 {
            assert_eq!(cells.create(LOG, 1), Some((0, incarnation)));
            cells.grant(0, incarnation, &At(now));
            assert_ne!(word(&cells), expected, "{grants} grants");
            assert!(cells.forget(0, incarnation, &At(now)));
            assert_eq!(cells.free(0, incarnation, time_of(now), &At(now)), Freed::Gone);
        }
    }
}

/// A reserved stamp comes from a snapshot. It raises no timestamp floor when its key is forgotten.
#[cfg(feature = "snapshot")]
#[test]
fn before_replacing_a_slot_with_a_reserved_stamp_until_a_log_has_the_cell() {
    for laps in 0..2 {
        let cells = Cells::new([Versions::new(&[Quota::new(2, Duration::from_nanos(10))])].into(), 1);
        (0..laps).for_each(|_| cells.discard(cells.create(LOG, 1).unwrap().0));
        assert_eq!(cells.import(LOG, &Export::Stamps(vec![-500]), 0, time_of(0)), Some((0, 0)));
        let expected = word(&cells);
        cells.replace_and_stall(cells.seat_for(0, 0, LOG).unwrap());
        assert!(cells.forget(0, 0, &At(0)));
        assert_eq!(cells.free(0, 0, time_of(0), &At(0)), Freed::Gone);
        for (incarnation, at) in [(1, 0), (2, 500)] {
            assert_eq!(cells.create(LOG, 1), Some((0, incarnation)));
            cells.grant(0, incarnation, &At(at));
            assert_ne!(word(&cells), expected, "incarnation {incarnation}");
            assert_eq!(cells.free(0, incarnation, time_of(at + 10), &At(at + 10)), Freed::Gone);
        }
    }
}
