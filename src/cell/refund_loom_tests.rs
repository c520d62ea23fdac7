//! Every interleaving of threads that reserve, give back, and claim, on the production code.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo test --release --lib loom_`

use loom::sync::Arc;

use crate::cell::kit::*;
use crate::cell::loom_kit::{One, bucket, explore, explore_with, log, spawned};
use crate::quota::Quota;

/// A clock that the test sets.
struct Shown(AtomicU64);

impl Clock for Shown {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl One {
    /// With so many permits granted at time zero, one by one, all of which may be given back.
    pub(super) fn with_charges(quotas: &[Quota], costs: &[u32]) -> (Self, Vec<Charge>) {
        let one = Self::of(quotas, 0, 0);
        let charged = costs.iter().map(|&cost| one.reserve(cost, 0, 0).unwrap().1).collect();
        (one, charged)
    }
}

#[test]
fn loom_refunded_permits_are_claimed_once() {
    for quotas in [log(2), bucket(2)] {
        explore(move || {
            let (one, charged) = One::with_charges(&quotas, &[1, 1]);
            let (one, first) = (Arc::new(one), charged[0]);
            let claims = spawned(&one, |one| one.acquire(1, 5) + one.acquire(1, 6));
            let back = spawned(&one, move |one| one.refund(first, 1, 5));
            assert_eq!(back.join().unwrap(), 1);
            let granted = claims.join().unwrap();
            assert_eq!(granted + one.remaining(6), 1);
            assert_eq!(one.remaining(9), 1 - granted);
        });
    }
}

#[test]
fn loom_long_two_refund_their_own_permits() {
    for quotas in [log(4), bucket(4)] {
        explore(move || {
            let (one, charged) = One::with_charges(&quotas, &[2, 1]);
            let (one, second) = (Arc::new(one), charged[1]);
            let first = charged[0];
            let threads =
                [spawned(&one, move |one| one.refund(first, 2, 5)), spawned(&one, move |one| one.refund(second, 1, 6))];
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [2, 1]);
            assert_eq!(one.remaining(6), 4);
        });
    }
}

#[test]
fn loom_expired_permits_are_not_refunded() {
    explore(|| {
        let (one, charged) = One::with_charges(&log(1), &[1]);
        let (one, first) = (Arc::new(one), charged[0]);
        // Until 10 it can be given back; then the claim may have taken its place.
        let claim = spawned(&one, |one| one.acquire(1, 10));
        one.refund(first, 1, 9);
        assert_eq!(claim.join().unwrap(), 1);
        assert_eq!([19, 20].map(|at| one.remaining(at)), [0, 1]);
    });
}

/// A ring that is replaced at 10 lacks the permit of 0, whose receipt a lagging clock shows at 9.
/// Another thread may open the cell on the new ring before the thread that replaced it continues.
#[test]
fn loom_permits_that_a_new_ring_lacks_are_not_refunded_by_a_clock_that_lags() {
    explore(|| {
        let one = One::of(&log(3), 0, 0);
        let [expired, _, other] = [0, 5, 7].map(|at| one.reserve(1, 0, at).unwrap().1);
        let one = Arc::new(one);
        let back = spawned(&one, move |one| one.refund(other, 1, 10));
        let given = one.refund(expired, 1, 9);
        assert_eq!(back.join().unwrap(), 1);
        // The permit of 5 counts, whether or not the one of 0 came back.
        assert_eq!([10, 14, 15].map(|at| one.remaining(at)), [2, 2, 3], "{given} given back");
    });
}

/// The same where the ring is replaced by one with a reservation: the permit of 10 took the place
/// of the expired one.
#[test]
fn loom_expired_permits_are_not_refunded_beside_a_reservation() {
    explore(|| {
        let one = One::of(&log(1), 0, 0);
        let (_, expired) = one.reserve(1, 0, 0).unwrap();
        assert_eq!(one.acquire(1, 10), 1);
        let one = Arc::new(one);
        let back = spawned(&one, move |one| one.refund(expired, 1, 9));
        let (delay, ahead) = one.reserve(1, 9, 12).unwrap();
        assert_eq!(back.join().unwrap(), 0);
        assert_eq!((delay, one.refund(ahead, 1, 13), one.acquire(1, 13), one.acquire(1, 20)), (8, 1, 0, 1));
    });
}

/// A thread stalls between its reading and the replacement of the ring. Meanwhile the timestamp
/// floor passes the end of a permit that was live at the reading.
#[test]
fn loom_a_cancellation_by_an_old_reading_postpones_no_permit() {
    explore(|| {
        let one = One::of(&log(1), 1, 0);
        let (_, ahead) = one.reserve(1, 10, 5).unwrap();
        let both = Arc::new((one, Shown(AtomicU64::new(5))));
        let other = Arc::clone(&both);
        let cancels = loom::thread::spawn(move || {
            let (one, clock) = &*other;
            one.cells.refund(one.seat().unwrap(), ahead, 1, clock)
        });
        let (one, clock) = &*both;
        clock.0.store(12, Ordering::SeqCst);
        one.cells.store.raise_timestamp_floor(time_of(12));
        // Given back, unless its time has come and gone: it is live until 20.
        assert_eq!(cancels.join().unwrap(), Some(1));
        assert_eq!(one.remaining(12), 1, "a permit that expired at 10 is live");
    });
}

