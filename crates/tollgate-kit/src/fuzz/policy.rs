//! What the fuzz target `policy` does: bytes as the text of a policy file, which never panics, is
//! refused with its reason and place or makes a limiter, and is the same when it is printed and
//! read again.

use tollgate::Decision;
use tollgate_policy::{Asked, Policy, Value};

/// What became of one text.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Bytes that are no text at all.
    NoText,
    Refused,
    Policy,
}

/// Reads the bytes. An error says what is not as it must be.
pub fn read(bytes: &[u8]) -> Result<Read, String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(Read::NoText) };
    let policy = match Policy::from_toml(text) {
        Ok(policy) => policy,
        Err(error) => {
            let lines = text.split('\n').count();
            let line = text.split('\n').nth(error.line() - 1).unwrap_or_default();
            if error.line() > lines
                || error.column() > line.chars().count() + 1
                || error.problem().to_string().is_empty()
            {
                return Err(format!("an error without a place or a reason: {error:?}"));
            }
            return Ok(Read::Refused);
        }
    };
    let printed = policy.to_string();
    match Policy::from_toml(&printed) {
        Ok(again) if again == policy => {}
        other => return Err(format!("{policy:?} is printed as\n{printed}\nand that is read as {other:?}")),
    }
    // A policy for a store makes none in process.
    let limiter = policy.without_store().request_limiter();
    let limiter = limiter.map_err(|error| format!("{policy:?} makes no limiter: {error}"))?;
    let value = |field: &String| match field.as_str() {
        "client" => Value::address(policy.client(), [192, 0, 2, 7].into()),
        "path" => "/a/b".into(),
        _ => "key".into(),
    };
    let keys = match limiter.ask(limiter.fields().iter().map(|field| Some(value(field))).collect()) {
        Asked::Lacks { field } => return Err(format!("{policy:?} lacks {}", limiter.fields()[field])),
        Asked::Limits(keys) if keys.iter().any(Option::is_some) => keys,
        _ => return Ok(Read::Policy),
    };
    match limiter.limiter().try_acquire(keys.as_slice()) {
        Ok(Decision::Admitted(_)) => Ok(Read::Policy),
        // Only a bucket that starts empty denies a first request.
        Ok(Decision::Denied(_)) if printed.contains("start = 0") => Ok(Read::Policy),
        other => Err(format!("{policy:?} tells a first request {other:?}")),
    }
}
