//! A limiter that goes on where another stopped: across a restart, a clock that starts anew, and a
//! process that was killed.
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    Absent, BuildError, Clock, HashTwice, JointLimiter, Limiter, MockClock, Quota, RestoreError, SipFingerprinter,
    Snapshot, SnapshotError, Status,
};

const SECOND: Duration = Duration::from_secs(1);

fn quotas() -> impl Strategy<Value = Quota> {
    prop_oneof![
        Just(Quota::new(1, SECOND)),
        Just(Quota::new(7, SECOND)),
        Just(Quota::new(100, 60 * SECOND)),
        Just(Quota::token_bucket(7, 3, SECOND)),
        Just(Quota::token_bucket(7, 3, SECOND).starting_with(2)),
        Just(Quota::leaky_bucket(5, 1, SECOND)),
        Just(Quota::leaky_queue(10, SECOND, SECOND)),
        Just(Quota::fixed_window(5, SECOND)),
    ]
}

fn limiter(quota: Quota, clock: &MockClock) -> Limiter<u32, MockClock> {
    Limiter::builder(quota).clock(clock.clone()).build().expect("a good quota")
}

/// All that a key is told, and when it is admitted again.
fn told(status: Status) -> (bool, u32, Option<Duration>, Duration) {
    (status.is_admitted(), status.remaining(), status.retry_after(), status.reset_after())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Both are told the same from then on, whatever the new clock shows.
    #[test]
    fn a_restored_limiter_answers_as_the_old_one_would(
        quota in quotas(),
        requests in prop::collection::vec((0_u32..12, 1_u32..4, 0_u64..400), 1..120),
        down in 0_u64..3000,
        origin in prop_oneof![Just(0_u64), 0..1_u64 << 50],
    ) {
        let (old_clock, new_clock) = (MockClock::new(), MockClock::new());
        old_clock.set(1 << 40);
        new_clock.set(origin);
        let old = limiter(quota, &old_clock);
        for (key, cost, pause) in requests {
            let _ = old.try_acquire_n(key, cost.min(quota.limit()));
            old_clock.advance(Duration::from_millis(pause));
        }
        let bytes = old.snapshot().to_bytes();
        let snapshot = Snapshot::from_bytes(&bytes).expect("just written");
        let down = Duration::from_millis(down);
        old_clock.advance(down);
        let new = Limiter::<u32>::builder(quota).clock(new_clock.clone()).restore_after(&snapshot, down);
        let new = new.expect("a snapshot of such a limiter");
        for step in [0, 1, 250, 1000, 20_000] {
            old_clock.advance(Duration::from_millis(step));
            new_clock.advance(Duration::from_millis(step));
            for key in 0..12 {
                prop_assert_eq!(told(new.peek(key)), told(old.peek(key)), "key {} after {}", key, step);
            }
            let (old, new) = (old.try_acquire_status(0), new.try_acquire_status(0));
            prop_assert_eq!(told(new), told(old));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where the new clock's steps end when the old one's would have, both are told the same.
    /// Elsewhere stamps are rounded up once more, but not past what can have been: no more is
    /// admitted than by the log, and the wait is a step longer at most.
    #[test]
    fn a_restored_quantised_log_admits_no_more(
        limit in 1_u32..9,
        (resolution, steps) in (1_u64..400, 1_u64..20),
        requests in prop::collection::vec((0_u32..4, 1_u32..4, 0_u64..400), 1..60),
        down in 0_u64..3000,
        origin in prop_oneof![Just(0_u64), 0..1_u64 << 50],
        fits: bool,
        lags in prop::option::of(0_u64..1000),
    ) {
        let nanos = Duration::from_nanos;
        let quota = Quota::quantised_log(limit, nanos(resolution * steps), nanos(resolution));
        let (old_clock, new_clock) = (MockClock::new(), MockClock::new());
        old_clock.set(1 << 40);
        let old = limiter(quota, &old_clock);
        let mut granted = Vec::new();
        for (key, cost, pause) in requests {
            let cost = cost.min(limit);
            if old.try_acquire_n(key, cost).expect("within the limit").is_admitted() {
                granted.push((key, old_clock.now(), cost));
            }
            old_clock.advance(nanos(pause));
        }
        let live = |key: u32, now: u64| -> u32 {
            let is_live = |&&(of, at, _): &&(u32, u64, u32)| of == key && now - at < resolution * steps;
            granted.iter().filter(is_live).map(|&(_, _, cost)| cost).sum()
        };
        old_clock.set(old_clock.now() - lags.unwrap_or(0));
        let snapshot = Snapshot::from_bytes(&old.snapshot().to_bytes()).expect("just written");
        old_clock.advance(nanos(down));
        let off = old_clock.now() % resolution;
        new_clock.set(if fits { origin.next_multiple_of(resolution) + off } else { origin });
        let new = Limiter::<u32>::builder(quota).clock(new_clock.clone()).restore_after(&snapshot, nanos(down));
        let new = new.expect("a snapshot of such a limiter");
        for step in [0, 1, resolution, 100, resolution * (steps - 1), resolution * 2] {
            old_clock.advance(nanos(step));
            new_clock.advance(nanos(step));
            for key in 0..4 {
                let (old, new) = (old.peek(key), new.peek(key));
                if fits && lags.is_none() {
                    prop_assert_eq!(told(new), told(old), "key {} after {}", key, step);
                } else if lags.is_none() {
                    prop_assert!(new.remaining() <= limit - live(key, old_clock.now()), "{:?}, and was {:?}", new, old);
                    prop_assert!(new.reset_after() <= old.reset_after() + nanos(resolution - 1));
                }
            }
        }
        new_clock.advance(quota.window());
        prop_assert!((0..4).all(|key| new.peek(key).remaining() == limit));
    }
}

#[test]
fn a_quantised_log_is_kept_by_a_clock_that_lags() {
    let nanos = Duration::from_nanos;
    let (quota, clock) = (Quota::quantised_log(1, nanos(20), nanos(10)), MockClock::new());
    let old = limiter(quota, &clock);
    for at in [100, 120] {
        clock.set(at);
        assert!(old.try_acquire(1).is_admitted());
    }
    // By this clock the first permit has not left the window.
    clock.set(119);
    let snapshot = Snapshot::from_bytes(&old.snapshot().to_bytes()).expect("just written");
    let new = Limiter::<u32>::builder(quota).clock(clock.clone()).restore_after(&snapshot, Duration::ZERO);
    let new = new.expect("a snapshot of such a limiter");
    clock.set(139);
    assert!(new.try_acquire(1).is_denied());
    clock.set(140);
    assert!(new.try_acquire(1).is_admitted());
}

#[test]
fn a_quantised_log_whose_limit_became_less_forgets_nothing_over_a_restart() {
    let quota = |limit| Quota::quantised_log(limit, 60 * SECOND, SECOND);
    for used in [[60, 0], [30, 30], [10, 50]] {
        let clock = MockClock::new();
        let old = limiter(quota(100), &clock);
        for cost in used {
            assert!(old.try_acquire_n(1, cost).expect("within the limit").is_admitted());
            clock.advance(2 * SECOND);
        }
        old.set_quotas(&[quota(50)]).expect("the same steps");
        let snapshot = Snapshot::from_bytes(&old.snapshot().to_bytes()).expect("just written");
        let new = Limiter::<u32>::builder(quota(50)).clock(clock.clone()).restore_after(&snapshot, Duration::ZERO);
        let new = new.expect("a snapshot of such a limiter");
        assert!(old.try_acquire(1).is_denied() && new.try_acquire(1).is_denied(), "{used:?}");
    }
}

#[test]
fn dimensions_are_restored_each_with_its_quotas() {
    let build = || {
        JointLimiter::<(u32, u32)>::builder()
            .dimension("user", [Quota::per_second(2), Quota::per_hour(3)])
            .dimension("endpoint", [Quota::token_bucket(5, 1, SECOND)])
            .clock(MockClock::new())
    };
    let old = build().build().unwrap();
    assert!(old.try_acquire_n((&1, &1), 2).unwrap().is_admitted());
    assert!(old.try_acquire_n((&2, &1), 2).unwrap().is_admitted());
    let snapshot = Snapshot::from_bytes(&old.snapshot().to_bytes()).unwrap();
    assert_eq!(snapshot.len(), 3);
    let new = build().restore_after(&snapshot, SECOND).unwrap();
    // Of the first user's hour one is left; of the endpoint's five, four were taken and one has
    // flowed back.
    assert!(new.try_acquire_n((1, Absent), 2).unwrap().is_denied());
    assert!(new.try_acquire_n((Absent, 1), 3).unwrap().is_denied());
    assert!(new.try_acquire((&1, &1)).unwrap().is_admitted());
    let fewer = JointLimiter::<(u32,)>::builder().dimension("user", [Quota::per_hour(3)]).restore(&snapshot);
    assert_eq!(fewer.err(), Some(RestoreError::OtherQuotas));
}

#[test]
fn the_numbers_of_a_log_may_change_and_history_is_kept() {
    let clock = MockClock::new();
    let old = limiter(Quota::new(5, 10 * SECOND), &clock);
    for _ in 0..5 {
        assert!(old.try_acquire(1).is_admitted());
        clock.advance(SECOND);
    }
    let snapshot = old.snapshot();
    let restored = |quota| {
        let new = Limiter::<u32>::builder(quota).clock(MockClock::new()).restore_after(&snapshot, Duration::ZERO);
        told(new.unwrap().peek(1))
    };
    // Permits of 5, 4, 3, 2 and 1 seconds ago.
    assert_eq!(restored(Quota::new(2, 10 * SECOND)), (false, 0, Some(8 * SECOND), 9 * SECOND));
    assert_eq!(restored(Quota::new(9, 10 * SECOND)), (true, 4, None, 9 * SECOND));
    assert_eq!(restored(Quota::new(5, 3 * SECOND)), (true, 3, None, 2 * SECOND));
}

#[test]
fn the_names_of_quotas_may_change_across_a_restart() {
    let bucket = Quota::token_bucket(5, 1, SECOND);
    for (before, after) in [(bucket, bucket.named("api")), (bucket.named("api"), bucket.named("login"))] {
        let old = limiter(before, &MockClock::new());
        assert!(old.try_acquire_n(1, 3).unwrap().is_admitted());
        let new = Limiter::<u32>::builder(after).clock(MockClock::new()).restore_after(&old.snapshot(), Duration::ZERO);
        assert_eq!(new.expect("the same quota").peek(1).remaining(), 2);
    }
}

#[test]
fn an_incomplete_snapshot_is_an_error() {
    let limiter = limiter(Quota::per_hour(3), &MockClock::new());
    for key in 0..3 {
        assert!(limiter.try_acquire_n(key, key + 1).unwrap().is_admitted());
    }
    let bytes = limiter.snapshot().to_bytes();
    let read = |bytes: &[u8]| Snapshot::from_bytes(bytes).map(|snapshot| snapshot.len());
    assert_eq!(read(&bytes), Ok(3));
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).expect_err("cut short");
        assert!(matches!(error, SnapshotError::Truncated { .. }) || length == 0, "{length}: {error}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(read(&damaged).is_err(), "byte {at}");
    }
    assert_eq!(read(&[bytes.as_slice(), &[0]].concat()), Err(SnapshotError::Corrupted));
    assert_eq!(read(b"something else"), Err(SnapshotError::NotASnapshot));
    let mut newer = bytes.clone();
    newer[8] = 3;
    assert_eq!(read(&newer), Err(SnapshotError::Newer { version: 3 }));
}

#[test]
fn a_snapshot_of_another_limiter_is_refused() {
    let snapshot = limiter(Quota::per_hour(3), &MockClock::new()).snapshot();
    let bucket = Limiter::<u32>::builder(Quota::token_bucket(3, 1, SECOND)).restore(&snapshot);
    assert_eq!(bucket.err(), Some(RestoreError::OtherQuotas));
    let hasher = HashTwice::new(std::hash::RandomState::new());
    let other_keys = Limiter::<u32>::builder(Quota::per_hour(3)).fingerprinter(hasher).restore(&snapshot);
    assert_eq!(other_keys.err(), Some(RestoreError::OtherFingerprints));
    let nothing = Limiter::<u32>::builder(Quota::per_hour(3)).key_cap(0).restore(&snapshot);
    assert_eq!(nothing.err(), Some(RestoreError::Build(BuildError::ZeroKeyCap)));

    let many = limiter(Quota::per_hour(3), &MockClock::new());
    (0..10).for_each(|key| assert!(many.try_acquire(key).is_admitted()));
    let few = Limiter::<u32>::builder(Quota::per_hour(3)).key_cap(4).restore(&many.snapshot());
    assert_eq!(few.err(), Some(RestoreError::TooManyKeys { keys: 10 }));
}

#[test]
fn each_hash_restores_its_own_snapshots_and_no_others() {
    let builder = || Limiter::<str>::builder(Quota::per_hour(3));
    let default = builder().build().expect("a usable quota");
    let sip = builder().fingerprinter(SipFingerprinter::new()).build().expect("a usable quota");
    for key in ["a", "a name that is too long to be taken for an integer"] {
        assert!(default.try_acquire(key).is_admitted() && sip.try_acquire(key).is_admitted());
        let by_default = builder().restore(&default.snapshot()).expect("of the same kind");
        assert_eq!(by_default.peek(key).remaining(), 2);
        let by_sip = builder().fingerprinter(SipFingerprinter::new()).restore(&sip.snapshot());
        assert_eq!(by_sip.expect("of the same kind").peek(key).remaining(), 2);
    }
    assert_eq!(builder().restore(&sip.snapshot()).err(), Some(RestoreError::OtherFingerprints));
    let other = builder().fingerprinter(SipFingerprinter::new()).restore(&default.snapshot());
    assert_eq!(other.err(), Some(RestoreError::OtherFingerprints));
}

/// Nobody waits for a snapshot, and each one holds what was granted before it, and no more than the
/// limit.
#[test]
fn snapshots_of_a_limiter_in_use_hold_all_earlier_permits() {
    const LIMIT: u32 = 64;
    let limiter = Limiter::<u32>::new(Quota::per_hour(LIMIT)).unwrap();
    assert!(limiter.try_acquire_n(7, 20).unwrap().is_admitted());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut granted = 20;
            while !done.load(Ordering::Relaxed) {
                granted += u32::from(limiter.try_acquire(7).is_admitted());
                for key in 100..400 {
                    let _ = limiter.try_acquire(key);
                }
            }
            granted
        });
        for _ in 0..50 {
            let before = LIMIT - limiter.peek(7).remaining();
            let restored = Limiter::<u32>::builder(Quota::per_hour(LIMIT)).restore(&limiter.snapshot()).unwrap();
            let kept = LIMIT - restored.peek(7).remaining();
            assert!((before..=LIMIT).contains(&kept), "{before} granted before, {kept} kept");
        }
        done.store(true, Ordering::Relaxed);
        assert!(traffic.join().unwrap() <= LIMIT);
    });
}

