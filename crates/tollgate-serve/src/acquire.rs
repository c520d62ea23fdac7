//! `POST /acquire`: the values of the fields as JSON.

use crate::ask::Ask;
use crate::fields::{Field, Fields, Values};
use crate::json::Json;
use crate::trouble::Trouble;

/// Reads the body of a request: the values of the fields, the cost, and whether it only looks.
///
/// # Errors
///
/// [`Trouble::Body`] says what to write in its place.
pub(crate) fn parse<'a>(fields: &Fields, body: &'a [u8]) -> Result<(Values<'a>, Ask), Trouble> {
    let Json::Object(members) = Json::read(body)? else { return Err(example(fields, "The body must be an object")) };
    let mut keys = None;
    let mut ask = Ask::default();
    let mut seen = [false; 3];
    for (name, value) in members {
        let place = match &*name {
            "keys" => 0,
            "cost" => 1,
            "peek" => 2,
            _ => return Err(wrong("The members are \"keys\", \"cost\" and \"peek\", and no others.")),
        };
        if core::mem::replace(&mut seen[place], true) {
            return Err(wrong("A member comes twice."));
        }
        match (place, value) {
            (0, Json::Object(members)) => keys = Some(members),
            (0, _) => return Err(example(fields, "\"keys\" must be an object")),
            (1, value) => ask.cost = cost(&value)?,
            (_, Json::Flag(flag)) => ask.is_peek = flag,
            _ => return Err(wrong("\"peek\" must be true or false.")),
        }
    }
    let Some(keys) = keys else { return Err(example(fields, "\"keys\" is missing")) };
    Ok((values(fields, keys)?, ask))
}

fn cost(value: &Json<'_>) -> Result<u32, Trouble> {
    match value {
        Json::Number(cost) if *cost > 0 => {
            u32::try_from(*cost).map_err(|_| wrong("\"cost\" must be an integer from 1 to 4294967295."))
        }
        Json::Number(_) => Err(wrong("\"cost\" must be 1 or more. To look without a charge, set \"peek\" to true.")),
        _ => Err(wrong("\"cost\" must be an integer from 1 to 4294967295.")),
    }
}

fn values<'a>(fields: &Fields, members: Vec<(std::borrow::Cow<'a, str>, Json<'a>)>) -> Result<Values<'a>, Trouble> {
    let mut values = fields.none();
    let mut seen = vec![false; fields.list().len()];
    for (name, value) in members {
        let Some(place) = fields.place(&name) else {
            return Err(wrong(format!("The policy has the fields {} and no others.", fields.in_words())));
        };
        let field = &fields.list()[place];
        if core::mem::replace(&mut seen[place], true) {
            return Err(of_field(field, "comes twice"));
        }
        values[place] = match value {
            Json::Text(text) => Some(field.value(text).map_err(|unfit| of_field(field, unfit.in_words()))?),
            Json::Null if field.is_optional || !field.is_in_key => None,
            _ => return Err(of_field(field, "must be a string")),
        };
    }
    Ok(values)
}

/// A request lacks a field that it needs.
pub(crate) fn lacks(field: &Field) -> Trouble {
    of_field(field, "is missing")
}

fn of_field(field: &Field, what: &str) -> Trouble {
    wrong(format!("The field {:?} {what}.", field.name))
}

fn example(fields: &Fields, what: &str) -> Trouble {
    let needed = fields.list().iter().filter(|field| field.is_in_key);
    let members: Vec<String> = needed.map(|field| format!("{:?}: \"...\"", field.name)).collect();
    wrong(format!("{what}: {{\"keys\": {{{}}}, \"cost\": 1}}.", members.join(", ")))
}

fn wrong(detail: impl Into<String>) -> Trouble {
    Trouble::Body(detail.into())
}
