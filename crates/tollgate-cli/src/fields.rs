//! The options that a quota is made of: one for each field that the library knows.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use tollgate::schema::{Field, FieldError, FieldKind, FieldValue};
use tollgate::{Algorithm, Calendar, Quota, Zone, parse_duration};

use crate::errors::RunError;
use crate::number::check_digits;
use crate::words::human;

/// The option of a field: `--max-delay`.
pub(crate) fn option(field: Field) -> String {
    match field {
        Field::CountingRefused => "--count-refused".to_owned(),
        _ => format!("--{}", field.name().replace('_', "-")),
    }
}

/// A meaning, with options in place of fields.
fn with_options(meaning: &str) -> String {
    let parts = meaning.split('`').enumerate();
    parts
        .map(|(at, part)| Field::from_name(part).filter(|_| at % 2 == 1).map_or_else(|| part.to_owned(), option))
        .collect()
}

/// Reads the name of an algorithm.
pub(crate) fn parse_algorithm() -> impl TypedValueParser<Value = Algorithm> {
    let value = |algorithm: &Algorithm| PossibleValue::new(algorithm.name()).help(with_options(algorithm.meaning()));
    PossibleValuesParser::new(Algorithm::ALL.iter().map(value))
        .try_map(|name| Algorithm::from_name(&name).ok_or("no algorithm"))
}

/// Reads a value of a field.
fn parser(field: Field) -> fn(&str) -> Result<FieldValue, String> {
    match field.kind() {
        _ if field == Field::Per => |text| match Calendar::from_name(text) {
            Some(calendar) => Ok(FieldValue::Calendar(calendar)),
            None => parse_duration(text).map(FieldValue::Duration).map_err(|error| error.to_string()),
        },
        FieldKind::Number => |text| parse_count(text).map(FieldValue::Number),
        FieldKind::Duration => |text| parse_duration(text).map(FieldValue::Duration).map_err(|error| error.to_string()),
        FieldKind::Flag => |_| Ok(FieldValue::Flag(true)),
        FieldKind::Zone => |text| Zone::named(text).map(FieldValue::Zone).map_err(|error| error.to_string()),
    }
}

/// The options of all fields, or of the [special](is_special) ones.
#[derive(Debug)]
pub(crate) struct FieldArgs<const SPECIAL: bool>(Vec<(Field, Vec<FieldValue>)>);

/// What a limit and a window leave out.
pub(crate) type SpecialArgs = FieldArgs<true>;

impl<const SPECIAL: bool> FieldArgs<SPECIAL> {
    /// In the order of the algorithms that have them.
    fn fields() -> Vec<Field> {
        let mut fields = Vec::new();
        for algorithm in Algorithm::ALL {
            for &field in algorithm.needed_fields().iter().chain(algorithm.optional_fields()) {
                if !fields.contains(&field) && (!SPECIAL || is_special(field)) {
                    fields.push(field);
                }
            }
        }
        fields
    }

    /// The fields that are given.
    pub(crate) fn given(&self) -> impl Iterator<Item = Field> {
        self.0.iter().map(|(field, _)| *field)
    }

    /// The values of a field, one for each time that it is given.
    pub(crate) fn values(&self, field: Field) -> &[FieldValue] {
        self.0.iter().find(|(given, _)| *given == field).map_or(&[], |(_, values)| values)
    }

    /// One value of each field that is given: that in this place, or the last.
    pub(crate) fn row(&self, at: usize) -> Vec<(Field, FieldValue)> {
        self.0.iter().filter_map(|(field, values)| Some((*field, *values.get(at).or(values.last())?))).collect()
    }
}

impl<const SPECIAL: bool> Args for FieldArgs<SPECIAL> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::fields().into_iter().map(|field| {
            let arg = Arg::new(field.name()).long(option(field)[2..].to_owned()).action(ArgAction::Append);
            let arg = arg.help(with_options(field.meaning())).value_parser(parser(field));
            match field.kind() {
                FieldKind::Number => arg.value_name("N").allow_negative_numbers(true),
                FieldKind::Duration if field == Field::Per => {
                    let help = format!("{}: 500ms, 10s, 1m, 1h, 1d, 1h30m, month", with_options(field.meaning()));
                    arg.alias("window").value_name("DURATION").allow_hyphen_values(true).help(help)
                }
                FieldKind::Duration => arg.value_name("DURATION").allow_hyphen_values(true),
                FieldKind::Flag => arg.num_args(0).default_missing_value("true"),
                FieldKind::Zone => arg.value_name("ZONE"),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SPECIAL: bool> FromArgMatches for FieldArgs<SPECIAL> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Self::fields()
            .into_iter()
            .filter_map(|field| Some((field, matches.get_many(field.name())?.copied().collect())));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|args| *self = args)
    }
}

/// Whether the field is a duration that some algorithm needs besides the window.
pub(crate) fn is_special(field: Field) -> bool {
    let needs = |algorithm: &Algorithm| algorithm.needed_fields().contains(&field);
    field.kind() == FieldKind::Duration && field != Field::Per && Algorithm::ALL.iter().any(needs)
}

/// The valid quota of these fields.
pub(crate) fn quota(algorithm: Algorithm, fields: &[(Field, FieldValue)]) -> Result<Quota, RunError> {
    Quota::from_fields(algorithm, fields).map_err(|error| match error {
        FieldError::Invalid(error) => RunError::Limit(error.into()),
        other => RunError::Options(other.to_string()),
    })
}

/// Reads a number of permits. How many an algorithm takes at most is said here too: a number that
/// is past all of them is told the true range and not that of some integer.
pub(crate) fn parse_count(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse::<u32>().map_err(|_| {
        if let Err(why) = check_digits(text) {
            return why;
        }
        let (log, counter, others) = (Quota::MAX_LIMIT, Quota::MAX_COUNTER_LIMIT, Quota::MAX_CAPACITY);
        format!(
            "at least 1 and at most {} (sliding-window-log), {} (sliding-counter) or {} (the other algorithms)",
            human(log.into()),
            human(counter.into()),
            human(others.into())
        )
    })
}
