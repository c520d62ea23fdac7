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
    let plans = [Quota::new(2, window), Quota::fixed_window(1, window)].map(|quota| Versions::new(&[quota]));
    let cells = Cells::together(plans.into(), 1);
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
