//! Quota policies as clients see them: a name, a quota and a window.

use core::fmt;
use core::fmt::Write as _;
use core::time::Duration;

use tollgate::{Algorithm, Quota};

use crate::seconds;

/// A quota with the name that clients see it by: one item of `RateLimit-Policy`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
/// use tollgate_http::Policy;
///
/// let policy = Policy::new("user-1m", 100, Duration::from_secs(60))?;
/// assert_eq!(policy.to_string(), r#""user-1m";q=100;w=60"#);
/// assert_eq!(policy, Policy::of("user-1m", &Quota::per_minute(100))?);
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    name: Box<str>,
    /// The start of an item of `RateLimit`: the name as a string of a structured field, which is
    /// also a string of JSON, and [`REMAINING`].
    item: Box<str>,
    quota: u32,
    /// In seconds; zero if it has none.
    window: u32,
    unit: QuotaUnit,
}

/// The parameter that comes first in an item of `RateLimit`.
const REMAINING: &str = ";r=";

impl Policy {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 64;

    /// A policy of `quota` permits (`q`, at least 1) in each `window` (`w`, rounded up to whole
    /// seconds).
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the name is empty, longer than [`MAX_NAME`](Self::MAX_NAME) or not
    /// printable ASCII, when the quota or the window is zero, or when the window is longer than
    /// [`u32::MAX`] seconds.
    pub fn new(name: &str, quota: u32, window: Duration) -> Result<Self, PolicyError> {
        let named = Self::concurrent(name, quota)?;
        if window.is_zero() {
            return Err(PolicyError::ZeroWindow);
        }
        let Ok(seconds) = u32::try_from(seconds::ceil(window)) else {
            return Err(PolicyError::WindowTooLong { window });
        };
        Ok(Self { window: seconds, unit: QuotaUnit::Requests, ..named })
    }

    /// A policy of `quota` requests at a time (`q`, at least 1; `qu` is `concurrent-requests`). It has
    /// no window, so that no `w` and, in `RateLimit`, no `t` are written.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_http::{Policy, Usage};
    ///
    /// let streams = Policy::concurrent("streams", 4)?;
    /// assert_eq!(streams.to_string(), r#""streams";q=4;qu="concurrent-requests""#);
    /// assert_eq!(streams, Policy::of("streams", &Quota::concurrent(4))?);
    /// let limit = streams.admitted(Usage { remaining: 3, next_after: Duration::MAX });
    /// assert_eq!((limit.to_string(), limit.reset()), (r#""streams";r=3"#.to_owned(), None));
    /// # Ok::<(), tollgate_http::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the name is empty, longer than [`MAX_NAME`](Self::MAX_NAME) or not
    /// printable ASCII, or when the quota is zero.
    pub fn concurrent(name: &str, quota: u32) -> Result<Self, PolicyError> {
        if name.is_empty() {
            return Err(PolicyError::EmptyName);
        }
        if name.len() > Self::MAX_NAME {
            return Err(PolicyError::NameTooLong { bytes: name.len() });
        }
        if let Some(at) = name.bytes().position(|byte| !matches!(byte, b' '..=b'~')) {
            return Err(PolicyError::NameNotPrintable { at });
        }
        if quota == 0 {
            return Err(PolicyError::ZeroQuota);
        }
        let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
        let (name, item) = (name.into(), format!("\"{escaped}\"{REMAINING}").into());
        Ok(Self { name, item, quota, window: 0, unit: QuotaUnit::ConcurrentRequests })
    }

    /// The policy of one of a limiter's quotas: its [limit](Quota::limit) in its
    /// [window](Quota::window), or at a time for a [concurrency limit](Quota::concurrent).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of(name: &str, quota: &Quota) -> Result<Self, PolicyError> {
        match quota.algorithm() {
            Algorithm::Concurrency => Self::concurrent(name, quota.limit()),
            _ => Self::new(name, quota.limit(), quota.window()),
        }
    }

    /// The same policy in another unit (`qu`); [`QuotaUnit::Requests`] by default. A policy without a
    /// window keeps its unit.
    #[must_use]
    pub fn unit(self, unit: QuotaUnit) -> Self {
        if self.has_window() { Self { unit, ..self } } else { self }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Permits per window, or at a time.
    #[must_use]
    pub const fn quota(&self) -> u32 {
        self.quota
    }

    /// The window, in whole seconds; zero for requests [at a time](Self::concurrent).
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    pub(crate) const fn has_window(&self) -> bool {
        self.window > 0
    }

    /// The name in quotes.
    pub(crate) fn quoted(&self) -> &str {
        &self.item[..self.item.len() - REMAINING.len()]
    }

    /// The start of an item of `RateLimit`.
    pub(crate) fn item(&self) -> &str {
        &self.item
    }
}

