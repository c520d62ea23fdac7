use std::cell::RefCell;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

use super::record::OWN;
use super::{Guard, Root, records};

/// Counts the values that are not freed.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

struct Value {
    number: usize,
    alive: Alive,
}

impl Alive {
    fn value(&self, number: usize) -> Arc<Value> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Arc::new(Value { number, alive: self.clone() })
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.number = usize::MAX;
        self.alive.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn replace(root: &Root<Value>, alive: &Alive) {
    let guard = root.load();
    assert!(root.swap(&guard, alive.value(guard.number + 1)));
}

#[test]
fn a_value_is_freed_when_it_is_replaced() {
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    for number in 1..100 {
        replace(&root, &alive);
        assert_eq!((root.load().number, alive.count()), (number, 1));
    }
    drop(root);
    assert_eq!(alive.count(), 0);
}

#[test]
fn a_thread_that_stops_in_a_read_keeps_one_value_until_its_guard_goes() {
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    let ((stopped, is_stopped), (go_on, may_go_on)) = (channel(), channel());
    thread::scope(|scope| {
        let reader = scope.spawn({
            let root = &root;
            move || {
                let guard = root.load();
                stopped.send(()).unwrap();
                may_go_on.recv().unwrap();
                guard.number
            }
        });
        is_stopped.recv().unwrap();
        for number in 1..100 {
            replace(&root, &alive);
            assert_eq!((root.load().number, alive.count()), (number, 2));
        }
        go_on.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), 0);
        assert_eq!(alive.count(), 1, "the guard frees it as it goes, and no other replacement");
    });
}

#[test]
fn a_thread_has_any_number_of_guards() {
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    let mut guards: Vec<Guard<'_, Value>> = Vec::new();
    for _ in 0..10 * OWN {
        guards.push(root.load());
        replace(&root, &alive);
    }
    assert_eq!(alive.count(), 10 * OWN + 1);
    // First every second one.
    let mut numbers: Vec<_> = (0..10 * OWN).collect();
    numbers.sort_by_key(|number| number % 2);
    let mut guards: Vec<_> = guards.into_iter().map(Some).collect();
    for (gone, number) in numbers.into_iter().enumerate() {
        assert_eq!(guards[number].take().unwrap().number, number);
        assert_eq!(alive.count(), 10 * OWN - gone);
    }
}

#[test]
fn a_value_that_is_kept_by_a_count_is_not_freed() {
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    let kept = root.load().to_arc();
    replace(&root, &alive);
    assert_eq!((kept.number, alive.count()), (0, 2));
    let guard = Guard::of(&root, kept);
    assert_eq!((guard.number, guard.to_arc().number), (0, 0));
    drop(guard);
    assert_eq!(alive.count(), 1);
}

#[test]
fn a_value_that_was_replaced_is_not_replaced_again() {
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    let first = root.load();
    replace(&root, &alive);
    assert!(!root.swap(&first, alive.value(7)));
    assert_eq!((root.load().number, alive.count()), (1, 2));
}

static OF_THREADS: OnceLock<Root<Value>> = OnceLock::new();

/// A thread's records serve others after its end, and one with a guard after that. A guard that the
/// end of the thread makes has one for itself.
#[test]
fn threads_come_and_go() {
    struct AtItsEnd;
    impl Drop for AtItsEnd {
        fn drop(&mut self) {
            let root = OF_THREADS.get().unwrap();
            let guards: Vec<_> = (0..2 * OWN).map(|_| root.load()).collect();
            replace(root, &guards[0].alive);
            assert!(guards.iter().all(|guard| guard.number < usize::MAX));
        }
    }
    struct Held(Guard<'static, Value>);
    impl Drop for Held {
        fn drop(&mut self) {
            assert!(self.0.number < usize::MAX, "its record is another guard's");
        }
    }
    // Destructors of a thread run in reverse order of their first use, and its records have theirs.
    thread_local! {
        static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
        static AT_ITS_END: AtItsEnd = const { AtItsEnd };
    }
    let alive = Alive::default();
    let root = OF_THREADS.get_or_init(|| Root::new(alive.value(0)));
    for _ in 0..40 * OWN {
        let ends = thread::spawn(|| {
            HELD.with(|_| AT_ITS_END.with(|_| ()));
            HELD.set(Some(Held(root.load())));
        });
        ends.join().unwrap();
        assert_eq!(alive.count(), 1);
    }
    assert!(records().count() < 40 * OWN, "records are used again");
}

#[test]
fn readers_and_writers_beside_each_other() {
    const READERS: usize = 4;
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    let alive = Alive::default();
    let root = Root::new(alive.value(0));
    let start = Barrier::new(READERS + 2);
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                start.wait();
                let mut last = 0;
                while last < rounds {
                    let (one, other) = (root.load(), root.load());
                    assert!(last <= one.number && one.number <= other.number && other.number < usize::MAX);
                    last = one.number;
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                loop {
                    let guard = root.load();
                    if guard.number >= rounds {
                        break;
                    }
                    root.swap(&guard, alive.value(guard.number + 1));
                }
            });
        }
    });
    assert_eq!(alive.count(), 1);
}

struct Ends<'a> {
    ended: &'a AtomicUsize,
    by_a_panic: bool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        assert!(!self.by_a_panic, "as the test wants");
    }
}

#[test]
fn a_value_whose_end_panics_keeps_no_other() {
    let ended = AtomicUsize::new(0);
    let value = |by_a_panic| Arc::new(Ends { ended: &ended, by_a_panic });
    let root = Root::new(value(false));
    let first = root.load();
    assert!(root.swap(&first, value(true)));
    let second = root.load().value;
    assert!(catch_unwind(AssertUnwindSafe(|| root.replace(second, value(false)))).is_err());
    drop(first);
    assert_eq!(ended.load(Ordering::Relaxed), 2);
    let third = root.load();
    assert!(root.swap(&third, value(true)));
    forget(third);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(root))).is_err());
    assert_eq!(ended.load(Ordering::Relaxed), 4);
}
