//! Comparison of paths in a normal form.

use core::hash::Hasher;

/// Whether two paths are the same once normalised: `%61` is `a`, `/a/./b/../c` is `/a/c`, and a
/// slash that is doubled or ends the path does not count.
///
/// ```
/// use tollgate_http::middleware::same_path;
///
/// assert!(same_path("/login", "//x/../%6cogin/"));
/// assert!(!same_path("/login", "/Login"));
/// ```
#[must_use]
pub fn same_path(path: &str, other: &str) -> bool {
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
/// ```
/// use std::hash::{DefaultHasher, Hasher};
/// use tollgate_http::middleware::hash_path;
///
/// let hash = |path: &str| {
///     let mut state = DefaultHasher::new();
///     hash_path(path, &mut state);
///     state.finish()
/// };
/// assert_eq!(hash("/login"), hash("//x/../%6cogin/"));
/// ```
pub fn hash_path(path: &str, state: &mut impl Hasher) {
    for segment in segments(path) {
        let mut length = 0_usize;
        for byte in decoded(segment) {
            state.write_u8(byte);
            length += 1;
        }
        // Ends the segment, so that no two paths write the same bytes.
        state.write_usize(length);
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
        if let [b'%', high, low, rest @ ..] = self.rest
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            self.rest = rest;
            return Some(16 * high + low);
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
    use core::hash::{BuildHasher, Hasher};
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
}
