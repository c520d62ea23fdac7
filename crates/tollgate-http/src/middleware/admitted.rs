//! [`Admitted`]: the decision, as handlers see it.

use core::time::Duration;

use crate::limit::Usage;

/// The decision about an admitted request, for handlers. The option `tell_handlers` of middleware
/// puts it into the request's extensions.
///
/// ```
/// use tollgate_http::middleware::Admitted;
///
/// /// The text of a handler.
/// fn text(admitted: &Admitted) -> String {
///     format!("{} of {} left", admitted.remaining(), admitted.limit())
/// }
/// # let _ = text;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    limit: u32,
    usage: Usage,
}

impl Admitted {
    pub(crate) const fn new(limit: u32, usage: Usage) -> Self {
        Self { limit, usage }
    }

    /// The limit of the tightest quota.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The permits left of that quota, after this request.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.usage.remaining
    }

    /// The time until one more of them is free; [`Duration::MAX`] if that is not known, as by a limit on
    /// requests at a time.
    #[must_use]
    pub const fn next_after(&self) -> Duration {
        self.usage.next_after
    }
}
