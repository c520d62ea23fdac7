//! Every interleaving of threads that claim while the quota changes, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use core::time::Duration;

use loom::sync::Arc;

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, explore, spawned};
use crate::quota::Quota;

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn log(limit: u32, window: u64) -> Quota {
    Quota::new(limit, nanos(window))
}

/// One permit every so many nanoseconds.
fn bucket(capacity: u32, every: u64) -> Quota {
    Quota::token_bucket(capacity, 1, nanos(every))
}

impl One {
    fn change(&self, quota: Quota, at: u64) {
        self.cells.versions(0).change(Scope::All, &[quota], || time_of(at)).unwrap();
    }

    fn change_own(&self, quota: Quota, at: u64) {
        self.cells.versions(0).change(Scope::Key(KEY), &[quota], || time_of(at)).unwrap();
    }

    /// Its key may have quotas of its own, and has been granted one permit at time zero.
    fn with_own(quota: Quota) -> Self {
        let cells = Cells::new([Versions::with_own(&[quota], 1)].into(), 4);
        let (id, incarnation) = cells.create(KEY, 1).unwrap();
        cells.grant(id, incarnation, &At(0));
        Self { cells, id, incarnation }
    }
}

#[test]
fn loom_a_log_gets_a_smaller_limit_while_it_is_claimed() {
    explore(|| {
        let one = Arc::new(One::of(&[log(3, 10)], 1, 0));
        let change = spawned(&one, |one| one.change(log(1, 10), 5));
        let claims = spawned(&one, |one| one.acquire(1, 5) + one.acquire(1, 6));
        let granted = claims.join().unwrap();
        change.join().unwrap();
        assert_eq!(one.acquire(1, 9), 0);
        // All of it counts until it has left its window.
        let until = if granted == 2 { 16 } else { 10 + 5 * u64::from(granted) };
        assert_eq!([until - 1, until].map(|at| one.acquire(1, at)), [0, 1], "{granted} granted");
    });
}

/// A helper does not know the version of a claim, and postpones it only as far as every version
/// would.
#[test]
fn loom_a_log_is_published_by_a_helper_with_a_tighter_quota() {
    for (limit, window) in [(1, 10), (2, 40)] {
        explore(move || {
            let one = One::of(&[log(2, 10)], 1, 0);
            // The ring is as long as the limit now, and one of the two has expired.
            assert_eq!([5, 6].map(|at| one.acquire(1, at)), [1, 0]);
            let one = Arc::new(one);
            let claim = spawned(&one, |one| one.acquire(1, 11));
            let change = spawned(&one, move |one| {
                one.change(log(limit, window), 9);
                one.remaining(13);
            });
            let granted = claim.join().unwrap();
            change.join().unwrap();
            // Granted by the first quota, at 13 at the latest. The second denies it.
            let until = if granted == 1 { 13 + window } else { 5 + window };
            assert_eq!((one.acquire(1, 12), one.remaining(until)), (0, limit), "{granted} granted");
        });
    }
}

/// The same, for a claim that only the second quota admits.
#[test]
fn loom_a_log_is_published_by_a_helper_with_a_looser_quota() {
    explore(|| {
        let one = One::of(&[log(2, 40)], 1, 0);
        assert_eq!(one.acquire(1, 5), 1);
        let one = Arc::new(one);
        let helper = spawned(&one, |one| one.remaining(13));
        one.change(log(2, 10), 9);
        assert_eq!(one.acquire(1, 11), 1);
        helper.join().unwrap();
        assert_eq!([13, 15, 23].map(|at| one.remaining(at)), [0, 1, 2]);
    });
}

/// Stamps that had left their window before the change do not count again. Permits granted under
/// the new version do: they are stamped at the change or later, by any clock.
#[test]
fn loom_a_log_is_claimed_as_of_the_change_by_a_clock_that_lags() {
    for is_fast in [true, false] {
        explore(move || {
            let one = Arc::new(One::of(&[log(1, 10)], 1, 0));
            let lagging = spawned(&one, move |one| match is_fast {
                true => one.acquire(1, 3),
                false => u32::from(one.ask(Ask::Acquire, 1, 3).unwrap().is_admitted()),
            });
            one.change(log(1, 10), 20);
            let granted = one.acquire(1, 21);
            assert_eq!(granted + lagging.join().unwrap(), 1);
            assert_eq!([29, 31].map(|at| one.remaining(at)), [0, 1]);
        });
    }
}

