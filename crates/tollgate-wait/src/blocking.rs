//! A thread that waits: it polls one future, and sleeps until that is woken or a timer ends.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Instant;

use crate::timer::Timer;

thread_local! {
    /// The first end of the timers that the last poll found running.
    static FIRST_END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Timers of a future that [`block_on`] polls.
pub(crate) struct ThreadTimer;

impl Timer for ThreadTimer {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        // None: past the end of time.
        let end = Instant::now().checked_add(time);
        poll_fn(move |_| {
            let Some(end) = end else { return Poll::Pending };
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            FIRST_END.set(Some(FIRST_END.get().map_or(end, |first| first.min(end))));
            Poll::Pending
        })
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the future in this thread until it ends.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        FIRST_END.set(None);
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        match FIRST_END.get() {
            Some(end) => thread::park_timeout(end.saturating_duration_since(Instant::now())),
            None => thread::park(),
        }
    }
}
