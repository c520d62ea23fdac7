//! [`Middleware`]: how the middleware of a framework answers and logs.

use core::fmt;

use super::key::Framework;
use super::notice::Notice;
use super::values::FieldValue;
use crate::headers::Headers;
use crate::problem::Problem;

/// A framework whose middleware asks a limiter. The crates for tower and actix-web implement it.
pub trait Middleware: Framework {
    /// The value of a header field.
    type Field: FieldValue + Send + Sync + 'static;

    /// The head of the inner service's answer.
    type AnswerHead<'a>;

    /// The middleware's own answer.
    type Answer;

    /// The options that its own answers have in this framework alone.
    type Answers: Clone + Default;

    /// What to write where the set-up provides no address.
    const REMEDY: &'static str;

    /// Answers a request that is denied or has no key, with `RateLimit-Policy` if there is one.
    fn reject(
        answers: &Self::Answers,
        problem: &Problem<'_>,
        policies: Option<&Self::Field>,
        headers: Headers,
        head: &Self::Head<'_>,
    ) -> Self::Answer;

    /// Logs a set-up that is seldom meant.
    fn warn(notice: &Notice);

    /// Logs a set-up that is wrong.
    fn error(text: fmt::Arguments<'_>);
}
