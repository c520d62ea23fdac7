//! A thread that stalls for ever at any step of replacing a block blocks no other.

use core::time::Duration;

use crate::cell::kit::*;
use crate::quota::Quota;

const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// How far a thread that begins the step of 11 gets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stalls {
    /// The cell is new, and its first step not published.
    New,
    /// The head is marked.
    Resizing,
    /// A block is prepared, and not offered.
    Prepared,
    /// The block is in place, and the head not opened.
    Offered,
}

const ALL: [Stalls; 4] = [Stalls::New, Stalls::Resizing, Stalls::Prepared, Stalls::Offered];

/// Four permits in two steps of ten nanoseconds, of which one was granted at 1 and, if the thread
/// got so far, one at 11.
fn stalled(at: Stalls) -> (Cells, u32, u64) {
    let quota = Quota::quantised_log(4, Duration::from_nanos(20), Duration::from_nanos(10));
    let cells = Cells::together([Versions::new(&[quota])].into(), 4);
    let (id, incarnation) = cells.create(KEY, 1).unwrap();
    if at == Stalls::New {
        return (cells, id, incarnation);
    }
    cells.grant(id, incarnation, &At(1));
    let cell = cells.store.cells.element(id);
    let resizing = CellAt::now(cell).begin_resize(State::Resizing).unwrap().head;
    if at == Stalls::Resizing {
        return (cells, id, incarnation);
    }
    let AnyDriver::Quantised(quantised) = cells.driver_of(cell) else { unreachable!() };
    let reference = cell.reference();
    let history = quantised.history(resizing, reference).unwrap();
    let step = quantised.plan.steps.step_of(time_of(11));
    let (offer, _) = quantised.next_block(resizing, &history, step, 1);
    if at == Stalls::Offered {
        cell.ring.store(offer.0, Ordering::Release);
    }
    (cells, id, incarnation)
}

fn ask(cells: &Cells, id: u32, incarnation: u64, ask: Ask, cost: u32, at: u64) -> Option<(Status, Charge)> {
    cells.decide_refundable(ask, cells.seat_for(id, incarnation, KEY)?, cost, &At(at))
}

#[test]
fn others_are_decided_and_all_is_counted() {
    for at in ALL {
        for now in [2, 11, 12, 20] {
            let (cells, id, incarnation) = stalled(at);
            let before = if at == Stalls::Offered { 2 } else { 3 };
            let peek = |now| ask(&cells, id, incarnation, Ask::Peek, 0, now).unwrap().0.remaining();
            assert_eq!(peek(now), before, "{at:?} at {now}");
            let (status, charge) = ask(&cells, id, incarnation, Ask::Acquire, 2, now).unwrap();
            assert!(status.is_admitted() && status.remaining() == before - 2, "{at:?} at {now}: {status:?}");
            assert_eq!(peek(now), before - 2);
            let denied = ask(&cells, id, incarnation, Ask::Acquire, 4, now).unwrap().0;
            let wait = u64::try_from(denied.retry_after().unwrap().as_nanos()).unwrap();
            assert_eq!((peek(now + wait - 1) < 4, peek(now + wait)), (true, 4), "{at:?} at {now}");
            let seat = cells.seat_for(id, incarnation, KEY).unwrap();
            assert_eq!(cells.refund(seat, charge, 2, &At(now)), Some(2));
            assert_eq!(peek(now), before);
        }
    }
}

#[test]
fn permits_are_refunded_while_a_block_is_replaced() {
    let (cells, id, incarnation) = stalled(Stalls::New);
    let (_, charge) = ask(&cells, id, incarnation, Ask::Acquire, 2, 5).unwrap();
    let cell = cells.store.cells.element(id);
    CellAt::now(cell).begin_resize(State::Resizing).unwrap();
    let seat = || cells.seat_for(id, incarnation, KEY).unwrap();
    assert_eq!(cells.refund(seat(), charge, 2, &At(6)), Some(2));
    assert_eq!(cells.refund(seat(), charge, 2, &At(6)), Some(0), "one permit is left of the step");
    assert_eq!(ask(&cells, id, incarnation, Ask::Peek, 0, 6).unwrap().0.remaining(), 3);
}

