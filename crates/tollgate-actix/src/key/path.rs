//! The path of a request, decoded and normalised.

use core::fmt;
use core::hash::{Hash, Hasher};

use actix_web::http::Uri;

use super::{Head, KeyError, KeyExtractor};

/// The path of the request, without its query. Paths that mean the same are one key: `%61` is `a`,
/// `/a/./b/../c` is `/a/c`, and a slash that is doubled or ends the path does not count.
///
/// **A client can make such keys up**, as it can ask for any path. Prefer
/// [`matched_path`](crate::matched_path), or use it with the client's address beside it.
///
/// ```
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyExtractor, path};
///
/// let key = |uri: &str| {
///     let request = TestRequest::get().uri(uri).to_http_request();
///     path().extract(&Head::of(&request)).unwrap()
/// };
/// assert_eq!(key("/login"), key("//x/../%6cogin/?attempt=2"));
/// assert_ne!(key("/login"), key("/Login"));
/// ```
#[must_use]
pub const fn path() -> NormalPath {
    NormalPath(())
}

/// The path of the request, decoded and normalised. Made by [`path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormalPath(());

impl KeyExtractor for NormalPath {
    type Key = PathKey;

    fn extract(&self, head: &Head<'_>) -> Result<PathKey, KeyError> {
        Ok(PathKey { uri: head.uri.clone() })
    }
}

/// The key of a path. It is compared and hashed as if it were normalised.
#[derive(Clone)]
pub struct PathKey {
    /// Shares its text with the request.
    uri: Uri,
}

impl PathKey {
    /// The segments that count, from the last to the first, as they are written.
    fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let mut parents = 0_usize;
        self.uri.path().as_bytes().rsplit(|&byte| byte == b'/').filter(move |segment| {
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
}

impl PartialEq for PathKey {
    fn eq(&self, other: &Self) -> bool {
        let (mut segments, mut others) = (self.segments(), other.segments());
        loop {
            match (segments.next(), others.next()) {
                (None, None) => return true,
                (Some(segment), Some(other)) if decoded(segment).eq(decoded(other)) => {}
                _ => return false,
            }
        }
    }
}

impl Eq for PathKey {}

impl Hash for PathKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for segment in self.segments() {
            let mut length = 0_usize;
            for byte in decoded(segment) {
                state.write_u8(byte);
                length += 1;
            }
            // Ends the segment, so that no two paths write the same bytes.
            state.write_usize(length);
        }
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathKey").field(&self.uri.path()).finish()
    }
}

/// The bytes of a segment. What is no percent-encoding stands for itself.
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
    use core::hash::BuildHasher;
    use std::hash::RandomState;

    use super::PathKey;

    fn key(uri: &str) -> PathKey {
        PathKey { uri: uri.parse().unwrap() }
    }

    #[test]
    fn paths_that_mean_the_same_are_one_key() {
        let hasher = RandomState::new();
        for (one, another) in [
            ("/", "/"),
            ("/", "//"),
            ("/a/b", "/a/b/"),
            ("/a/b", "/%61/%62"),
            ("/a/b", "/a//./b?query"),
            ("/a/c", "/a/b/../c"),
            ("/a/c", "/a/b/%2e%2E/c"),
            ("/c", "/a/b/../../c"),
            ("/c", "/../../c"),
            ("/a", "/a/b/c/../.."),
            ("/a", "https://example.com/a"),
        ] {
            assert_eq!(key(one), key(another));
            assert_eq!(hasher.hash_one(key(one)), hasher.hash_one(key(another)), "{one} {another}");
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
            assert_ne!(key(one), key(another));
            assert_ne!(hasher.hash_one(key(one)), hasher.hash_one(key(another)), "{one} {another}");
        }
    }
}
