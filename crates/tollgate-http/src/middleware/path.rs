//! Comparison of paths in a normal form.

use core::hash::Hasher;

/// Whether two paths are the same once normalised: `%61` is `a`, `/a/./b/../c` is `/a/c`, and a
/// slash that is doubled or ends the path does not count.
#[must_use]
pub(crate) fn same_path(path: &str, other: &str) -> bool {
    let (mut segments, mut others) = (segments(path), segments(other));
    loop {
        match (segments.next(), others.next()) {
            (None, None) => return true,
            (Some(segment), Some(other)) if decoded(segment).eq(decoded(other)) => {}
            _ => return false,
        }
    }
}

/// Hashes a path. [Same](same_path) paths have the same hash. Allocates nothing.
///
/// What a path writes never begins what another path writes. So a path can be any part of a key.
pub(crate) fn hash_path(path: &str, state: &mut impl Hasher) {
    for segment in segments(path) {
        // Before the bytes, because a segment can hold any bytes.
        state.write_usize(decoded(segment).count());
        decoded(segment).for_each(|byte| state.write_u8(byte));
    }
    // Ends the path: no segment is empty. So nothing that follows can be read as a segment.
    state.write_usize(0);
}

/// Appends the bytes of a path, which are the same on each node of a store: the decoded segments from
/// the last to the first, each after its length in eight bytes. [Same](same_path) paths have the same
/// bytes. (Feature `redis`.)
#[cfg(feature = "redis")]
pub(crate) fn put_path(path: &str, bytes: &mut Vec<u8>) {
    for segment in segments(path) {
        bytes.extend((decoded(segment).count() as u64).to_be_bytes());
        bytes.extend(decoded(segment));
    }
}

/// The segments that count, from the last to the first, as they are written.
fn segments(path: &str) -> impl Iterator<Item = &[u8]> {
    let mut parents = 0_usize;
    path.as_bytes().rsplit(|&byte| byte == b'/').filter(move |segment| {
        if decoded(segment).eq(*b"..") {
            parents += 1;
            return false;
        }
        if segment.is_empty() || decoded(segment).eq(*b".") {
            return false;
        }
        let is_left = parents > 0;
        parents = parents.saturating_sub(1);
        !is_left
    })
}

/// The decoded bytes of a segment. Invalid percent-encoding stays as it is.
fn decoded(segment: &[u8]) -> Decoded<'_> {
    Decoded { rest: segment }
}

struct Decoded<'a> {
    rest: &'a [u8],
}

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if let [b'%', high, low, rest @ ..] = self.rest {
            if let (Some(high), Some(low)) = (digit(*high), digit(*low)) {
                self.rest = rest;
                return Some(16 * high + low);
            }
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use core::hash::{BuildHasher, Hash, Hasher};
    use std::hash::RandomState;

    use super::{hash_path, same_path};

    fn hash_of(hasher: &RandomState, path: &str) -> u64 {
        let mut state = hasher.build_hasher();
        hash_path(path, &mut state);
        state.finish()
    }

    #[test]
    fn paths_that_mean_the_same_are_one_key() {
        let hasher = RandomState::new();
        for (one, another) in [
            ("/", "/"),
            ("/", "//"),
            ("/a/b", "/a/b/"),
            ("/a/b", "/%61/%62"),
            ("/a/b", "/a//./b"),
            ("/a/c", "/a/b/../c"),
            ("/a/c", "/a/b/%2e%2E/c"),
            ("/c", "/a/b/../../c"),
            ("/c", "/../../c"),
            ("/a", "/a/b/c/../.."),
        ] {
            assert!(same_path(one, another), "{one} {another}");
            assert_eq!(hash_of(&hasher, one), hash_of(&hasher, another), "{one} {another}");
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_store_has_the_same_bytes_of_paths_that_mean_the_same() {
        let bytes = |path: &str| {
            let mut bytes = Vec::new();
            super::put_path(path, &mut bytes);
            bytes
        };
        assert_eq!(bytes("/a/login"), bytes("//x/../a/%6cogin/"));
        assert_ne!(bytes("/a/login"), bytes("/a%2Flogin"));
    }

    #[test]
    fn paths_that_differ_are_different_keys() {
        let hasher = RandomState::new();
        for (one, another) in [
            ("/a/b", "/a%2Fb"),
            ("/a/b", "/ab"),
            ("/a/bc", "/ab/c"),
            ("/a", "/A"),
            ("/a", "/a/b"),
            ("/a", "/"),
            ("/%zz", "/%ZZ"),
            ("/%2561", "/%61"),
        ] {
            assert!(!same_path(one, another), "{one} {another}");
            assert_ne!(hash_of(&hasher, one), hash_of(&hasher, another), "{one} {another}");
        }
    }
    /// A path as a part of a key.
    struct Part(&'static str);

    impl Hash for Part {
        fn hash<H: Hasher>(&self, state: &mut H) {
            hash_path(self.0, state);
        }
    }

    /// All bytes that a key writes, for hashers such as `SipHasher` that see no more than these.
    #[derive(Default)]
    struct Bytes(Vec<u8>);

    impl Hasher for Bytes {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    fn bytes_of(key: impl Hash) -> Vec<u8> {
        let mut state = Bytes::default();
        key.hash(&mut state);
        state.0
    }

    #[test]
    fn a_path_does_not_run_into_the_next_part_of_a_key() {
        let paths = [("/a/b", "/c"), ("/b", "/c/a"), ("/", "/c/a/b"), ("/c/a/b", "/")];
        for (at, (one, two)) in paths.into_iter().enumerate() {
            for (other_one, other_two) in &paths[..at] {
                assert_ne!(bytes_of((Part(one), Part(two))), bytes_of((Part(other_one), Part(other_two))));
            }
        }
        // What the path writes after the first bytes that it has in common with "/", as a text.
        for path in ["/c", "/%00", "/%00%00%00%00%00%00%00%00", "/%FF"] {
            let bytes = bytes_of((Part(path), "alice"));
            for skipped in 0..bytes.len() {
                let Ok(user) = core::str::from_utf8(&bytes[skipped..bytes.len() - 1]) else { continue };
                assert_ne!(bytes_of((Part("/"), user)), bytes, "{path}");
            }
        }
    }

    #[test]
    fn what_a_path_writes_does_not_begin_what_another_writes() {
        let nulls = "/%00%00%00%00%00%00%00%00";
        let paths = ["/", "/c", "/c/a", "/a/c", "/%00", nulls, "/%01%00%00%00%00%00%00%00/c", "/%FF", "/a%2Fc"];
        for one in paths {
            for another in paths {
                let begins = bytes_of(Part(another)).starts_with(&bytes_of(Part(one)));
                assert_eq!(begins, one == another, "{one} {another}");
            }
        }
    }
}