#[test]
fn a_request_on_several_keys_goes_on() {
    for at in ALL {
        let (cells, id, incarnation) = stalled(at);
        let admitted = (0..3).any(|_| {
            let seat = cells.seat_for(id, incarnation, KEY).unwrap();
            match cells.prepare(seat, 2, &At(12), None) {
                Some((part, _)) => cells.claim_together([part].iter()),
                None => false,
            }
        });
        assert!(admitted, "{at:?}");
        let left = if at == Stalls::Offered { 0 } else { 1 };
        assert_eq!(ask(&cells, id, incarnation, Ask::Peek, 0, 12).unwrap().0.remaining(), left, "{at:?}");
    }
}

#[test]
fn keys_are_forgotten_and_cells_freed() {
    for at in ALL {
        let (cells, id, incarnation) = stalled(at);
        assert!(cells.forget(id, incarnation, &At(12)), "{at:?}");
        assert_eq!(cells.free(id, incarnation, time_of(12), &At(12)), Freed::Gone);
        assert_eq!(cells.create(KEY, 3), Some((id, incarnation + 1)));
        cells.grant(id, incarnation + 1, &At(12));
        assert_eq!(ask(&cells, id, incarnation + 1, Ask::Peek, 0, 12).unwrap().0.remaining(), 1);
        let (cells, id, incarnation) = stalled(at);
        let end = if at == Stalls::Offered { 40 } else { 30 };
        let _ = cells.free(id, incarnation, time_of(1), &At(1));
        assert_eq!(cells.free(id, incarnation, time_of(end - 1), &At(1)), Freed::Live(time_of(end)), "{at:?}");
        assert_eq!(cells.free(id, incarnation, time_of(end), &At(end)), Freed::Gone);
    }
}

/// A head that returned would be held again for a joint claim that is over.
#[test]
fn no_head_returns_when_permits_are_refunded() {
    let (cells, id, incarnation) = stalled(Stalls::New);
    let cell = cells.store.cells.element(id);
    let mut heads = vec![];
    for at in 2..8 {
        heads.push(cell.head.load(Ordering::Acquire));
        let (_, charge) = ask(&cells, id, incarnation, Ask::Acquire, 1, at).unwrap();
        heads.push(cell.head.load(Ordering::Acquire));
        assert_eq!(cells.refund(cells.seat_for(id, incarnation, KEY).unwrap(), charge, 1, &At(at)), Some(1));
    }
    heads.sort_unstable();
    assert!(heads.windows(2).all(|two| two[0] != two[1]));
}

/// A step drops what has expired when it begins. If its own permits are refunded and the cell is
/// freed, a clock that lags finds a new cell, but no earlier step.
#[test]
fn a_cell_that_is_freed_without_permits_leaves_the_floor_at_its_step() {
    let (cells, id, incarnation) = stalled(Stalls::New);
    cells.grant(id, incarnation, &At(1));
    let (_, charge) = ask(&cells, id, incarnation, Ask::Acquire, 4, 55).unwrap();
    let seat = cells.seat_for(id, incarnation, KEY).unwrap();
    assert_eq!(cells.refund(seat, charge, 4, &At(55)), Some(4));
    assert_eq!(cells.free(id, incarnation, time_of(50), &At(50)), Freed::Live(time_of(51)));
    assert_eq!(cells.free(id, incarnation, time_of(55), &At(55)), Freed::Gone);
    let next = cells.create(KEY, 1).unwrap();
    cells.grant(next.0, next.1, &At(8));
    let left = [70, 80, 81].map(|at| ask(&cells, next.0, next.1, Ask::Peek, 0, at).unwrap().0.remaining());
    assert_eq!(left, [3, 4, 4]);
}