/// Another thread reserves the place behind a claim, and so replaces its ring, before the claimant
/// has looked at its stamp.
#[test]
fn loom_a_reservation_behind_another_is_refunded() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let other = spawned(&one, |one| one.reserve(1, 10, 11).is_some());
        // Its stamp is 10 at the earliest, in every thread, as it replaced 0.
        let Some((_, charged)) = one.reserve(1, 0, 10) else { return };
        assert_eq!(one.refund(charged, 1, 11), 1);
        assert!(other.join().unwrap());
    });
}

/// The same, long after the permit before it has expired: the claimant knows the stamp that it has
/// published itself.
#[test]
fn loom_permits_published_by_their_claimant_are_refunded() {
    explore_with(2, || {
        let one = Arc::new(One::of(&log(1), 1, 0));
        let other = spawned(&one, |one| one.reserve(1, 10, 26).unwrap().0);
        let given = one.reserve(1, 0, 25).map(|(_, charged)| one.refund(charged, 1, 26));
        // Behind a stamp of 25; where the other thread has published it, that is 26.
        if other.join().unwrap() == 9 {
            assert_eq!(given, Some(1));
        }
    });
}

#[test]
fn loom_permits_postponed_by_a_helper_are_refunded() {
    for quotas in [log(1), bucket(1)] {
        explore(move || {
            let (one, _) = One::with_charges(&quotas, &[1]);
            let one = Arc::new(one);
            // May find the claim at 10 unpublished, and publish it at 13.
            let helper = spawned(&one, |one| one.remaining(13));
            let (delay, charged) = one.reserve(1, 0, 10).unwrap();
            helper.join().unwrap();
            assert_eq!((delay, one.refund(charged, 1, 14), one.remaining(14)), (0, 1, 1));
        });
    }
}

/// Clocks of two processors may differ, so a helper may publish a claim with a stamp before the
/// time by which it was made.
#[test]
fn loom_permits_published_by_a_lagging_helper_are_refunded() {
    explore(|| {
        let (one, _) = One::with_charges(&log(4), &[1, 1]);
        let one = Arc::new(one);
        let helper = spawned(&one, |one| one.remaining(3));
        let (_, charged) = one.reserve(1, 0, 5).unwrap();
        helper.join().unwrap();
        assert_eq!((one.acquire(1, 8), one.refund(charged, 1, 9)), (1, 1));
        // The one at 8 stays.
        assert_eq!([9, 10, 13, 17, 18].map(|at| one.remaining(at)), [1, 3, 3, 3, 4]);
    });
}

/// The same, and the helper goes on to a claim of its own: in place, or in a larger ring.
#[test]
fn loom_permits_published_by_a_lagging_claimant_are_refunded() {
    for (limit, before) in [(4, 2), (8, 3)] {
        explore(move || {
            let (one, _) = One::with_charges(&log(limit), &vec![1; before]);
            let one = Arc::new(one);
            let claimant = spawned(&one, |one| one.acquire(1, 3));
            let (_, charged) = one.reserve(1, 0, 5).unwrap();
            assert_eq!((claimant.join().unwrap(), one.refund(charged, 1, 9)), (1, 1));
            let used = u32::try_from(before).unwrap() + 1;
            assert_eq!([9, 16].map(|at| one.remaining(at)), [limit - used, limit]);
            // A ring that has grown hides which one it was: then an older one is taken for it.
            let left = one.remaining(10);
            assert!(left == limit - 1 || limit == 8 && left == limit - 2, "{left}");
            assert!((11..13).all(|at| one.remaining(at) == left));
        });
    }
}

/// A slot that was claimed again says nothing about its claim before.
#[test]
fn loom_permits_of_a_slot_claimed_again_are_not_refunded() {
    explore(|| {
        let (one, _) = One::with_charges(&log(2), &[1, 1]);
        let one = Arc::new(one);
        let others = spawned(&one, |one| {
            // Publishes the claim at 10, if it comes between claim and publication.
            let _ = one.remaining(10);
            one.acquire(2, 20)
        });
        let reserved = one.reserve(1, 0, 10);
        let granted = others.join().unwrap();
        // They may come first. Or they find the claim unpublished, choose its stamp, and are
        // denied.
        let Some((_, charged)) = reserved else { return };
        assert_eq!(one.refund(charged, 1, 20), if granted == 2 { 0 } else { 1 });
        assert_eq!([20, 29, 30].map(|at| one.remaining(at)), [2 - granted, 2 - granted, 2]);
    });
}

#[test]
fn loom_giving_back_while_the_ring_grows() {
    explore(|| {
        let (one, charged) = One::with_charges(&log(4), &[1]);
        let (one, first) = (Arc::new(one), charged[0]);
        let claims = spawned(&one, |one| one.acquire(2, 5));
        assert_eq!(one.refund(first, 1, 6), 1);
        assert_eq!(claims.join().unwrap(), 2);
        assert_eq!([6, 10].map(|at| one.remaining(at)), [2, 2]);
        assert_eq!((one.acquire(2, 7), one.acquire(1, 9)), (2, 0));
    });
}