/// The item of `RateLimit-Policy`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};q={}", self.quoted(), self.quota)?;
        match self.unit {
            QuotaUnit::Requests => {}
            QuotaUnit::ContentBytes => f.write_str(";qu=\"content-bytes\"")?,
            QuotaUnit::ConcurrentRequests => f.write_str(";qu=\"concurrent-requests\"")?,
        }
        if self.has_window() { write!(f, ";w={}", self.window) } else { Ok(()) }
    }
}

/// The unit of the permits of a [`Policy`], of those that the draft registers.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{Policy, QuotaUnit};
///
/// let upload = Policy::new("upload", 65_535, Duration::from_secs(10))?;
/// let upload = upload.unit(QuotaUnit::ContentBytes);
/// assert_eq!(upload.to_string(), r#""upload";q=65535;qu="content-bytes";w=10"#);
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum QuotaUnit {
    /// Requests. The draft's default, which is not written.
    #[default]
    Requests,
    /// Bytes of content.
    ContentBytes,
    /// Requests at the same time.
    ConcurrentRequests,
}

/// All policies of a response, and the value of `RateLimit-Policy`, which is made once. Make new
/// ones when the quotas change.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_http::{Policies, Policy};
///
/// let policies = Policies::new([
///     Policy::of("burst", &Quota::per_minute(100))?,
///     Policy::of("daily", &Quota::per_day(1_000))?,
/// ])?;
/// assert_eq!(policies.value(), r#""burst";q=100;w=60, "daily";q=1000;w=86400"#);
/// assert_eq!(policies[1].name(), "daily");
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    policies: Box<[Policy]>,
    value: Box<str>,
}

impl Policies {
    /// These policies, in this order.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when there are no policies, or two have the same name.
    pub fn new(policies: impl IntoIterator<Item = Policy>) -> Result<Self, PolicyError> {
        let policies: Box<[Policy]> = policies.into_iter().collect();
        if policies.is_empty() {
            return Err(PolicyError::NoPolicies);
        }
        let mut value = String::new();
        for (at, policy) in policies.iter().enumerate() {
            if policies[..at].iter().any(|earlier| earlier.name == policy.name) {
                return Err(PolicyError::SameName { name: policy.name.clone() });
            }
            let separator = if at == 0 { "" } else { ", " };
            // Writing to a `String` never fails.
            let _ = write!(value, "{separator}{policy}");
        }
        Ok(Self { policies, value: value.into() })
    }

    /// The value of `RateLimit-Policy`.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl core::ops::Deref for Policies {
    type Target = [Policy];

    fn deref(&self) -> &[Policy] {
        &self.policies
    }
}

/// Why a [`Policy`] or [`Policies`] cannot be made.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{Policy, PolicyError};
///
/// let error = Policy::new("müller", 1, Duration::from_secs(1)).unwrap_err();
/// assert_eq!(error, PolicyError::NameNotPrintable { at: 1 });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is empty.
    EmptyName,
    /// The name is longer than [`Policy::MAX_NAME`].
    NameTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The name has a byte that is not printable ASCII.
    NameNotPrintable {
        /// The offset of that byte, counted from zero.
        at: usize,
    },
    /// The quota is zero.
    ZeroQuota,
    /// The window is zero.
    ZeroWindow,
    /// The window is longer than [`u32::MAX`] seconds.
    WindowTooLong {
        /// The window.
        window: Duration,
    },
    /// There is no policy, and a list must not be empty.
    NoPolicies,
    /// Two policies have the same name.
    SameName {
        /// The name.
        name: Box<str>,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName => f.write_str("the name of the policy is empty"),
            Self::NameTooLong { bytes } => {
                write!(f, "a policy's name of {bytes} bytes is too long: at most {}", Policy::MAX_NAME)
            }
            Self::NameNotPrintable { at } => {
                write!(f, "byte {at} of the policy's name is not printable ASCII")
            }
            Self::ZeroQuota => f.write_str("the quota is zero: give at least one permit per window"),
            Self::ZeroWindow => f.write_str("the window is zero: give at least one nanosecond"),
            Self::WindowTooLong { window } => {
                write!(f, "the window {window:?} is too long: at most {} seconds", u32::MAX)
            }
            Self::NoPolicies => f.write_str("no policies: give at least one"),
            Self::SameName { name } => write!(f, "two policies have the name '{name}'"),
        }
    }
}

impl core::error::Error for PolicyError {}