/// The same for a helper that publishes a claim.
#[test]
fn loom_a_log_is_published_as_of_the_change_by_a_clock_that_lags() {
    explore(|| {
        let one = One::of(&[log(1, 10)], 1, 0);
        one.change(log(1, 10), 20);
        let one = Arc::new(one);
        let helper = spawned(&one, |one| one.remaining(3));
        assert_eq!(one.acquire(1, 21), 1);
        helper.join().unwrap();
        assert_eq!([22, 29, 31].map(|at| one.remaining(at)), [0, 0, 1]);
    });
}

#[test]
fn loom_a_bucket_that_changes_keeps_its_charges() {
    explore(|| {
        let one = Arc::new(One::of(&[bucket(2, 10)], 1, 0));
        let change = spawned(&one, |one| one.change(bucket(4, 20), 5));
        let claims = spawned(&one, |one| one.acquire(1, 5) + one.acquire(1, 5));
        let granted = claims.join().unwrap();
        change.join().unwrap();
        let more = one.acquire(2 - granted, 5);
        assert_eq!(granted + more, 2);
        // Half a permit has come back by 5, so three are missing; the next takes twenty.
        assert_eq!([5, 24, 25].map(|at| one.remaining(at)), [1, 1, 2]);
    });
}

#[test]
fn loom_a_bucket_is_converted_once() {
    explore(|| {
        let one = Arc::new(One::of(&[bucket(2, 10)], 2, 0));
        one.change(bucket(4, 20), 5);
        let other = spawned(&one, |one| one.acquire(1, 6));
        let mine = spawned(&one, |one| one.acquire(1, 7));
        assert_eq!(other.join().unwrap() + mine.join().unwrap(), 2);
        assert_eq!([7, 24, 25, 45].map(|at| one.remaining(at)), [0, 0, 1, 2]);
    });
}

#[test]
fn loom_a_helper_converts_it_from_when_the_quota_changed() {
    explore(|| {
        let one = Arc::new(One::of(&[bucket(1, 10)], 1, 0));
        one.change(bucket(2, 20), 5);
        // Finds the account unpublished, by a clock that is behind the change, or ahead of the
        // claim.
        let helpers = spawned(&one, |one| (one.remaining(3), one.remaining(19)));
        assert_eq!(one.acquire(1, 9), 1);
        helpers.join().unwrap();
        assert_eq!([9, 24, 25].map(|at| one.remaining(at)), [0, 0, 1]);
    });
}

#[test]
fn loom_an_account_that_is_over_opens_under_one_of_the_quotas() {
    for cost in [1, 2] {
        explore(move || {
            let one = Arc::new(One::of(&[bucket(2, 10)], 2, 0));
            let change = spawned(&one, |one| {
                one.change(bucket(3, 10), 25);
                // May find the account closed or opened by the quota before, and not yet published.
                one.remaining(26)
            });
            let claims = spawned(&one, move |one| one.acquire(cost, 26));
            assert_eq!(claims.join().unwrap(), cost);
            change.join().unwrap();
            // A change of an account that opened in the meantime loses almost one permit.
            assert_eq!([26, 35, 37].map(|at| one.remaining(at)), [3 - cost, 3 - cost, 4 - cost]);
        });
    }
}

/// A helper computes the end of an account under the version that it was written under, not under
/// the next.
#[test]
fn loom_an_account_is_over_by_the_quota_that_it_was_written_under() {
    explore(|| {
        let one = Arc::new(One::of(&[bucket(1, 10)], 1, 0));
        let claims = spawned(&one, |one| one.acquire(1, 11));
        one.change(bucket(1, 100), 12);
        for at in [3, 4] {
            one.remaining(at);
        }
        assert_eq!(claims.join().unwrap(), 1);
        // Whichever of the two it opened by, it goes on from when the second began.
        assert_eq!([111, 112].map(|at| one.remaining(at)), [0, 1]);
    });
}

