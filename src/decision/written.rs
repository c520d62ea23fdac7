//! Decisions in serde formats (feature `serde`), for logs and answers. Waits are in nanoseconds. A
//! wait is absent if no wait helps.

use core::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::answer::Admission;
use super::denial::Denial;
use super::status::{QuotaStatus, Status};

/// The wait in nanoseconds; `None` if it never ends.
fn nanos(wait: Duration) -> Option<u64> {
    u64::try_from(wait.as_nanos()).ok()
}

/// Implements `Serialize` for a type as a struct of these fields.
macro_rules! written {
    ($($(#[$docs:meta])* $type:ident($it:ident) { $($field:ident: $value:expr),+ $(,)? })+) => { $(
        $(#[$docs])*
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $it = self;
                let mut fields = serializer.serialize_struct(stringify!($type), [$(stringify!($field)),+].len())?;
                $(fields.serialize_field(stringify!($field), &$value)?;)+
                fields.end()
            }
        }
    )+ };
}

written! {
    /// The fields have the names of the methods. `violated` lists dimensions. `block` is absent, or
    /// null, unless a penalty denies the request.
    Denial(it) {
        reason: it.reason(),
        retry_after_ns: nanos(it.retry_after()),
        dimension: it.dimension(),
        quota: it.quota(),
        block: it.block(),
        violated: it.violated().collect::<Vec<_>>(),
    }
    Admission(it) { delay_ns: nanos(it.delay()), is_counted: it.is_counted(), overruled: it.overruled() }
    QuotaStatus(it) {
        dimension: it.dimension(),
        quota: it.quota(),
        is_violated: it.is_violated(),
        limit: it.limit(),
        remaining: it.remaining(),
        next_after_ns: nanos(it.next_after()),
        reset_after_ns: nanos(it.reset_after()),
    }
    Status(it) { decision: it.decision(), quotas: it.quotas().collect::<Vec<_>>() }
}
