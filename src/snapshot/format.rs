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
mod tests;
