//! Atomics of unit tests, and threads that a test stops before each of their steps.

use core::cell::RefCell;
use core::ops::Deref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

/// An atomic whose every operation is a step.
#[derive(Debug)]
#[repr(transparent)]
pub(in crate::state) struct Stepped<A>(A);

pub(in crate::state) type AtomicU64 = Stepped<crate::sync::AtomicU64>;
pub(in crate::state) type AtomicU128 = Stepped<portable_atomic::AtomicU128>;

impl AtomicU64 {
    pub(in crate::state) fn new(value: u64) -> Self {
        Self(crate::sync::AtomicU64::new(value))
    }
}

impl AtomicU128 {
    pub(in crate::state) fn new(value: u128) -> Self {
        Self(portable_atomic::AtomicU128::new(value))
    }
}

/// Each operation gets at the atomic by this way.
impl<A> Deref for Stepped<A> {
    type Target = A;

    #[inline]
    fn deref(&self) -> &A {
        wait_for_turn();
        &self.0
    }
}

/// What a thread that is stopped waits at.
struct Gate {
    arrived: Sender<()>,
    go: Receiver<()>,
}

thread_local! {
    static GATE: RefCell<Option<Gate>> = const { RefCell::new(None) };
}

#[inline]
fn wait_for_turn() {
    GATE.with_borrow_mut(|gate| {
        if gate.as_ref().is_some_and(|gate| gate.arrived.send(()).is_err() || gate.go.recv().is_err()) {
            *gate = None;
        }
    });
}

/// A thread that takes a step when it is told to. Dropped, it runs to its end.
pub(in crate::state) struct Thread<'scope, T> {
    thread: ScopedJoinHandle<'scope, T>,
    arrived: Receiver<()>,
    go: Sender<()>,
    ended: bool,
}

impl<'scope, T: Send + 'scope> Thread<'scope, T> {
    /// Starts a thread, which stops before its first step.
    pub(in crate::state) fn spawn(scope: &'scope Scope<'scope, '_>, body: impl FnOnce() -> T + Send + 'scope) -> Self {
        let ((here, arrived), (go, told)) = (channel(), channel());
        let thread = scope.spawn(|| {
            GATE.set(Some(Gate { arrived: here, go: told }));
            let result = body();
            GATE.set(None);
            result
        });
        let ended = arrived.recv().is_err();
        Self { thread, arrived, go, ended }
    }

    /// Takes one step. Returns whether there is another.
    pub(in crate::state) fn step(&mut self) -> bool {
        self.ended = self.ended || self.go.send(()).is_err() || self.arrived.recv().is_err();
        !self.ended
    }

    pub(in crate::state) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Runs to the end.
    pub(in crate::state) fn finish(self) -> T {
        drop((self.go, self.arrived));
        self.thread.join().unwrap()
    }
}
