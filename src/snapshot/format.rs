//! The bytes of a snapshot: a head with the format, the length and the checksum, then the contents.
//!
//! ```text
//! "tollgate" | version: u32 | length of the contents: u64 | checksum of the contents: 128 bits | contents (postcard)
//! ```
//!
//! Numbers are little-endian. The checksum is SipHash-1-3 with a 128-bit result and no key. It
//! finds accidents; it does not prevent forgery.

use siphasher::sip128::SipHasher13;

use super::contents::Snapshot;
use crate::texts::texts;

const MAGIC: &[u8; 8] = b"tollgate";
const VERSION: u32 = 1;
const HEAD: usize = 8 + 4 + 8 + 16;

/// Why bytes cannot be read as a snapshot.
///
/// ```
/// use tollgate::{Limiter, Quota, Snapshot, SnapshotError};
///
/// assert_eq!(Snapshot::from_bytes(b"{}").unwrap_err(), SnapshotError::NotASnapshot);
///
/// let mut bytes = Limiter::<String>::new(Quota::per_hour(5))?.snapshot().to_bytes();
/// bytes.pop();
/// let error = Snapshot::from_bytes(&bytes).unwrap_err();
/// assert!(matches!(error, SnapshotError::Truncated { .. }));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes do not begin like a snapshot.
    NotASnapshot,
    /// A later version of tollgate wrote the snapshot.
    Newer {
        /// The version of its format.
        version: u32,
    },
    /// The end of the snapshot is missing.
    Truncated {
        /// The bytes of the whole snapshot.
        expected: u64,
        /// The bytes that were found.
        found: u64,
    },
    /// The bytes are not those that were written, or more bytes follow them.
    Corrupted,
}

texts! { SnapshotError {
    NotASnapshot => "this is not a snapshot of a limiter";
    Newer { version } => "the snapshot is of version {version}, and {VERSION} is the latest that is known: update \
        tollgate";
    Truncated { expected, found } => "the snapshot is cut short: {found} of {expected} bytes; use an older one that \
        is whole";
    Corrupted => "the snapshot is damaged: use an older one that is whole";
} }

impl core::error::Error for SnapshotError {}

impl Snapshot {
    /// The snapshot as bytes, for [`from_bytes`](Self::from_bytes). [`save`](Self::save) writes a
    /// file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        // Only an allocation can fail here.
        let contents = postcard::to_allocvec(self).unwrap_or_default();
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend(checksum(&contents));
        bytes.extend(contents);
        bytes
    }

    /// Reads a snapshot from the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] when the bytes are no snapshot, or one that is damaged, cut short, or
    /// written by a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let cut_short = |expected: u64| SnapshotError::Truncated { expected, found: bytes.len() as u64 };
        let start = &bytes[..bytes.len().min(MAGIC.len())];
        if *start != MAGIC[..start.len()] || start.is_empty() {
            return Err(SnapshotError::NotASnapshot);
        }
        let (head, contents) = bytes.split_at_checked(HEAD).ok_or_else(|| cut_short(HEAD as u64))?;
        let version = u32::from_le_bytes(part(head, 8));
        if version > VERSION {
            return Err(SnapshotError::Newer { version });
        }
        let length = u64::from_le_bytes(part(head, 12));
        let found = contents.len() as u64;
        if found < length {
            return Err(cut_short(length.saturating_add(HEAD as u64)));
        }
        if found > length || checksum(contents) != part(head, 20) {
            return Err(SnapshotError::Corrupted);
        }
        match postcard::take_from_bytes(contents) {
            Ok((snapshot, [])) if version > 0 => Ok(snapshot),
            _ => Err(SnapshotError::Corrupted),
        }
    }
}

/// The `N` bytes at that place of a head that is long enough.
fn part<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    head[at..].first_chunk().copied().unwrap_or([0; N])
}

fn checksum(contents: &[u8]) -> [u8; 16] {
    SipHasher13::new().hash(contents).as_bytes()
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
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
        let stamps = crate::state::export::Export::Stamps(vec![1]);
        let account = crate::state::export::Export::Account { at: 1, state: 1 };
        for (dimension, key, export, is_possible) in [
            (0, 16, &stamps, true),
            (0, 17, &stamps, true),
            (0, 18, &stamps, false),
            (0, 16, &account, false),
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

    #[test]
    fn a_key_with_more_stamps_than_a_log_holds_is_a_contradiction() {
        let quota = Quota::per_hour(3);
        let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
        snapshot.keys.truncate(1);
        snapshot.keys[0].1 = crate::state::export::Export::Stamps(vec![0; 2 * Quota::MAX_LIMIT as usize + 1]);
        assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
    }

    #[test]
    fn a_key_with_more_than_its_plan_can_have_is_a_contradiction() {
        let quota = Quota::token_bucket(3, 1, core::time::Duration::from_secs(1));
        let mut snapshot = Snapshot::from_bytes(&written(quota)).unwrap();
        snapshot.keys[0].1 = crate::state::export::Export::Stamps(vec![1]);
        assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
        snapshot.keys[0].1 = crate::state::export::Export::Account { at: 0, state: u128::MAX };
        assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
        snapshot.keys[0].0 = 21;
        assert_eq!(restored(&snapshot.to_bytes(), quota), Err(RestoreError::Contradictory));
    }
}
