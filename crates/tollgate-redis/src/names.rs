//! The names of keys on the server: a prefix, a version, and a keyed hash of the caller's key.

use core::fmt;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::digest::KeyDigest;
use crate::error::BuildError;

/// The version of the layout of values. Another layout has another number, and other keys.
const VERSION: &str = "2";

/// The secret by which keys are hashed: all nodes that share limits have the same.
///
/// Without it nobody can tell which keys a server has seen, nor choose keys that collide. `Debug`
/// does not show it.
///
/// ```
/// use tollgate_redis::Secret;
///
/// let secret = Secret::new("a long text from your configuration")?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert!(Secret::new("short").is_err());
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    low: u64,
    high: u64,
}

impl Secret {
    /// The fewest bytes of a secret.
    const SHORTEST: usize = 16;

    /// The secret made of these bytes, at least 16. They should come from a random generator.
    ///
    /// # Errors
    ///
    /// [`BuildError::ShortSecret`] for fewer bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, BuildError> {
        let bytes = bytes.as_ref();
        if bytes.len() < Self::SHORTEST {
            return Err(BuildError::ShortSecret { bytes: bytes.len(), least: Self::SHORTEST });
        }
        let hash = SipHasher13::new_with_keys(0, 0).hash(bytes);
        Ok(Self { low: hash.h1, high: hash.h2 })
    }

    /// The digest of a key in a dimension of a limiter, or in a tier of it. Parts have their lengths before them, so no
    /// two sets of parts are hashed alike.
    pub(crate) fn digest<const PARTS: usize>(&self, parts: [&[u8]; PARTS]) -> KeyDigest {
        let mut hasher = SipHasher13::new_with_keys(self.low, self.high);
        for part in parts {
            core::hash::Hasher::write(&mut hasher, &(part.len() as u64).to_le_bytes());
            core::hash::Hasher::write(&mut hasher, part);
        }
        KeyDigest(hasher.finish128().as_u128())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What the names of all keys with this prefix begin with.
pub(crate) fn beginning(prefix: &str) -> String {
    format!("{prefix}:{VERSION}:")
}

/// The names of the keys of one dimension: all but the digest.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    before: String,
    after: &'static str,
}

impl Names {
    /// `kind` names the layout of the value, and `tag` is what all dimensions of a limiter have in
    /// common in a cluster. Without it each key is a hash tag of its own.
    pub(crate) fn new(prefix: &str, kind: &str, tag: Option<&str>) -> Self {
        match tag {
            None => Self { before: format!("{}{kind}:{{", beginning(prefix)), after: "}" },
            Some(tag) => Self { before: format!("{}{kind}:{{{tag}}}:", beginning(prefix)), after: "" },
        }
    }

    pub(crate) fn name(&self, digest: KeyDigest) -> String {
        format!("{}{digest}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_run_together() {
        let secret = Secret::new([7; 16]).unwrap();
        assert_ne!(secret.digest([b"ab", b"c", b""]), secret.digest([b"a", b"bc", b""]));
        assert_ne!(secret.digest([b"a", b"b", b""]), secret.digest([b"b", b"a", b""]));
        assert_ne!(secret.digest([b"a", b"b", b""]), secret.digest([b"a", b"b", b"", b""]));
    }

    /// Nodes of different versions share keys, so the hash of a version never changes.
    #[test]
    fn the_hash_is_the_same_on_every_node() {
        let secret = Secret::new([7; 16]).unwrap();
        let names = Names::new("tollgate", "L", None);
        let name = names.name(secret.digest([b"login", b"user", b"alice"]));
        assert_eq!(name, "tollgate:2:L:{9c043093198c6107423fec5eef013d22}");
        let names = Names::new("tollgate", "L", Some("eu"));
        assert_eq!(names.name(KeyDigest(10)), "tollgate:2:L:{eu}:0000000000000000000000000000000a");
    }
}
