//! Every interleaving of two threads at the table, on the production code, with an index of four
//! slots swept two by two.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::{sync::Arc, thread};

use super::index::SlotContent;
use super::kit::*;
use super::turn::Counted;

/// A clock that stands still at the given reading.
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// Keys that all begin at the first slot of any index, unless they are [`in_the_second_chunk`].
fn key(number: u64) -> Fingerprint {
    Fingerprint::new((number << 56) | (number >> 12), number << 4)
}

/// A key that begins at the first slot of the second chunk to be swept.
fn in_the_second_chunk(number: u64) -> u64 {
    (2 << 12) | number
}

/// A table under `limit` permits in ten nanoseconds.
fn table(limit: u32, key_cap: usize) -> Table {
    Table::new(Versions::new(&[Quota::new(limit, Duration::from_nanos(10))]), key_cap, 0)
}

impl Table {
    /// One permit for the key: granted (1), denied (0), or no room for the key.
    fn one(&self, number: u64, at: u64) -> Option<u32> {
        let fast = self.fast_decide(key(number), 1, &At(at));
        if let Some(decision) = fast {
            return Some(u32::from(decision.is_admitted()));
        }
        match self.acquire(key(number), 1, &At(at)) {
            Ok(status) => Some(u32::from(status.is_admitted())),
            Err(_) => None,
        }
    }
}

/// Runs the model with at most so many preemptions. Even one covers a thread that stalls at any
/// step while the other finishes.
fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 5_000;
    crate::sync::check_model(&model, body);
}

/// Runs `first` and `second` on one table in two threads. Where one of them may only read, it has
/// to be `first`: see [`check_model`](crate::sync::check_model).
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
fn loom_a_new_key_gets_one_cell() {
    explore(2, || {
        let table = Arc::new(table(1, 4));
        let (first, second) = race(&table, |table| table.one(1, 0), |table| table.one(1, 0));
        assert_eq!(first.unwrap() + second.unwrap(), 1);
        assert_eq!(table.counts(&At(0)).cells, 1);
    });
}

#[test]
fn loom_two_new_keys_share_a_sequence() {
    explore(2, || {
        let table = Arc::new(table(1, 4));
        let (first, second) = race(&table, |table| table.one(1, 0), |table| table.one(2, 0));
        assert_eq!((first, second), (Some(1), Some(1)));
        assert_eq!((table.one(1, 9), table.one(2, 9)), (Some(0), Some(0)));
    });
}

/// A table whose index is full: the next new key makes it turn.
fn about_to_turn(limit: u32, key_cap: usize) -> Arc<Table> {
    let table = table(limit, key_cap);
    assert_eq!((table.one(1, 0), table.one(2, 0)), (Some(1), Some(1)));
    Arc::new(table)
}

#[test]
fn loom_a_turn_keeps_live_cells() {
    explore(2, || {
        let table = about_to_turn(1, 4);
        let (old, new) = race(&table, |table| table.one(1, 5), |table| table.one(3, 5));
        assert_eq!((new, old), (Some(1), Some(0)));
        assert_eq!([1, 2, 3].map(|key| table.one(key, 9)), [Some(0); 3]);
        assert_eq!(table.counts(&At(9)).live_keys, 3);
    });
}

/// No index holds more than was counted, wherever a thread stalls.
#[test]
fn loom_a_cell_is_counted_before_it_migrates() {
    explore(3, || {
        let table = about_to_turn(1, 4);
        let route = table.start_turn();
        let look = move |table: &Table| {
            let index = table.current(route);
            let taken = (0..1 << route.size()).filter(|&at| matches!(index.read(at).1, SlotContent::Entry(_))).count();
            // Read last: it may have become more meanwhile.
            let counted = Counted(table.filled[(route.generation() & 1) as usize].load(Ordering::Acquire));
            (taken, counted.of(route.generation()).unwrap() as usize)
        };
        let [migrator, looker] = [Arc::clone(&table), Arc::clone(&table)];
        let migrator = thread::spawn(move || migrator.one(1, 5));
        let looker = thread::spawn(move || look(&looker));
        assert_eq!(migrator.join().unwrap(), Some(0));
        let (taken, counted) = looker.join().unwrap();
        assert!(taken <= counted, "{taken} slots are taken and {counted} counted");
    });
}

