//! [`Told`]: what the answer of a limiter tells an observer.

use core::time::Duration;

use crate::decision::{Decision, Status};
use crate::error::{CostExceedsLimit, JointError};
use crate::reservation::{Receipt, ReserveError};

/// The result of a request: a decision, or the error that its cost is above a limit.
pub(crate) type Decided = Result<Decision, CostExceedsLimit>;

/// An answer of a limiter.
pub(crate) trait Told {
    /// The result; `None` if the keys were not those of a request.
    fn decided(&self) -> Option<Decided>;

    /// The status that came with it.
    fn status(&self) -> Option<&Status>;
}

impl Told for Decision {
    fn decided(&self) -> Option<Decided> {
        Some(Ok(*self))
    }

    fn status(&self) -> Option<&Status> {
        None
    }
}

impl Told for Status {
    fn decided(&self) -> Option<Decided> {
        Some(Ok(self.decision()))
    }

    fn status(&self) -> Option<&Status> {
        Some(self)
    }
}

/// Permits that were charged, with their delay and the status of the request.
impl<S: Told> Told for (Receipt, Duration, S) {
    fn decided(&self) -> Option<Decided> {
        self.2.decided()
    }

    fn status(&self) -> Option<&Status> {
        self.2.status()
    }
}

/// An error that stands for a decision, or for none.
pub(crate) trait ToldError {
    fn decided(&self) -> Option<Decided>;
}

impl<T: Told, E: ToldError> Told for Result<T, E> {
    fn decided(&self) -> Option<Decided> {
        match self {
            Ok(answer) => answer.decided(),
            Err(error) => error.decided(),
        }
    }

    fn status(&self) -> Option<&Status> {
        self.as_ref().ok().and_then(Told::status)
    }
}

impl ToldError for CostExceedsLimit {
    fn decided(&self) -> Option<Decided> {
        Some(Err(*self))
    }
}

impl ToldError for JointError {
    fn decided(&self) -> Option<Decided> {
        match self {
            Self::Cost(error) => error.decided(),
            Self::WrongNumberOfKeys { .. } | Self::NoKeys => None,
        }
    }
}

impl ToldError for ReserveError {
    fn decided(&self) -> Option<Decided> {
        match self {
            Self::Denied(denial) => Some(Ok(Decision::Denied(*denial))),
            Self::CostExceedsLimit(error) => error.decided(),
            Self::Joint(error) => error.decided(),
        }
    }
}
