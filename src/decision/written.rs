//! Decisions in serde formats (feature `serde`), for logs and answers. Waits are in nanoseconds. A
//! wait is absent if no wait helps.

use core::time::Duration;

use serde::{Serialize, Serializer};

use super::answer::{Admission, Decision};
use super::denial::Denial;
use super::joint_status::{JointQuotaStatus, JointStatus};
use super::quota_status::QuotaStatus;
use super::status::Status;

/// The wait in nanoseconds; `None` if it never ends.
fn nanos(wait: Duration) -> Option<u64> {
    if wait == Duration::MAX { None } else { u64::try_from(wait.as_nanos()).ok() }
}

/// The fields have the names of the methods. `violated` lists dimensions.
impl Serialize for Denial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "Denial")]
        struct Written {
            reason: super::DenialReason,
            retry_after_ns: Option<u64>,
            dimension: usize,
            quota: usize,
            violated: Vec<usize>,
        }
        Written {
            reason: self.reason(),
            retry_after_ns: nanos(self.retry_after()),
            dimension: self.dimension(),
            quota: self.quota(),
            violated: self.violated().collect(),
        }
        .serialize(serializer)
    }
}

impl Serialize for Admission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "Admission")]
        struct Written {
            delay_ns: Option<u64>,
            is_counted: bool,
            overruled: Option<Denial>,
        }
        let (delay_ns, is_counted) = (nanos(self.delay()), self.is_counted());
        Written { delay_ns, is_counted, overruled: self.overruled() }.serialize(serializer)
    }
}

/// `{"admitted": …}` or `{"denied": …}`.
impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Admitted(admission) => serializer.serialize_newtype_variant("Decision", 0, "admitted", admission),
            Self::Denied(denial) => serializer.serialize_newtype_variant("Decision", 1, "denied", denial),
        }
    }
}

impl Serialize for QuotaStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "QuotaStatus")]
        struct Written {
            quota: usize,
            limit: u32,
            remaining: u32,
            next_after_ns: Option<u64>,
            reset_after_ns: Option<u64>,
        }
        Written {
            quota: self.quota(),
            limit: self.limit(),
            remaining: self.remaining(),
            next_after_ns: nanos(self.next_after()),
            reset_after_ns: nanos(self.reset_after()),
        }
        .serialize(serializer)
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "Status")]
        struct Written {
            decision: Decision,
            quotas: Vec<QuotaStatus>,
        }
        Written { decision: self.decision(), quotas: self.quotas().collect() }.serialize(serializer)
    }
}

impl Serialize for JointQuotaStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "JointQuotaStatus")]
        struct Written {
            dimension: usize,
            is_violated: bool,
            status: QuotaStatus,
        }
        let (dimension, is_violated) = (self.dimension(), self.is_violated());
        Written { dimension, is_violated, status: self.status() }.serialize(serializer)
    }
}

impl Serialize for JointStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "JointStatus")]
        struct Written {
            decision: Decision,
            items: Vec<JointQuotaStatus>,
        }
        Written { decision: self.decision(), items: self.items().collect() }.serialize(serializer)
    }
}