#[test]
fn loom_long_two_new_keys_turn_the_table_together() {
    explore(1, || {
        let table = about_to_turn(1, 4);
        let (first, second) = race(&table, |table| table.one(3, 5), |table| table.one(4, 5));
        assert_eq!((first, second), (Some(1), Some(1)));
        assert_eq!([1, 2, 3, 4].map(|key| table.one(key, 9)), [Some(0); 4]);
    });
}

#[test]
fn loom_the_same_new_key_during_a_turn_gets_one_cell() {
    explore(1, || {
        let table = Arc::new(table(1, 4));
        // May find the key in neither index just before it is put into the old one, at a place that
        // no sweep has sealed yet.
        let key = in_the_second_chunk(3);
        let turned = move |table: &Table| {
            table.start_turn();
            table.one(key, 5)
        };
        let (first, second) = race(&table, turned, |table| table.one(key, 5));
        assert_eq!(first.unwrap() + second.unwrap(), 1);
    });
}

#[test]
fn loom_a_key_that_expires_during_a_turn_starts_afresh_once() {
    explore(2, || {
        let table = about_to_turn(1, 4);
        // At 10 both old keys have expired: the sweep that the new key starts frees them while one
        // comes back.
        let (new, back) = race(&table, |table| table.one(3, 10), |table| table.one(1, 10));
        assert_eq!((new, back), (Some(1), Some(1)));
        assert_eq!(table.one(1, 19), Some(0));
    });
}

#[test]
fn loom_a_key_that_comes_back_twice_is_admitted_once() {
    explore(1, || {
        let table = about_to_turn(1, 4);
        let back = |table: &Table| (table.one(3, 10), table.one(1, 10));
        let ((_, first), second) = race(&table, back, |table| table.one(1, 10));
        assert_eq!(first.unwrap() + second.unwrap(), 1);
    });
}

#[test]
fn loom_a_clock_that_lags_behind_the_sweep_gains_nothing() {
    explore(2, || {
        let table = about_to_turn(1, 4);
        // Swept by a clock at 10, asked for by one at 9: a permit now may be stamped 10, but not 9.
        let (_, back) = race(&table, |table| table.one(3, 10), |table| table.one(1, 9));
        if back == Some(1) {
            assert_eq!(table.one(1, 19), Some(0), "two permits within one window");
        }
        assert_eq!(table.one(1, 20), Some(1));
    });
}

#[test]
fn loom_long_a_place_at_the_cap_goes_to_one_key() {
    explore(1, || {
        let table = about_to_turn(1, 2);
        assert_eq!(table.one(1, 5), Some(0));
        // At 10 both places are free again.
        let (first, second) = race(&table, |table| table.one(3, 10), |table| table.one(4, 10));
        assert_eq!((first, second), (Some(1), Some(1)));
        assert_eq!((table.one(5, 19), table.counts(&At(19)).cells), (None, 2));
    });
}

#[test]
fn loom_forgetting_a_key_during_a_turn() {
    explore(2, || {
        let table = about_to_turn(1, 4);
        let (held, _) = race(&table, |table| table.forget(key(1), &At(5)), |table| table.one(3, 5));
        assert!(held);
        assert_eq!((table.one(1, 5), table.one(2, 5), table.one(1, 5)), (Some(1), Some(0), Some(0)));
    });
}

#[test]
fn loom_long_a_new_key_that_was_long_in_the_making_is_stamped_late() {
    explore(1, || {
        let table = Arc::new(table(1, 4));
        // While the first thread is at it, the key may be admitted, expire and be swept away by the
        // second.
        let churn = |table: &Table| (table.one(1, 5), table.one(2, 5), table.one(3, 15));
        let (slow, (quick, _, _)) = race(&table, |table| table.one(1, 0), churn);
        if slow == Some(1) && quick == Some(1) {
            assert_eq!(table.one(1, 24), Some(0), "two permits within one window");
        }
        assert_eq!(table.one(1, 25), Some(1));
    });
}

