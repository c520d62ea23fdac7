//! The header fields of a response.

use core::fmt;

use crate::limit::ServiceLimit;
use crate::policy::Policies;

/// Which header fields tell clients about their limits.
///
/// Names are in lower case, as in HTTP/2. `ratelimit` and `ratelimit-policy` are lists: append them
/// to the fields that inner services have set. `x-ratelimit-*` are not lists. None of them belongs
/// in a trailer.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{Headers, Policies, Policy, Usage};
///
/// let policies = Policies::new([Policy::new("default", 100, Duration::from_secs(60))?])?;
/// let usage = Usage { remaining: 60, next_after: Duration::from_millis(58_200) };
///
/// let headers = Headers::Draft11;
/// // The same for each response, so it is made once.
/// let once = headers.policy_field(&policies);
/// assert_eq!(once, Some(("ratelimit-policy", r#""default";q=100;w=60"#)));
///
/// let mut response = Vec::new();
/// headers.write([policies[0].admitted(usage)], |name, value| response.push((name, value.to_vec())));
/// assert_eq!(response, [("ratelimit", br#""default";r=60;t=59"#.to_vec())]);
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Headers {
    /// `RateLimit-Policy` and `RateLimit`, in the format of
    /// draft-ietf-httpapi-ratelimit-headers-11.
    #[default]
    Draft11,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (in seconds from now),
    /// of the tightest limit. A limit on requests at a time is shown if there is no other, and has no
    /// `X-RateLimit-Reset`.
    XRateLimit,
    /// No fields but `Retry-After`.
    Off,
}

impl Headers {
    /// The field that is the same for each response until the quotas change, if there is one.
    #[must_use]
    pub fn policy_field(self, policies: &Policies) -> Option<(&'static str, &str)> {
        match self {
            Self::Draft11 => Some(("ratelimit-policy", policies.value())),
            Self::XRateLimit | Self::Off => None,
        }
    }

    /// Passes the name and the value of each field that shows these limits to `field`. Values are
    /// printable ASCII; they are written on the stack, and nothing is allocated.
    ///
    /// For an admitted request, show the [tightest](ServiceLimit::tightest) limit or all limits.
    /// For a denied request, show those of the violated policies. A long list becomes several
    /// fields of the same name.
    pub fn write<'a>(
        self,
        limits: impl IntoIterator<Item = ServiceLimit<'a>>,
        mut field: impl FnMut(&'static str, &[u8]),
    ) {
        match self {
            Self::Draft11 => write_list(limits, |value| field("ratelimit", value)),
            Self::XRateLimit => {
                if let Some(limit) = ServiceLimit::tightest(limits) {
                    let mut digits = itoa::Buffer::new();
                    field("x-ratelimit-limit", digits.format(limit.limit()).as_bytes());
                    field("x-ratelimit-remaining", digits.format(limit.remaining()).as_bytes());
                    if let Some(reset) = limit.reset() {
                        field("x-ratelimit-reset", digits.format(reset).as_bytes());
                    }
                }
            }
            Self::Off => {}
        }
    }
}

fn write_list<'a>(limits: impl IntoIterator<Item = ServiceLimit<'a>>, mut value: impl FnMut(&[u8])) {
    let mut line = Line::new();
    for limit in limits {
        if line.room() < SEPARATOR.len() + ServiceLimit::MOST_BYTES {
            value(line.bytes());
            line = Line::new();
        }
        let separator = if line.length == 0 { "" } else { SEPARATOR };
        // There is room for the longest item.
        let _ = line.write(separator).and_then(|()| limit.write_to(&mut line));
    }
    if line.length > 0 {
        value(line.bytes());
    }
}

/// Between the items of a list.
pub(crate) const SEPARATOR: &str = ", ";

/// A field's value on the stack.
pub(crate) struct Line {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Line {
    /// Enough for several items with names of usual length.
    const CAPACITY: usize = 2 * ServiceLimit::MOST_BYTES;

    pub(crate) const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0 }
    }

    const fn room(&self) -> usize {
        Self::CAPACITY - self.length
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn write(&mut self, text: &str) -> fmt::Result {
        let to = self.bytes[self.length..].get_mut(..text.len()).ok_or(fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text)
    }
}
