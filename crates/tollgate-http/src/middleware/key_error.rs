//! Why a request has no key.

use core::fmt;
use core::time::Duration;

use crate::problem::{DenialKind, Problem};
use tollgate_address::ClientError;

/// Why a request has no key.
///
/// ```
/// use tollgate_http::middleware::KeyError;
///
/// assert_eq!(KeyError::not_provided().status(), 500);
/// assert_eq!(KeyError::not_sent().status(), 400);
/// assert!(!KeyError::malformed().is_missing());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyError {
    reason: Reason,
    /// Whether the middleware's own answer to a missing key applies.
    is_open: bool,
}

/// The reasons, from the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reason {
    /// The extractor skips the request.
    Skipped,
    NotSent,
    NotProvided,
    Malformed,
    /// A rule of a policy denies the request.
    Rule,
}

impl KeyError {
    /// The server or an outer layer did not provide the key: a matter of the set-up.
    #[must_use]
    pub const fn not_provided() -> Self {
        Self { reason: Reason::NotProvided, is_open: true }
    }

    /// The client did not send the key.
    #[must_use]
    pub const fn not_sent() -> Self {
        Self { reason: Reason::NotSent, is_open: true }
    }

    /// The client sent the key in a form that is never accepted: twice, or too long. Such a request
    /// is always rejected, or a client could choose not to be limited.
    #[must_use]
    pub const fn malformed() -> Self {
        Self { reason: Reason::Malformed, is_open: false }
    }

    /// The extractor skips the request. A [joint](tollgate::JointLimiter) limiter is asked with the
    /// other keys.
    #[must_use]
    pub const fn skipped() -> Self {
        Self { reason: Reason::Skipped, is_open: false }
    }

    /// A rule of a policy denies the request, with 403, whatever its key is.
    #[must_use]
    pub const fn by_rule() -> Self {
        Self { reason: Reason::Rule, is_open: false }
    }

    /// Whether the key is missing, so that [`Missing`](super::Missing) decides.
    #[must_use]
    pub const fn is_missing(self) -> bool {
        matches!(self.reason, Reason::NotSent | Reason::NotProvided)
    }

    /// The status code of the answer when the request is rejected: 500 for a matter of the set-up, 403
    /// for a rule, 400 otherwise.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.kind().status()
    }

    const fn kind(self) -> DenialKind {
        match self.reason {
            Reason::NotProvided => DenialKind::KeyNotProvided,
            Reason::Skipped | Reason::NotSent => DenialKind::KeyNotSent,
            Reason::Malformed => DenialKind::KeyMalformed,
            Reason::Rule => DenialKind::Rule,
        }
    }

    /// Whether the extractor skips the request.
    #[must_use]
    pub const fn is_skipped(self) -> bool {
        matches!(self.reason, Reason::Skipped)
    }

    /// Whether the middleware's own answer to a missing key applies.
    #[must_use]
    pub const fn is_open(self) -> bool {
        self.is_open
    }

    /// The same error, to which the middleware's own answer to a missing key does not apply.
    #[must_use]
    pub const fn closed(self) -> Self {
        Self { is_open: false, ..self }
    }

    /// The more severe of two errors. A malformed key is the most severe.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let severity = |error: Self| (!error.is_open && !error.is_skipped(), error.reason);
        if severity(other) > severity(self) { other } else { self }
    }
}

/// Why a request without an address has no key: the server knows no peer, or the client sent its
/// address in a form that is not accepted.
///
/// ```
/// use tollgate_http::ClientError;
/// use tollgate_http::middleware::KeyError;
///
/// assert_eq!(KeyError::from(ClientError::UnixSocket), KeyError::not_provided());
/// ```
impl From<ClientError> for KeyError {
    fn from(error: ClientError) -> Self {
        if error.is_missing() { Self::not_provided() } else { Self::malformed() }
    }
}

/// The answer when the request is rejected. It tells nothing about the set-up. With
/// [`wanting`](Problem::wanting) it tells which key the client is to send.
///
/// ```
/// use tollgate_http::Problem;
/// use tollgate_http::middleware::KeyError;
///
/// let problem = Problem::from(KeyError::not_sent());
/// assert_eq!(problem.to_json(), r#"{"title":"Bad Request","status":400}"#);
/// ```
impl From<KeyError> for Problem<'static> {
    fn from(error: KeyError) -> Self {
        Self::new(error.kind(), Duration::MAX)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Skipped => "the request is not counted",
            Reason::NotSent => "the client did not send the key of the request",
            Reason::NotProvided => {
                "the server did not provide the key of the request: insert it into the extensions in outer middleware"
            }
            Reason::Rule => "a rule of the policy denies the request",
            Reason::Malformed => "the client sent the key of the request twice, or it is too long",
        })
    }
}

impl core::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::KeyError;

    #[test]
    fn a_certain_rejection_comes_before_a_skip() {
        let (skipped, malformed) = (KeyError::skipped(), KeyError::malformed());
        assert_eq!(skipped.or_worse(malformed), malformed);
        assert_eq!(malformed.or_worse(skipped), malformed);
        assert_eq!(skipped.or_worse(KeyError::not_sent()), KeyError::not_sent());
        let rejected = KeyError::not_sent().closed();
        assert_eq!(KeyError::not_provided().or_worse(rejected), rejected);
    }
}
