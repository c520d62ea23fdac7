//! Windows of elapsed time under one clock that is set back, in every interleaving of claimants and
//! helpers. The internals chapter has the argument, under "Clocks".

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::cell::loom_kit::{KEY, One, explore_with};
use crate::quota::Quota;
use crate::sync::plain;

/// The elapsed time from one reading to the next.
const STEP: u64 = 3;
/// How far the clock is set back.
const SET_BACK: u64 = 17;
const WINDOW: u64 = 10;

const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A clock that goes on with each reading, and is set back once.
struct Settable {
    /// The elapsed time, and in the top bit whether the clock was set back.
    now: AtomicU64,
}

impl Settable {
    const IS_SET_BACK: u64 = 1 << 63;

    fn starting_at(start: u64) -> Self {
        Self { now: AtomicU64::new(start) }
    }

    fn set_back(&self) {
        self.now.fetch_or(Self::IS_SET_BACK, Ordering::Relaxed);
    }
}

/// The clock, as one request reads it.
struct Reader<'a> {
    clock: &'a Settable,
    /// The elapsed time when it was last read.
    last: plain::AtomicU64,
}

impl Clock for Reader<'_> {
    fn now(&self) -> u64 {
        let now = self.clock.now.fetch_add(STEP, Ordering::Relaxed);
        let elapsed = now & !Settable::IS_SET_BACK;
        self.last.store(elapsed, Ordering::Relaxed);
        if elapsed == now { elapsed } else { elapsed - SET_BACK }
    }
}

impl One {
    /// The elapsed time at which a request leaves that comes now; `None` if it is denied.
    fn leaves_at(&self, clock: &Settable) -> Option<u64> {
        let reader = Reader { clock, last: plain::AtomicU64::new(0) };
        let seat = self.cells.open_seat_for(self.id, self.incarnation, KEY);
        let fast = seat.and_then(|seat| self.cells.fast_decide(seat, 1, &reader, None));
        let decision = fast.map(Decision::from).unwrap_or_else(|| {
            loop {
                let seat = self.seat().expect("the cell is never freed here");
                if let Some(status) = self.cells.decide(Ask::Acquire, seat, 1, &reader) {
                    break status.decision();
                }
            }
        });
        let delay = decision.into_result().ok()?.delay();
        Some(reader.last.load(Ordering::Relaxed) + u64::try_from(delay.as_nanos()).unwrap())
    }
}

/// Two threads and this one ask under one clock, which one of them sets back. At time zero a permit
/// was granted. No two requests leave less than a window apart.
fn asked_while_the_clock_is_set_back(one: One, start: u64, later: usize) {
    let one = Arc::new((one, Settable::starting_at(start)));
    let claimant = thread::spawn(asks(&one, 1));
    one.1.set_back();
    let mut all = [vec![0], asks(&one, 2)()].concat();
    all.extend(claimant.join().unwrap());
    all.extend(asks(&one, later)());
    assert!(all.len() > 2, "{all:?}");
    are_a_window_apart(all);
}

/// The same with three threads: one reads the clock, which is then set back by more than a window,
/// before another publishes the last claim.
fn read_before_the_clock_is_set_back(quota: Quota) {
    let one = Arc::new((One::of(&[quota], 1, 0), Settable::starting_at(31)));
    let claimants = [0, 1].map(|_| thread::spawn(asks(&one, 1)));
    let helper = thread::spawn(move || {
        one.1.set_back();
        let reader = Reader { clock: &one.1, last: plain::AtomicU64::new(0) };
        // Once helps, and then gives up.
        let _ = one.0.cells.peek_once(Ask::Peek, one.0.seat().expect("the cell is never freed here"), 0, &reader);
    });
    helper.join().unwrap();
    let all = claimants.into_iter().flat_map(|thread| thread.join().unwrap());
    are_a_window_apart([0].into_iter().chain(all).collect());
}

/// So many requests, and when those leave that are admitted.
fn asks(one: &Arc<(One, Settable)>, times: usize) -> impl FnOnce() -> Vec<u64> + Send + 'static {
    let one = Arc::clone(one);
    move || (0..times).filter_map(|_| one.0.leaves_at(&one.1)).collect()
}

fn are_a_window_apart(mut all: Vec<u64>) {
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= WINDOW), "{all:?}");
}

fn log(limit: u32, window: u64) -> Quota {
    Quota::new(limit, nanos(window))
}

#[test]
fn loom_a_clock_that_is_set_back_shortens_no_window_of_a_log() {
    explore_with(3, || asked_while_the_clock_is_set_back(One::of(&[log(1, WINDOW)], 1, 0), 31, 9));
}

/// A helper knows only the loosest quotas that the log ever had.
#[test]
fn loom_a_clock_that_is_set_back_shortens_no_window_of_a_log_that_changed() {
    explore_with(3, || {
        let one = One::of(&[log(1, WINDOW)], 1, 0);
        for (quota, at) in [(log(2, 4), 1), (log(1, WINDOW), 2)] {
            one.cells.versions(0).change(Scope::All, &[quota], || time_of(at)).unwrap();
        }
        asked_while_the_clock_is_set_back(one, 31, 9);
    });
}

/// The places in a queue are as far apart, though a helper may begin the queue before the claimant
/// read the clock.
#[test]
fn loom_a_clock_that_is_set_back_moves_no_places_of_a_queue_together() {
    explore_with(3, || {
        let queue = Quota::leaky_queue(1, nanos(WINDOW), nanos(2 * WINDOW));
        asked_while_the_clock_is_set_back(One::of(&[queue], 1, 0), 31, 5);
    });
}

#[test]
fn loom_a_reading_from_before_a_claim_was_published_expires_no_permit_of_a_log() {
    explore_with(2, || read_before_the_clock_is_set_back(log(1, WINDOW)));
}

#[test]
fn loom_a_reading_from_before_an_account_opened_gives_no_permit_back() {
    explore_with(2, || read_before_the_clock_is_set_back(Quota::token_bucket(1, 1, nanos(WINDOW))));
}