/// A thread found a slot in the old index and stalled through the turn. No race: the order is
/// given.
#[test]
fn loom_nothing_is_put_into_an_index_that_was_swept() {
    loom::model(|| {
        let table = table(1, 8);
        let route = table.route();
        let mut keys = 1..8;
        // The next turn begins only when this one is over.
        while table.route().generation() < route.generation() + 2 {
            assert_eq!(table.one(keys.next().expect("seven keys turn it twice"), 5), Some(1));
        }
        // In the last slot, which no other key came by.
        let late = Fingerprint::new((9 << 56) | 3, 9 << 4);
        assert!(matches!(table.current(route).put(late, 0, 0, &table.cells), Put::Outdated));
    });
}

#[test]
fn loom_two_new_keys_share_a_tag() {
    explore(2, || {
        let table = Arc::new(table(1, 4));
        let ask = |table: &Table, high: u64| match table.acquire(Fingerprint::new(1 << 56, high << 4), 1, &At(0)) {
            Ok(status) => status.is_admitted(),
            Err(_) => false,
        };
        assert_eq!(race(&table, move |table| ask(table, 1), |table| ask(table, 2)), (true, true));
        assert!(!ask(&table, 1) && !ask(&table, 2));
    });
}

/// A second first request for a key may have made a cell for it, too, until it finds that there is
/// one.
#[cfg(feature = "snapshot")]
#[test]
fn loom_a_snapshot_holds_a_key_once() {
    use crate::cell::Export;
    explore(2, || {
        let table = Arc::new(table(2, 4));
        // The first request has got no further than this.
        let route = table.route();
        assert!(table.reserve(route));
        let first = table.cells.new_cell(key(1), 1).unwrap().seat.id;
        assert_eq!(table.one(1, 0), Some(1));
        let goes_on = move |table: &Table| {
            assert_eq!(table.current(route).put(key(1), first, 0, &table.cells), Put::Other);
            table.cells.discard(first);
            table.unreserve(route);
            assert_eq!(table.one(1, 5), Some(1));
        };
        let exports = |table: &Table| table.export(&At(5)).map(|(key, export, _)| (key, export)).collect::<Vec<_>>();
        let (export, ()) = race(&table, exports, goes_on);
        let (before, after) = (Export::Stamps(vec![5]), Export::Stamps(vec![5, 0]));
        assert!(export == [(key(1), before)] || export == [(key(1), after)], "{export:?}");
    });
}

/// A clock that notes whether another thread was done when it was read last.
struct Watching {
    done: Arc<AtomicU64>,
    was_done: core::cell::Cell<bool>,
}

impl Clock for Watching {
    fn now(&self) -> u64 {
        self.was_done.set(self.done.load(Ordering::Acquire) == 1);
        0
    }
}

/// The clock is read for the last time before the key is looked for once more.
#[test]
fn loom_a_key_that_has_the_last_place_is_not_denied_for_want_of_one() {
    explore(1, || {
        let quota = Quota::new(2, Duration::from_millis(1));
        let table = Arc::new(Table::new(Versions::new(&[quota]), 1, 0));
        let done = Arc::new(AtomicU64::new(0));
        let clock = Watching { done: Arc::clone(&done), was_done: false.into() };
        let first = move |table: &Table| {
            let granted = table.one(1, 0);
            done.store(1, Ordering::Release);
            granted
        };
        let (first, second) = race(&table, first, |table| match table.acquire(key(1), 1, &clock) {
            Ok(status) => Some(u32::from(status.is_admitted())),
            Err(_) => None,
        });
        assert!(first.or(second) == Some(1) && first != Some(0) && second != Some(0), "two permits");
        assert!(second.is_some() || !clock.was_done.get(), "its own key had the place");
    });
}
