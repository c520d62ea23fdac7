//! Every interleaving of threads that reserve and refuse, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::sync::Arc;

use crate::cell::kit::*;
use crate::cell::loom_kit::{At, KEY, One, bucket, explore, explore_with, log, spawned};

#[test]
fn loom_an_account_that_is_given_all_of_it_back_opens_anew() {
    explore(|| {
        let (one, charged) = One::with_charges(&bucket(2), &[2]);
        let (one, first) = (Arc::new(one), charged[0]);
        let claims = spawned(&one, |one| one.acquire(2, 5));
        let back = spawned(&one, move |one| one.refund(first, 2, 4));
        assert_eq!(back.join().unwrap(), 2);
        let granted = claims.join().unwrap();
        assert_eq!(one.remaining(5), 2 - granted);
        // One flows in ten nanoseconds after the account opened, which was at 5.
        assert_eq!([14, 15].map(|at| one.remaining(at)), if granted == 2 { [0, 1] } else { [2, 2] });
    });
}

#[test]
fn loom_an_account_that_is_over_is_given_nothing_back() {
    for cost in [1, 2] {
        explore(move || {
            let (one, charged) = One::with_charges(&bucket(2), &[1]);
            let (one, first) = (Arc::new(one), charged[0]);
            // The account is over at 10, and another opens.
            let back = spawned(&one, move |one| one.refund(first, 1, 9));
            let left = 2 - cost;
            assert_eq!((one.acquire(cost, 10), one.remaining(10)), (cost, left));
            let given = back.join().unwrap();
            assert_eq!([10, 19, 20].map(|at| one.remaining(at)), [left, left, left + 1], "{given} given back");
        });
    }
}

#[test]
fn loom_a_place_ahead_is_reserved_once() {
    explore(|| {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let other = spawned(&one, |one| one.reserve(1, 9, 4).map(|(delay, _)| delay));
        let mine = one.reserve(1, 9, 5).map(|(delay, _)| delay);
        let both = (mine, other.join().unwrap());
        assert!(both == (Some(5), None) || both == (None, Some(6)), "{both:?}");
        assert_eq!([10, 19, 20].map(|at| one.acquire(1, at)), [0, 0, 1]);
    });
}

#[test]
fn loom_two_places_ahead_are_one_behind_the_other() {
    explore(|| {
        let one = Arc::new(One::of(&log(2), 1, 0));
        assert_eq!(one.acquire(1, 4), 1);
        let other = spawned(&one, |one| one.reserve(1, 10, 5).map(|(delay, _)| delay));
        let mine = one.reserve(1, 10, 5).map(|(delay, _)| delay);
        let both = (mine, other.join().unwrap());
        assert!(both == (Some(5), Some(9)) || both == (Some(9), Some(5)), "{both:?}");
        assert_eq!([10, 14, 19].map(|at| one.acquire(1, at)), [0, 0, 0]);
        assert_eq!([20, 24].map(|at| one.acquire(1, at)), [1, 1]);
    });
}

#[test]
fn loom_no_claim_overtakes_a_reservation() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(2), 2, 0));
        // Both fit at 10, or the reservation and one of the claims; never before.
        let claims = spawned(&one, |one| [one.acquire(1, 9), one.acquire(1, 10), one.acquire(1, 11)]);
        let ahead = one.reserve(1, 9, 5);
        let [at_nine, at_ten, at_eleven] = claims.join().unwrap();
        assert_eq!(at_nine, 0);
        assert_eq!(u32::from(ahead.is_some()) + at_ten + at_eleven, 2, "{ahead:?}");
        assert_eq!(one.acquire(1, 19), 0);
    });
}

#[test]
fn loom_a_reservation_is_cancelled_or_has_come() {
    explore(|| {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let (delay, ahead) = one.reserve(1, 9, 5).unwrap();
        let claim = spawned(&one, |one| one.acquire(1, 10));
        assert_eq!((delay, one.refund(ahead, 1, 7)), (5, 1));
        let granted = claim.join().unwrap();
        assert_eq!(granted + one.acquire(1, 10), 1);
        assert_eq!([19, 20].map(|at| one.acquire(1, at)), [0, 1]);
    });
}

#[test]
fn loom_permits_displaced_by_a_cancelled_reservation_are_still_there() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(2), 2, 0));
        let other = spawned(&one, |one| {
            let (_, ahead) = one.reserve(2, 9, 5).unwrap();
            one.refund(ahead, 2, 6)
        });
        let claims = spawned(&one, |one| one.acquire(1, 9));
        assert_eq!((claims.join().unwrap(), other.join().unwrap()), (0, 2));
        assert_eq!([9, 10].map(|at| one.remaining(at)), [0, 2]);
    });
}

#[test]
fn loom_a_key_with_a_reservation_is_forgotten() {
    explore(|| {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let other = spawned(&one, |one| one.reserve(1, 9, 5).is_some());
        assert!(one.cells.forget(one.id, one.incarnation, &At(6)));
        other.join().unwrap();
        assert!(one.seat().is_none());
        assert_eq!(one.cells.free(one.id, one.incarnation, time_of(6), &At(6)), Freed::Gone);
        // No other key's permits are postponed for it.
        let timestamp_floor = one.cells.store.timestamp_floor();
        assert!(timestamp_floor <= time_of(6), "{} ahead", timestamp_floor - time_of(6));
        let (id, incarnation) = one.cells.create(KEY, 1).unwrap();
        one.cells.grant(id, incarnation, &At(7));
        let next = One { id, incarnation, ..Arc::try_unwrap(one).ok().unwrap() };
        assert_eq!([16, 17].map(|at| next.remaining(at)), [0, 1]);
    });
}

#[test]
fn loom_a_bucket_reserves_ahead_once() {
    explore(|| {
        let one = Arc::new(One::of(&bucket(1), 1, 0));
        let other = spawned(&one, |one| one.reserve(1, 9, 4).map(|(delay, _)| delay));
        let mine = spawned(&one, |one| one.reserve(1, 9, 5)).join().unwrap();
        let both = (mine.map(|(delay, _)| delay), other.join().unwrap());
        assert!(both == (Some(5), None) || both == (None, Some(6)), "{both:?}");
        assert_eq!([10, 19].map(|at| one.acquire(1, at)), [0, 0]);
        if let Some((_, ahead)) = mine {
            assert_eq!((one.refund(ahead, 1, 6), one.acquire(1, 9), one.acquire(1, 10)), (1, 0, 1));
        }
    });
}

#[test]
fn loom_a_refused_request_counts() {
    explore(|| {
        let one = Arc::new(One::of(&[log(1)[0].counting_refused()], 1, 0));
        let refused = spawned(&one, |one| one.acquire(1, 9));
        let claim = spawned(&one, |one| one.acquire(1, 10));
        let (refused, granted) = (refused.join().unwrap(), claim.join().unwrap());
        assert_eq!(refused, 0);
        // Granted or not, the newest request came at 10.
        assert_eq!([19, 20].map(|at| one.remaining(at)), [0, 1], "{granted}");
    });
}

#[test]
fn loom_two_refused_requests_count_both() {
    explore_with(2, || {
        let one = Arc::new(One::of(&[log(2)[0].counting_refused()], 2, 0));
        let threads = [5, 6].map(|at| spawned(&one, move |one| one.acquire(1, at)));
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [0, 0]);
        assert_eq!([14, 16].map(|at| one.remaining(at)), [0, 2]);
    });
}