/// An account opens no earlier than its version began, even if a helper's clock lags. Otherwise it
/// would be taken for one of the version before, which was over by then.
#[test]
fn loom_an_account_opens_no_earlier_than_its_quota_began() {
    for permits in [1, 2] {
        explore(move || {
            let full = 10 * u64::from(permits);
            let one = Arc::new(One::of(&[bucket(permits, 10)], permits, 0));
            one.change(bucket(permits, 100), full + 15);
            let helps = spawned(&one, |one| [3, 4].map(|at| one.remaining(at)));
            assert_eq!(one.acquire(permits, full + 16), permits);
            helps.join().unwrap();
            assert_eq!([full + 114, full + 116].map(|at| one.remaining(at)), [0, 1]);
        });
    }
}

#[test]
fn loom_two_changes_are_one_after_the_other() {
    explore(|| {
        let one = Arc::new(One::of(&[log(1, 10)], 1, 0));
        let other = spawned(&one, |one| one.change(log(2, 10), 5));
        let mine = spawned(&one, |one| {
            one.change(log(3, 10), 5);
            one.remaining(5)
        });
        let left = mine.join().unwrap();
        other.join().unwrap();
        let version = one.cells.versions(0).current();
        assert_eq!((version.number, one.remaining(5) + 1), (2, version.most));
        assert!(left == 1 || left == 2, "one of the changes has been heard");
    });
}

#[test]
fn loom_a_window_that_goes_on_counts_its_grants() {
    explore(|| {
        let window = |limit, window| Quota::fixed_window(limit, nanos(window));
        let one = Arc::new(One::of(&[window(3, 10)], 1, 0));
        let change = spawned(&one, move |one| one.change(window(2, 20), 5));
        let claims = spawned(&one, |one| one.acquire(1, 5) + one.acquire(1, 6));
        let granted = claims.join().unwrap();
        change.join().unwrap();
        assert!(granted == 1 || granted == 2, "{granted}");
        assert_eq!(one.acquire(1, 9), 0);
        assert_eq!([19, 20].map(|at| one.remaining(at)), [0, 2]);
    });
}

/// An account that is written under one version is read under the next, which is the key's own;
/// `change` makes the first.
fn an_account_is_read_by_the_next(change: fn(&One, Quota, u64)) {
    explore(move || {
        let one = One::with_own(bucket(2, 10));
        // Loom does not see the orderings inside `OnceBox`.
        (0..4).for_each(|_| change(&one, bucket(2, 10), 0));
        let one = Arc::new(one);
        let first = spawned(&one, move |one| {
            change(one, bucket(4, 1000), 5);
            one.acquire(3, 99)
        });
        let next = spawned(&one, |one| one.change_own(bucket(4, 1000), 200));
        assert_eq!(first.join().unwrap(), 3);
        next.join().unwrap();
        let left = one.remaining(201);
        assert!(left <= 1, "{left}");
    });
}

#[test]
fn loom_a_key_gets_a_quota_of_its_own_while_that_of_all_changes() {
    an_account_is_read_by_the_next(One::change);
}

#[test]
fn loom_a_key_gets_two_quotas_of_its_own_at_once() {
    an_account_is_read_by_the_next(One::change_own);
}

/// A thread that stalls in a change blocks other changes only.
#[test]
fn loom_no_decision_waits_for_a_change() {
    explore(|| {
        let one = Arc::new(One::of(&[log(2, 10)], 1, 0));
        let turn = one.cells.versions(0).changes.lock().unwrap();
        let claims = [5, 6].map(|at| spawned(&one, move |one| one.acquire(1, at)));
        assert_eq!(claims.map(|claim| claim.join().unwrap()).iter().sum::<u32>(), 1);
        drop(turn);
    });
}
