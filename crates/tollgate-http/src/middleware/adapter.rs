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

    /// The header fields of an answer.
    type Fields;

    /// The head of the inner service's answer.
    type AnswerHead<'a>;

    /// The middleware's own answer.
    type Answer;

    /// The options that its own answers have in this framework alone.
    type Answers: Clone + Default;

    /// `RateLimit`.
    const LIMIT: Self::Name;

    /// `RateLimit-Policy`.
    const POLICIES: Self::Name;

    /// `X-RateLimit-Limit`.
    const X_LIMIT: Self::Name;

    /// `X-RateLimit-Remaining`.
    const X_REMAINING: Self::Name;

    /// `X-RateLimit-Reset`.
    const X_RESET: Self::Name;

    /// The name of another header field, in lower case.
    fn field_name(name: &'static str) -> Self::Name;

    /// The first value of a header field.
    fn get<'f>(fields: &'f Self::Fields, name: &Self::Name) -> Option<&'f Self::Value>;

    /// Sets a header field to this value alone.
    fn insert(fields: &mut Self::Fields, name: Self::Name, value: Self::Field);

    /// Appends a value to a header field. Passes it with each that is there to `look`.
    fn append(
        fields: &mut Self::Fields,
        name: Self::Name,
        value: Self::Field,
        look: impl FnMut(&Self::Value, &Self::Value),
    );

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
