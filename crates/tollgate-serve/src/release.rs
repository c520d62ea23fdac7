//! `POST /release`: the token of a request in flight as JSON.

use std::borrow::Cow;

use crate::json::Json;
use crate::trouble::Trouble;

/// Reads the body of a request: the text of a token.
///
/// # Errors
///
/// [`Trouble::Body`] says what to write in its place.
pub(crate) fn parse(body: &[u8]) -> Result<Cow<'_, str>, Trouble> {
    let json = Json::read(body)?;
    match json {
        Json::Object(mut members) if members.len() == 1 => match members.pop() {
            Some((name, Json::Text(token))) if name == "token" => Ok(token),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn wrong() -> Trouble {
    Trouble::Body("The body must be an object with the token of the answer alone: {\"token\": \"...\"}.".to_owned())
}
