//! What each feature promises, case by case.

mod a_clock_that_stalls;
mod another_phase;
mod at_the_cap;
mod auto_traits;
mod bad_input;
#[cfg(feature = "calendar")]
mod calendar;
mod changing;
mod equal_quotas;
mod for_now;
mod forgotten;
mod hanging_up;
mod hints;
mod in_flight;
mod keys;
mod many_at_once;
mod observed;
mod old_wrongs;
mod reservations;
#[cfg(feature = "snapshot")]
mod restored;
#[cfg(feature = "snapshot")]
mod restored_windows;
#[cfg(feature = "serde")]
mod serde;
mod settled;
mod sliding_counter;
#[cfg(feature = "snapshot")]
mod snapshot;
mod stalled_meanwhile;
mod tiers;
mod warm_up;
mod within_the_window;
