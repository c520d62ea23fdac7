//! [`RequestCharge`]: the charge of an admitted request, with what its answer decides.

use std::sync::Arc;

use super::adapter::Middleware;
use super::admitted::Admitted;
use super::charge::Charge;
use super::find::Gate;
use super::in_flight::RequestInFlight;
use super::key::Extracts;
use super::settings::OnAnswer;
use super::told::Told;

/// The charge of an admitted request. If it is dropped before the response, it refunds the permits
/// if the options say so.
pub struct RequestCharge<W: Middleware + Extracts<X>, L: Gate<W, X>, X> {
    charge: Charge<L, L::Keys, W::Field>,
    on_answer: Option<Arc<OnAnswer<W>>>,
}

impl<W: Middleware + Extracts<X>, L: Gate<W, X>, X> RequestCharge<W, L, X> {
    pub(super) const fn new(charge: Charge<L, L::Keys, W::Field>, on_answer: Option<Arc<OnAnswer<W>>>) -> Self {
        Self { charge, on_answer }
    }

    /// The decision, as handlers see it.
    #[must_use]
    pub fn admitted(&self) -> Option<Admitted> {
        self.charge.admitted()
    }

    /// Whether the head of the answer decides anything.
    #[must_use]
    pub const fn looks_at_answers(&self) -> bool {
        self.on_answer.is_some()
    }

    /// The place of the request, if a concurrency limit counts it. It is for the body of the response,
    /// and for handlers.
    #[must_use]
    pub fn in_flight(&self) -> Option<RequestInFlight> {
        self.charge.in_flight()
    }

    /// Settles the charge when the inner service has answered. Returns the values of header fields.
    /// The head of the answer may be left out if nothing looks at it. The request is over, unless its
    /// [place](Self::in_flight) is kept.
    #[must_use]
    pub fn answered(mut self, answer: Option<&W::AnswerHead<'_>>) -> Option<Told<W::Field>> {
        let (on_answer, charge) = (self.on_answer.as_deref(), &mut self.charge);
        let refund_when = on_answer.and_then(|on_answer| on_answer.refund_when.as_ref()).zip(answer);
        charge.settle(|| refund_when.is_some_and(|(refund_when, answer)| refund_when(answer)));
        let cost_after = on_answer.and_then(|on_answer| on_answer.cost_after.as_ref()).zip(answer);
        if let Some((cost_after, answer)) = cost_after {
            charge.more(cost_after(answer));
        }
        self.charge.told()
    }
}
