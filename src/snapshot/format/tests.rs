use super::*;
use crate::snapshot::quotas::OwnQuota;
use crate::{Limiter, MockClock, Quota, RestoreError};
use proptest::prelude::*;

/// Contents with a head of the present version.
fn framed(contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((contents.len() as u64).to_le_bytes());
    bytes.extend(checksum(contents));
    bytes.extend(contents);
    bytes
}

fn written(quota: Quota) -> Vec<u8> {
    let limiter = Limiter::<u32>::builder(quota).clock(MockClock::new()).build().unwrap();
    for key in 0..5 {
        assert!(limiter.try_acquire_n(key, 1 + key % 3).unwrap().is_admitted());
    }
    limiter.snapshot().to_bytes()
}

fn restored(bytes: &[u8], quota: Quota) -> Result<(), RestoreError> {
    let Ok(snapshot) = Snapshot::from_bytes(bytes) else { return Ok(()) };
    let limiter = Limiter::<u32>::builder(quota).clock(MockClock::new()).key_cap(64).restore(&snapshot)?;
    for key in 0..8 {
        let status = limiter.try_acquire_status(key);
        assert!(status.remaining() < status.limit() || status.is_admitted());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Any contents with the right checksum give a limiter or a typed error.
    #[test]
    fn contents_that_were_made_up_break_nothing(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        cuts: bool,
        bucket: bool,
    ) {
        let quota = if bucket { Quota::token_bucket(3, 1, core::time::Duration::from_secs(1)) } else { Quota::per_hour(3) };
        let mut contents = written(quota).split_off(HEAD);
        for (at, byte) in changes {
            let at = at.index(contents.len());
            contents[at] = byte;
        }
        if cuts {
            contents.truncate(cut.index(contents.len()));
        }
        let _ = restored(&framed(&contents), quota);
    }
}

#[test]
fn a_version_that_there_never_was_is_an_error() {
    let mut bytes = written(Quota::per_hour(3));
    bytes[8] = 0;
    assert_eq!(Snapshot::from_bytes(&bytes).unwrap_err(), SnapshotError::Corrupted);
    bytes[8] = 2;
    assert_eq!(Snapshot::from_bytes(&bytes).unwrap_err(), SnapshotError::Newer { version: 2 });
}

#[test]
fn quotas_that_a_key_cannot_have_are_a_contradiction() {
    let second = core::time::Duration::from_secs(1);
    let quota = Quota::token_bucket(3, 1, second);
    let restored = |key: u64, quotas: &[OwnQuota]| {
        let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
        snapshot.own = vec![(key, quotas.to_vec())];
        let snapshot = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
        let builder = Limiter::<u32>::builder(quota).keys_with_quotas(4).clock(MockClock::new());
        builder.restore(&snapshot).map(drop)
    };
    let mut other = OwnQuota::of(&quota);
    assert_eq!(restored(16, &[other.clone()]), Ok(()));
    other.name = Some(String::new());
    let contradictory = [
        // A dimension that there is not.
        (17, vec![OwnQuota::of(&quota)]),
        (16, vec![]),
        (16, vec![OwnQuota::of(&quota); 2]),
        (16, vec![OwnQuota::of(&Quota::token_bucket(0, 1, second))]),
        (16, vec![OwnQuota::of(&Quota::leaky_bucket(3, 1, second))]),
        (16, vec![OwnQuota::of(&Quota::new(3, second))]),
        (16, vec![other]),
    ];
    for (at, (key, quotas)) in contradictory.into_iter().enumerate() {
        assert_eq!(restored(key, &quotas), Err(RestoreError::Contradictory), "{at}");
    }
}

#[test]
fn denials_that_no_penalty_can_have_counted_are_a_contradiction() {
    let quota = Quota::per_hour(3);
    let minute = core::time::Duration::from_secs(60);
    let stamps = crate::state::export::Export::Stamps(vec![(1, 1)]);
    let no_stamps = crate::state::export::Export::Stamps(Vec::new());
    let account = crate::state::export::Export::Account { at: 1, state: 1 };
    let too_large = crate::state::export::Export::Account { at: 1, state: 1 << 125 };
    for (dimension, key, export, is_possible) in [
        (0, 16, &stamps, true),
        (0, 17, &stamps, true),
        (0, 18, &stamps, false),
        (0, 16, &account, false),
        (0, 17, &account, true),
        (0, 17, &too_large, false),
        (0, 17, &no_stamps, false),
        (1, 16, &stamps, false),
    ] {
        let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
        snapshot.penalties = vec![(dimension, vec![(key, export.clone())])];
        let builder = Limiter::<u32>::builder(quota).penalty(crate::Penalty::new(3, minute, minute));
        let restored = builder.clock(MockClock::new()).restore(&snapshot).map(drop);
        let expected = if is_possible { Ok(()) } else { Err(RestoreError::Contradictory) };
        assert_eq!(restored, expected, "{dimension} {key}");
    }
}

/// A block without a number is the stamp of a log of one permit.
#[test]
fn a_block_that_is_written_as_a_stamp_is_the_first_of_its_key() {
    let second = core::time::Duration::from_secs(1);
    let penalty = crate::Penalty::new(1, second, 60 * second);
    let builder = || Limiter::<u32>::builder(Quota::per_second(1)).penalty(penalty).clock(MockClock::new());
    let live = builder().build().unwrap();
    assert!(live.try_acquire(7).is_admitted() && live.try_acquire(7).is_denied());
    let mut snapshot = live.snapshot();
    let [(0, blocks)] = &mut snapshot.penalties[..] else { panic!("of one dimension") };
    let [(_, block)] = &mut blocks[..] else { panic!("of one key") };
    *block = crate::state::export::Export::Stamps(vec![(5_000_000_000, 1)]);
    let snapshot = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    let restored = builder().restore_after(&snapshot, second).unwrap();
    let denial = restored.peek(7).decision().into_result().unwrap_err();
    assert_eq!((denial.block(), denial.retry_after()), (Some(1), 54 * second));
}

#[test]
fn a_key_with_more_stamps_than_a_log_holds_is_a_contradiction() {
    let quota = Quota::per_hour(3);
    let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
    snapshot.keys.truncate(1);
    snapshot.keys[0].1 = crate::state::export::Export::Stamps(vec![(0, 1); 2 * Quota::MAX_LIMIT as usize + 1]);
    assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
}

#[test]
fn a_key_with_more_than_its_plan_can_have_is_a_contradiction() {
    let quota = Quota::token_bucket(3, 1, core::time::Duration::from_secs(1));
    let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
    snapshot.keys[0].1 = crate::state::export::Export::Stamps(vec![(1, 1)]);
    assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
    snapshot.keys[0].1 = crate::state::export::Export::Account { at: 0, state: u128::MAX };
    assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
    snapshot.keys[0].0 = 21;
    assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
}

/// An exact log has a slot for each permit, and takes one for a stamp of several.
#[test]
fn a_stamp_of_several_permits_counts_as_so_many_or_is_a_contradiction() {
    let quota = Quota::per_hour(3);
    let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
    snapshot.keys.truncate(1);
    snapshot.keys[0].1 = crate::state::export::Export::Stamps(vec![(5, 2), (1, 1)]);
    let snapshot = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    match Limiter::<u32>::builder(quota).clock(MockClock::new()).restore(&snapshot) {
        Err(error) => assert_eq!(error, RestoreError::Contradictory),
        Ok(limiter) => assert!((0..5).any(|key| limiter.peek(key).remaining() == 0), "three permits are live"),
    }
}
