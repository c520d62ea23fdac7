//! The bytes of a snapshot: a head that says what it is, how long and with what checksum, and the contents.
//!
//! ```text
//! "tollgate" | version: u32 | length of the contents: u64 | checksum of the contents: 128 bits | contents (postcard)
//! ```
//!
//! Numbers are little-endian. The checksum is SipHash-1-3 with a 128-bit result and no key: against accidents, not against forgery.

use core::fmt;

use siphasher::sip128::SipHasher13;

use super::Snapshot;

const MAGIC: &[u8; 8] = b"tollgate";
const VERSION: u32 = 1;
const HEAD: usize = 8 + 4 + 8 + 16;

/// Why bytes are not a snapshot that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// They do not begin as a snapshot does.
    NotASnapshot,
    /// They were written by a later version.
    Newer {
        /// The version of the format that they are in.
        version: u32,
    },
    /// There are fewer of them than they say.
    Truncated {
        /// How many there should be.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// They are not what was written, or there are more of them.
    Corrupted,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASnapshot => f.write_str("this is not a snapshot of a limiter"),
            Self::Newer { version } => {
                write!(
                    f,
                    "the snapshot is of version {version}, and {VERSION} is the latest that is known: update tollgate"
                )
            }
            Self::Truncated { expected, found } => {
                write!(f, "the snapshot is cut short: {found} of {expected} bytes; use an older one that is whole")
            }
            Self::Corrupted => f.write_str("the snapshot is damaged: use an older one that is whole"),
        }
    }
}

impl core::error::Error for SnapshotError {}

impl Snapshot {
    /// The snapshot as bytes, for [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        // What fails when it is written is the memory.
        let contents = postcard::to_allocvec(self).unwrap_or_default();
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend(checksum(&contents));
        bytes.extend(contents);
        bytes
    }

    /// The snapshot that was written as these bytes.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] when they are no snapshot, or one of a later version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let cut_short =
            |expected: usize| SnapshotError::Truncated { expected: expected as u64, found: bytes.len() as u64 };
        let start = &bytes[..bytes.len().min(MAGIC.len())];
        if *start != MAGIC[..start.len()] || start.is_empty() {
            return Err(SnapshotError::NotASnapshot);
        }
        let (head, contents) = bytes.split_at_checked(HEAD).ok_or_else(|| cut_short(HEAD))?;
        let version = u32::from_le_bytes(part(head, 8));
        if version != VERSION {
            return Err(if version > VERSION { SnapshotError::Newer { version } } else { SnapshotError::Corrupted });
        }
        let length = u64::from_le_bytes(part(head, 12));
        let found = contents.len() as u64;
        if found < length {
            let expected = length.saturating_add(HEAD as u64);
            return Err(SnapshotError::Truncated { expected, found: bytes.len() as u64 });
        }
        if found > length || checksum(contents) != part(head, 20) {
            return Err(SnapshotError::Corrupted);
        }
        postcard::from_bytes(contents).map_err(|_| SnapshotError::Corrupted)
    }
}

/// The `N` bytes at that place of a head that is long enough.
fn part<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    head[at..].first_chunk().copied().unwrap_or([0; N])
}

fn checksum(contents: &[u8]) -> [u8; 16] {
    SipHasher13::new().hash(contents).as_bytes()
}
