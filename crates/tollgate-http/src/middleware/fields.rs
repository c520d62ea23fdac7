//! The header fields of answers: which are lists, which replace what is there, and which do not.

use bytes::Bytes;

use super::adapter::Middleware;
use super::notice::Notice;
use super::told::Told;
use super::values::{FieldValue, bytes_of, digits_of};
use crate::headers::Headers;
use crate::problem::Problem;

/// Writes the header fields of the response to an admitted request.
pub fn write_told<W: Middleware>(fields: &mut W::Fields, told: Told<W::Field>) {
    match told {
        Told::Draft11 { policies, limit } => {
            if let Some(policies) = policies {
                append_policies::<W>(fields, policies);
            }
            if let Some(limit) = limit {
                W::append(fields, W::LIMIT, limit, |_, _| {});
            }
        }
        Told::XRateLimit { limit, remaining, reset } => {
            // These fields are not lists: of several limits, the tightest is shown.
            let told = W::get(fields, &W::X_REMAINING);
            let told = told.and_then(|value| core::str::from_utf8(value.as_ref()).ok()?.parse::<u32>().ok());
            // Of limits on requests at a time, which have no reset, the innermost is shown, and only if there
            // is no other limit.
            let has_reset = W::get(fields, &W::X_RESET).is_some();
            let is_shown = |told| reset.is_some() && (remaining < told || !has_reset);
            if told.is_none_or(is_shown) {
                let numbers =
                    [(W::X_LIMIT, Some(limit.into())), (W::X_REMAINING, Some(remaining.into())), (W::X_RESET, reset)];
                for (name, number) in numbers {
                    if let Some(value) = number.and_then(|number| W::Field::of(digits_of(number))) {
                        W::insert(fields, name, value);
                    }
                }
            }
        }
    }
}

/// Appends to `RateLimit-Policy`. Notices a name that an inner limit has.
fn append_policies<W: Middleware>(fields: &mut W::Fields, policies: W::Field) {
    let mut notice = None;
    W::append(fields, W::POLICIES, policies, |outer, inner| {
        notice = notice.take().or_else(|| Notice::of_names(outer.as_ref(), inner.as_ref()));
    });
    if let Some(notice) = notice {
        W::warn(&notice);
    }
}

/// Writes the header fields of the answer to a denied request, except that of the body.
pub fn write_denied<W: Middleware>(
    fields: &mut W::Fields,
    problem: &Problem<'_>,
    policies: Option<&W::Field>,
    headers: Headers,
) {
    if let Some(policies) = policies {
        W::append(fields, W::POLICIES, policies.clone(), |_, _| {});
    }
    problem.write_fields(headers, |name, value| match name {
        // This field describes the body.
        "content-type" => {}
        "cache-control" => write_no_store::<W>(fields),
        // It is a list.
        "ratelimit" => {
            if let Some(value) = W::Field::of(bytes_of(value)) {
                W::append(fields, W::LIMIT, value, |_, _| {});
            }
        }
        name => {
            // All values are printable ASCII.
            if let Some(value) = W::Field::of(bytes_of(value)) {
                W::insert(fields, W::field_name(name), value);
            }
        }
    });
}

/// Keeps caches from an answer, unless it says so itself.
pub fn write_no_store<W: Middleware>(fields: &mut W::Fields) {
    let name = W::field_name("cache-control");
    if W::get(fields, &name).is_none() {
        if let Some(value) = W::Field::of(Bytes::from_static(b"no-store")) {
            W::insert(fields, name, value);
        }
    }
}
