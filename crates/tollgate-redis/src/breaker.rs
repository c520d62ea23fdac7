//! The circuit breaker: after some failures in a row nobody asks the store, until a probe succeeds.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Breaker {
    /// So many failures in a row open it.
    failures: u32,
    /// So long it stays open before one call probes.
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Probing,
}

impl Breaker {
    pub(crate) fn new(failures: u32, pause: Duration) -> Self {
        Self { failures: failures.max(1), pause, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    /// Leave for one call; `None` while it is open.
    pub(crate) fn pass(&self) -> Option<Pass<'_>> {
        let mut state = self.state();
        match *state {
            State::Closed { .. } => {}
            State::Open { until } if Instant::now() >= until => *state = State::Probing,
            State::Open { .. } | State::Probing => return None,
        }
        Some(Pass { breaker: self, is_probe: matches!(*state, State::Probing) })
    }

    /// A connection was made: if it is open, a call may probe at once.
    pub(crate) fn probe_now(&self) {
        let mut state = self.state();
        if let State::Open { until } = &mut *state {
            *until = Instant::now();
        }
    }

    /// No code below panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> State {
        State::Open { until: Instant::now() + self.pause }
    }
}

/// A call that may be made. Its outcome closes the breaker, or opens it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Pass<'_> {
    pub(crate) fn succeeded(mut self) {
        self.is_probe = false;
        *self.breaker.state() = State::Closed { failures: 0 };
    }

    pub(crate) fn failed(mut self) {
        let was_probe = std::mem::take(&mut self.is_probe);
        let mut state = self.breaker.state();
        *state = match *state {
            State::Closed { failures } if failures + 1 < self.breaker.failures => {
                State::Closed { failures: failures + 1 }
            }
            State::Closed { .. } => self.breaker.open(),
            State::Probing if was_probe => self.breaker.open(),
            // A call that was made before it opened.
            other => other,
        };
    }
}

impl Drop for Pass<'_> {
    /// A probe whose runtime stopped has told nothing: another one may probe at once.
    fn drop(&mut self) {
        if self.is_probe {
            *self.breaker.state() = State::Open { until: Instant::now() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_one_probe_closes_it() {
        let breaker = Breaker::new(3, PAUSE);
        breaker.pass().unwrap().failed();
        breaker.pass().unwrap().failed();
        breaker.pass().unwrap().succeeded();
        for _ in 0..3 {
            breaker.pass().unwrap().failed();
        }
        assert!(breaker.pass().is_none());
        tokio::time::advance(PAUSE - Duration::from_nanos(1)).await;
        assert!(breaker.pass().is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        let probe = breaker.pass().unwrap();
        // One at a time.
        assert!(breaker.pass().is_none());
        probe.failed();
        assert!(breaker.pass().is_none());
        tokio::time::advance(PAUSE * 2).await;
        breaker.pass().unwrap().succeeded();
        assert!(breaker.pass().is_some() && breaker.pass().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_lets_one_call_probe_and_does_not_close_it() {
        let breaker = Breaker::new(2, PAUSE);
        breaker.pass().unwrap().failed();
        breaker.probe_now();
        // A connection is no success of a call.
        breaker.pass().unwrap().failed();
        assert!(breaker.pass().is_none());
        breaker.probe_now();
        let probe = breaker.pass().unwrap();
        breaker.probe_now();
        assert!(breaker.pass().is_none());
        probe.failed();
        assert!(breaker.pass().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_dropped_lets_another_probe() {
        let breaker = Breaker::new(1, PAUSE);
        let early = breaker.pass().unwrap();
        breaker.pass().unwrap().failed();
        tokio::time::advance(PAUSE).await;
        drop(breaker.pass().unwrap());
        let probe = breaker.pass().unwrap();
        // The failure of a call from before is not that of the probe.
        early.failed();
        probe.succeeded();
        assert!(breaker.pass().is_some());
    }
}