const CHILD: &str = "TOLLGATE_TEST_SAVES_TO";

/// The process that is killed: saves snapshots of one more key each time, for ever. Does nothing in
/// a run of all tests.
#[test]
fn the_process_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let load = Snapshot::load(&path).expect("a whole snapshot to begin with");
    let limiter = Limiter::<u32>::builder(Quota::per_day(1)).restore(&load).expect("of this very limiter");
    let keys = u32::try_from(load.len()).expect("few");
    for key in keys.. {
        assert!(limiter.try_acquire(key).is_admitted());
        limiter.snapshot().save(&path).expect("a folder of its own");
    }
}

fn start(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "snapshot::the_process_that_is_killed"]).env(CHILD, path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("this test, once more")
}

/// Killed at any point of writing: what is read is the old snapshot or the new one, whole.
#[test]
fn a_process_that_is_killed_leaves_a_whole_snapshot() {
    let folder = tempfile_folder();
    let path = folder.join("limiter.snapshot");
    limiter(Quota::per_day(1), &MockClock::new()).snapshot().save(&path).unwrap();
    let mut held = 0;
    for round in 0..40_u32 {
        let mut child = start(&path);
        let load = || Snapshot::load(&path).unwrap_or_else(|error| panic!("round {round}: {error}")).len();
        // Until it saves anything, and then a little further in each round: wherever that is, it is
        // no wrong point.
        while load() <= held {
            assert!(child.try_wait().expect("a child").is_none(), "the process ended by itself");
        }
        for _ in 0..round * 500 {
            std::hint::spin_loop();
        }
        child.kill().expect("a child that runs for ever");
        child.wait().expect("a child");
        let kept = load();
        assert!(kept > held, "{kept} keys, and {held} before");
        held = kept;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn tempfile_folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("snapshot-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn errors_of_files_begin_with_the_path() {
    let folder = folder_in_target();
    let missing = folder.join("missing");
    let error = Snapshot::load(&missing).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().starts_with(missing.to_str().unwrap()), "{error}");

    let damaged = folder.join("damaged");
    std::fs::write(&damaged, b"no snapshot").unwrap();
    let error = Snapshot::load(&damaged).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().starts_with(damaged.to_str().unwrap()), "{error}");
    let inner = error.get_ref().and_then(std::error::Error::source);
    assert!(inner.is_some_and(|inner| inner.is::<SnapshotError>()), "{error:?}");

    let nowhere = folder.join("no folder").join("file");
    let error = limiter(Quota::per_day(1), &MockClock::new()).snapshot().save(&nowhere).unwrap_err();
    assert!(error.to_string().starts_with(nowhere.to_str().unwrap()), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A new folder of this process, among the build's.
fn folder_in_target() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("snapshot-errors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
