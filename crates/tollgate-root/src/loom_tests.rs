//! Models of a root. They read cells of loom in place of the values, so that a value that is freed too
//! early is found, and nothing is read that is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use super::{Guard, Root};

const MOST: usize = 3;

/// What stands for the values: a guard reads a cell, and the end of the value writes it.
struct Cells {
    cells: [UnsafeCell<()>; MOST],
    addresses: [AtomicUsize; MOST],
    alive: AtomicUsize,
}

struct Value {
    number: usize,
    cells: Arc<Cells>,
    /// Its memory is of a size of its own. So an allocator gives it to a later value.
    _size: [usize; 30],
}

impl Cells {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cells: core::array::from_fn(|_| UnsafeCell::new(())),
            addresses: core::array::from_fn(|_| AtomicUsize::new(0)),
            alive: AtomicUsize::new(0),
        })
    }

    fn value(self: &Arc<Self>, number: usize) -> Arc<Value> {
        // The value is written before it is published.
        self.cells[number].with_mut(|_| ());
        self.alive.fetch_add(1, Ordering::Relaxed);
        let value = Arc::new(Value { number, cells: Arc::clone(self), _size: [0; 30] });
        self.addresses[number].store(Arc::as_ptr(&value).addr(), Ordering::Relaxed);
        value
    }

    /// Reads the value of a guard. Returns its number.
    fn read(&self, guard: &Guard<'_, Value>) -> usize {
        let is_its = |address: &AtomicUsize| address.load(Ordering::Relaxed) == guard.value.addr();
        // The last one, if its memory is that of an earlier one.
        let number = self.addresses.iter().rposition(is_its).unwrap();
        self.cells[number].with(|_| ());
        number
    }

    fn replace(self: &Arc<Self>, root: &Root<Value>, number: usize) -> bool {
        let guard = root.load();
        root.swap(&guard, self.value(number))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.cells.cells[self.number].with_mut(|_| ());
        self.cells.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

fn model(preemptions: usize, body: impl Fn(&Arc<Cells>, Arc<Root<Value>>) + Sync + Send + 'static) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let cells = Cells::new();
        let root = Arc::new(Root::new(cells.value(0)));
        body(&cells, Arc::clone(&root));
        assert_eq!(cells.alive.load(Ordering::Relaxed), 1, "all but the last value are freed");
        drop(root);
        assert_eq!(cells.alive.load(Ordering::Relaxed), 0);
    });
    let runs = runs.load(Ordering::Relaxed);
    println!("explored {runs} interleavings");
    assert!(runs > 50, "only {runs} interleavings");
}

fn spawn(
    cells: &Arc<Cells>,
    root: &Arc<Root<Value>>,
    body: impl FnOnce(&Arc<Cells>, &Root<Value>) + 'static,
) -> thread::JoinHandle<()> {
    let (cells, root) = (Arc::clone(cells), Arc::clone(root));
    thread::spawn(move || body(&cells, &root))
}

#[test]
fn loom_root_a_guard_keeps_its_value() {
    model(4, |cells, root| {
        let reader = spawn(cells, &root, |cells, root| {
            let guard = root.load();
            cells.read(&guard);
        });
        assert!(cells.replace(&root, 1));
        reader.join().unwrap();
    });
}

/// A load that finds another value the second time has named the first one.
#[test]
fn loom_root_a_guard_keeps_no_other_value() {
    model(4, |cells, root| {
        let writer = spawn(cells, &root, |cells, root| assert!(cells.replace(root, 1)));
        let guard = root.load();
        writer.join().unwrap();
        assert_eq!(cells.alive.load(Ordering::Relaxed), 2 - cells.read(&guard));
    });
}

#[test]
fn loom_root_a_reader_sees_values_in_order_and_frees_the_last_one() {
    model(3, |cells, root| {
        let reader = spawn(cells, &root, |cells, root| {
            let first = cells.read(&root.load());
            assert!(first <= cells.read(&root.load()));
        });
        assert!(cells.replace(&root, 1));
        assert!(cells.replace(&root, 2));
        reader.join().unwrap();
    });
}

/// No record names the value for the thread that replaces it.
#[test]
fn loom_root_a_thread_replaces_a_value_without_a_guard() {
    model(3, |cells, root| {
        let reader = spawn(cells, &root, |cells, root| {
            cells.read(&root.load());
        });
        let old = root.load().value;
        assert!(root.replace(old, cells.value(1)));
        reader.join().unwrap();
    });
}

#[test]
fn loom_root_two_readers() {
    model(2, |cells, root| {
        let read = |cells: &Arc<Cells>, root: &Root<Value>| {
            let guard = root.load();
            cells.read(&guard);
            guard.end(|| root);
        };
        let (one, other) = (spawn(cells, &root, read), spawn(cells, &root, read));
        assert!(cells.replace(&root, 1));
        one.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn loom_root_two_guards_of_a_thread() {
    model(3, |cells, root| {
        let reader = spawn(cells, &root, |cells, root| {
            let (one, other) = (root.load(), root.load());
            let first = cells.read(&one);
            drop(one);
            assert!(first <= cells.read(&other));
        });
        assert!(cells.replace(&root, 1));
        reader.join().unwrap();
    });
}

#[test]
fn loom_root_one_of_two_writers_replaces_a_value() {
    model(2, |cells, root| {
        let writer = spawn(cells, &root, |cells, root| {
            let guard = root.load();
            cells.read(&guard);
            root.swap(&guard, cells.value(1));
        });
        let guard = root.load();
        root.swap(&guard, cells.value(2));
        drop(guard);
        writer.join().unwrap();
        let guard = root.load();
        assert!(cells.read(&guard) > 0);
    });
}

/// What one thread retires, the other may free.
#[test]
fn loom_root_two_writers_replace_one_value_after_the_other() {
    model(2, |cells, root| {
        let writer = spawn(cells, &root, |cells, root| while !cells.replace(root, 1) {});
        while !cells.replace(&root, 2) {}
        writer.join().unwrap();
    });
}

#[test]
fn loom_root_records_of_an_ended_thread_serve_another() {
    model(2, |cells, root| {
        let read = |cells: &Arc<Cells>, root: &Root<Value>| {
            cells.read(&root.load());
        };
        let one = spawn(cells, &root, read);
        one.join().unwrap();
        let other = spawn(cells, &root, read);
        assert!(cells.replace(&root, 1));
        other.join().unwrap();
    });
}
