//! [`Outcome`]: what a decision is called in metrics and logs.

use tollgate::{DenialReason, Observation};

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Admitted,
    /// Admitted without a charge: the key is on the allow list, or found no place at the key cap.
    Uncounted,
    /// Admitted in place of a denial.
    Overruled,
    Denied(DenialReason),
    /// The cost is above the limit.
    Cost,
}

impl Outcome {
    pub(crate) fn of(seen: &Observation<'_>) -> Self {
        match (seen.admission(), seen.denial()) {
            (Some(_), Some(_)) => Self::Overruled,
            (Some(admission), None) if admission.is_counted() => Self::Admitted,
            (Some(_), None) => Self::Uncounted,
            (None, Some(denial)) => Self::Denied(denial.reason()),
            (None, None) => Self::Cost,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Uncounted => "uncounted",
            Self::Overruled => "overruled",
            Self::Denied(reason) => reason_name(reason),
            Self::Cost => "cost",
        }
    }
}

pub(crate) const fn reason_name(reason: DenialReason) -> &'static str {
    match reason {
        DenialReason::Quota => "quota",
        DenialReason::KeyCap => "key_cap",
        DenialReason::Penalty => "penalty",
        DenialReason::DenyList => "deny_list",
        DenialReason::InFlight => "in_flight",
        _ => "other",
    }
}
