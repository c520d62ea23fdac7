//! Where the parts of a request are among the columns of a log.

use super::costs::Costs;
use super::record::{MATCH, Wanted, named};
use crate::errors::FileError;
use crate::key::{Field, KeyText};

/// Places of columns, counted from 0.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) time: usize,
    pub(super) key: Vec<Part>,
    pub(super) costs: Costs<usize>,
}

/// The column of a part of a key.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) field: Field,
    /// `None` if there is none, and only matches look at it.
    pub(super) at: Option<usize>,
    /// The column with the header field of proxies.
    pub(super) forwarded: Option<usize>,
}

impl Columns {
    /// Finds what is wanted among the columns of these names. `time_names` are usual names of the
    /// time, the likeliest first.
    pub(super) fn find(there: &[String], wanted: &Wanted, time_names: &[&str]) -> Result<Self, FileError> {
        let time_name = wanted.time_column.as_deref();
        let time = time_name.map_or_else(|| column(time_names, there), |name| column(&[name], there));
        let time = time.ok_or_else(|| no_column(named("time", time_name), "--time-column", there))?;
        let mut key = Vec::new();
        for (field, option) in wanted.parts() {
            let forwarded = column(&field.forwarded_names(), there);
            // Where the header field is all there is, it ends with the peer.
            let at = column(&field.column_names(), there).or(forwarded);
            let wanted =
                || if option == "--where" { format!("field {field} of --where") } else { format!("key {field}") };
            if at.is_none() && option != MATCH {
                return Err(no_column(wanted(), option, there));
            }
            key.push(Part { field: field.clone(), at, forwarded: forwarded.filter(|it| Some(*it) != at) });
        }
        let costs = Costs::find(wanted, |name, kind| {
            let missing = || no_column(named(kind.what(), Some(name)), kind.option(), there);
            column(&[name], there).ok_or_else(missing)
        })?;
        Ok(Self { time, key, costs })
    }

    /// Pushes every part of a key. `value` gives that of a column.
    pub(super) fn push<'a>(&self, key: &mut KeyText, value: impl Fn(usize) -> Option<&'a [u8]>) {
        for Part { field, at, forwarded } in &self.key {
            let line = forwarded.and_then(&value);
            key.push_part(field, at.and_then(&value), line.as_slice());
        }
    }
}

/// The first of the names that there is a column for.
pub(super) fn column(names: &[&str], there: &[String]) -> Option<usize> {
    names.iter().find_map(|name| {
        let exactly = there.iter().position(|column| column == name);
        exactly.or_else(|| there.iter().position(|column| column.eq_ignore_ascii_case(name)))
    })
}

pub(super) fn no_column(wanted: String, option: &'static str, there: &[String]) -> FileError {
    FileError::NoColumn { wanted, option, there: there.to_vec() }
}
