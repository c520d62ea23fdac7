//! Threads that are stopped at arbitrary instructions, some of them for thousands of operations of
//! the others, which go on meanwhile and are told what is right.
//!
//! Time is counted in operations, so windows pass, keys expire and cells change hands hundreds of
//! times while a thread is stopped. What was told is checked afterwards, as in the recorded runs; a
//! limiter that is right is found right however the threads are scheduled.
//!
//! Takes a few seconds. `STOPPED_THREADS_MINUTES=60 cargo test --release -p stopped-threads --
//! --nocapture` takes an hour, with other seeds; `STOPPED_THREADS_SEED` begins at a given one. The
//! threads are scheduled anew each time, so a seed repeats what was asked, not what came of it.
#![cfg(target_os = "linux")]

mod keyed;
mod reserved;
mod several;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stopped_threads::chance::Chance;
use stopped_threads::run::Stops;
use stopped_threads::stopping::Noted;
use tollgate::Clock;

#[global_allocator]
static ALLOCATOR: Noted = Noted;

/// A clock that the threads move.
#[derive(Debug, Clone, Default)]
struct Ticks(Arc<AtomicU64>);

impl Ticks {
    fn at(reading: u64) -> Self {
        Self(Arc::new(AtomicU64::new(reading)))
    }

    /// Moves on a little, and now and then by about a window.
    fn pass(&self, chance: &mut Chance, window: u64) {
        let by = if chance.one_in(64) { u64::from(chance.below(2)) * window } else { chance.below(3).into() };
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for Ticks {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The number that a variable holds, if it is set.
fn asked(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}: '{value}' is no number")))
}

#[test]
fn the_other_threads_go_on_and_get_right_answers() {
    let time =
        asked("STOPPED_THREADS_MINUTES").map_or(Duration::from_secs(8), |minutes| Duration::from_secs(60 * minutes));
    let first = asked("STOPPED_THREADS_SEED").unwrap_or(1);
    let (began, mut rounds, mut stops) = (Instant::now(), 0, Stops::default());
    let scenarios: [fn(u64) -> Stops; 3] = [keyed::round, reserved::round, several::round];
    // Each at least once, however slow.
    while rounds < scenarios.len() as u64 || began.elapsed() < time {
        for scenario in scenarios {
            stops.add(scenario(first.wrapping_add(rounds)));
            rounds += 1;
        }
    }
    let Stops { stopped, meanwhile, longest } = stops;
    println!(
        "{rounds} rounds, {stopped} times a thread stopped; the others completed {meanwhile} operations meanwhile, {longest} at most"
    );
    assert!(stopped > 0 && meanwhile >= stopped / 4, "{stops:?}");
}
