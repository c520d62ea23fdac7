//! The name of a quota.

use core::fmt;

use super::bounds::MAX_NAME;
use super::error::QuotaError;

/// The name of a quota, kept inline so that a quota can be copied and can be a `const`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// The first bytes of the name.
    bytes: [u8; MAX_NAME],
    /// The length of the given name in bytes, at most 255. It takes one byte, because quotas are
    /// copied often.
    length: u8,
}

impl Name {
    pub(super) const fn of(name: &str) -> Self {
        let (given, mut bytes) = (name.as_bytes(), [0; MAX_NAME]);
        let mut at = 0;
        while at < given.len() && at < MAX_NAME {
            bytes[at] = given[at];
            at += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it fits")]
        let length = if given.len() > u8::MAX as usize { u8::MAX } else { given.len() as u8 };
        Self { bytes, length }
    }

    const fn length(&self) -> usize {
        self.length as usize
    }

    pub(super) const fn as_str(&self) -> Option<&str> {
        if self.length() > MAX_NAME {
            return None;
        }
        match core::str::from_utf8(self.bytes.split_at(self.length()).0) {
            Ok(name) => Some(name),
            Err(_) => None,
        }
    }

    pub(super) const fn check(&self) -> Result<(), QuotaError> {
        if self.length() == 0 {
            return Err(QuotaError::EmptyName);
        }
        if self.length() > MAX_NAME {
            return Err(QuotaError::NameTooLong { length: self.length() });
        }
        let mut at = 0;
        while at < self.length() {
            // These characters need no escape in a quoted string, neither in a header field nor in
            // a policy file.
            if !matches!(self.bytes[at], b' '..=b'~') || matches!(self.bytes[at], b'"' | b'\\') {
                return Err(QuotaError::NameCharacter { at });
            }
            at += 1;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
