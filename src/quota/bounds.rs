//! The bounds of quotas.

use core::time::Duration;

/// See [`Quota::MAX_LIMIT`](crate::Quota::MAX_LIMIT).
pub(super) const MAX_LIMIT: u32 = 1 << 20;

/// See [`Quota::MAX_WINDOW`](crate::Quota::MAX_WINDOW).
pub(super) const MAX_WINDOW: Duration = Duration::from_nanos((1 << 60) - 1);

/// See [`Quota::MAX_CAPACITY`](crate::Quota::MAX_CAPACITY).
pub(super) const MAX_CAPACITY: u32 = 1 << 30;

/// See [`Quota::MAX_NAME`](crate::Quota::MAX_NAME).
pub(super) const MAX_NAME: usize = 32;

/// See [`Quota::MAX_STEPS`](crate::Quota::MAX_STEPS).
pub(super) const MAX_STEPS: u32 = 1 << 14;
