//! The reader of the vectors' format, number 2. Strict, so that nothing in a file can go unchecked:
//! an unknown field or word is an error, and so is a step of which nothing is expected.
//!
//! A case names its `repo`, `test` and `commit`; it has a `quota` (or `quotas`: several on one key,
//! all of which must admit) and `steps`. Times are in nanoseconds after the clock's origin. A step
//! does one of:
//!
//! - `acquire` (`cost`, 1 unless said; `times`, and `every_ns` between them): `answer` (admitted,
//!   denied, never), and then `remaining`, `reset_ns`, and `retry_ns` or `delay_ns`, or the `quota`
//!   that decides a denial; of a repeated one only how often it was `admitted`.
//! - `would`: the same, and charges nothing.
//! - `look`: `remaining` and `reset_ns`, and charges nothing.
//! - `forget`: nothing.
//!
//! `expect` is what ours must answer. Where the source differs, `theirs` has its expectation and
//! `why` the difference. A step with `ours_alone` is not in the source: `theirs` is then what the
//! source answers by its rules. A case with an `error` is about quotas that ours refuses, with that
//! error; its steps are what the source answers instead, and `why`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tollgate::Quota;

pub type Fault = String;

/// An object whose fields are read one by one, and none of them overlooked.
struct Fields<'v>(Map<String, Value>, &'v Value);

impl<'v> Fields<'v> {
    fn of(value: &'v Value) -> Result<Self, Fault> {
        value.as_object().map(|object| Self(object.clone(), value)).ok_or_else(|| format!("not an object: {value}"))
    }

    fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field)
    }

    fn number(&mut self, field: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(field) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| format!("{field} is no natural number: {value}"))
    }

    fn small(&mut self, field: &str) -> Result<u32, Fault> {
        let number = self.needed(field)?;
        u32::try_from(number).map_err(|_| format!("{field} is too large: {number}"))
    }

    fn needed(&mut self, field: &str) -> Result<u64, Fault> {
        self.number(field)?.ok_or_else(|| format!("no {field} in {}", self.1))
    }

    fn nanos(&mut self, field: &str) -> Result<Duration, Fault> {
        self.needed(field).map(Duration::from_nanos)
    }

    fn text(&mut self, field: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.take(field) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| format!("{field} is no text: {value}"))
    }

    fn list(&mut self, field: &str) -> Result<Vec<Value>, Fault> {
        match self.take(field) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(format!("no list {field} in {}", self.1)),
        }
    }

    fn flag(&mut self, field: &str) -> Result<bool, Fault> {
        let Some(value) = self.take(field) else { return Ok(false) };
        value.as_bool().ok_or_else(|| format!("{field} is neither true nor false: {value}"))
    }

    fn nothing_else(self) -> Result<(), Fault> {
        self.0.keys().next().map_or(Ok(()), |field| Err(format!("unknown field {field:?} in {}", self.1)))
    }
}

/// What is expected; what is missing is not looked at. An answer is `admitted`, `denied` or
/// `never`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expect {
    pub answer: Option<String>,
    pub numbers: BTreeMap<&'static str, u64>,
}

impl Expect {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        let answer = fields.text("answer")?;
        if answer.as_ref().is_some_and(|answer| !["admitted", "denied", "never"].contains(&answer.as_str())) {
            return Err(format!("unknown answer in {value}"));
        }
        let mut numbers = BTreeMap::new();
        for name in ["admitted", "remaining", "retry_ns", "reset_ns", "delay_ns", "quota"] {
            numbers.extend(fields.number(name)?.map(|number| (name, number)));
        }
        fields.nothing_else()?;
        if answer.is_none() && numbers.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        Ok(Self { answer, numbers })
    }

    /// As it is told to people.
    pub fn in_words(&self) -> String {
        let numbers = self.numbers.iter().map(|(name, number)| format!("{name} {number}"));
        self.answer.iter().cloned().chain(numbers).collect::<Vec<_>>().join(", ")
    }

    /// Whatever is expected was also got.
    pub fn is_met_by(&self, got: &Self) -> bool {
        (self.answer.is_none() || self.answer == got.answer)
            && self.numbers.iter().all(|(name, number)| got.numbers.get(name) == Some(number))
    }
}

#[derive(Debug, Clone)]
pub struct Ask {
    pub at_ns: u64,
    pub what: String,
    pub key: String,
    pub cost: u32,
    pub times: Option<u64>,
    pub every_ns: u64,
    /// Empty for what is forgotten.
    pub expect: Expect,
    /// What the source answers where ours differs, and why.
    pub theirs: Option<(Expect, String)>,
    pub ours_alone: bool,
}

impl Ask {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        let expect_of = |value: Option<Value>| value.as_ref().map(Expect::read).transpose();
        let what = fields.text("do")?.unwrap_or_default();
        let expect = match (what.as_str(), expect_of(fields.take("expect"))?) {
            ("acquire" | "would" | "look", Some(expect)) => expect,
            ("forget", None) => Expect::default(),
            ("acquire" | "would" | "look" | "forget", _) => {
                return Err(format!("nothing to expect, or too much: {value}"));
            }
            _ => return Err(format!("unknown operation {what:?}")),
        };
        let theirs = match (expect_of(fields.take("theirs"))?, fields.text("why")?) {
            (Some(theirs), Some(_)) if theirs.is_met_by(&expect) => return Err(format!("no difference: {value}")),
            (Some(theirs), Some(why)) => Some((theirs, why)),
            (None, None) => None,
            _ => return Err(format!("`theirs` and `why` go together: {value}")),
        };
        let ask = Self {
            at_ns: fields.needed("at_ns")?,
            what,
            key: fields.text("key")?.unwrap_or_else(|| "k".to_owned()),
            cost: fields.number("cost")?.map_or(Ok(1), |cost| u32::try_from(cost).map_err(|_| "a large cost"))?,
            times: fields.number("times")?,
            every_ns: fields.number("every_ns")?.unwrap_or(0),
            expect,
            theirs,
            ours_alone: fields.flag("ours_alone")?,
        };
        fields.nothing_else().map(|()| ask)
    }
}

fn quota(value: &Value) -> Result<Quota, Fault> {
    let mut fields = Fields::of(value)?;
    let quota = match fields.text("algorithm")?.as_deref() {
        Some("sliding_window_log") => Quota::new(fields.small("limit")?, fields.nanos("window_ns")?),
        Some("token_bucket") => {
            let bucket =
                Quota::token_bucket(fields.small("capacity")?, fields.small("refill")?, fields.nanos("per_ns")?);
            let starting = fields.0.contains_key("starting_with").then(|| fields.small("starting_with")).transpose()?;
            starting.map_or(bucket, |permits| bucket.starting_with(permits))
        }
        Some("leaky_bucket") => {
            Quota::leaky_bucket(fields.small("capacity")?, fields.small("leak")?, fields.nanos("per_ns")?)
        }
        Some("leaky_queue") => {
            Quota::leaky_queue(fields.small("leak")?, fields.nanos("per_ns")?, fields.nanos("max_delay_ns")?)
        }
        Some("fixed_window") => {
            let plain = Quota::fixed_window(fields.small("limit")?, fields.nanos("window_ns")?);
            fields.number("phase_ns")?.map_or(plain, |phase| plain.aligned(Duration::from_nanos(phase)))
        }
        Some("sliding_counter") => Quota::sliding_counter(fields.small("limit")?, fields.nanos("window_ns")?),
        Some("warm_up") => {
            let (limit, rate) = (fields.small("limit")?, fields.small("rate")?);
            Quota::warm_up(limit, rate, fields.nanos("per_ns")?, fields.nanos("warm_up_ns")?)
        }
        unknown => return Err(format!("unknown algorithm {unknown:?}")),
    };
    fields.nothing_else().map(|()| quota)
}

#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub repo: String,
    pub test: String,
    pub commit: String,
    pub quotas: Vec<Quota>,
    pub error: Option<String>,
    pub asks: Vec<Ask>,
    /// What there is to say about the case as a whole.
    pub said: Vec<String>,
}

impl Case {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        let mut named =
            |field: &str| fields.text(field).and_then(|text| text.ok_or_else(|| format!("no {field} in {value}")));
        let (name, repo, test, commit) = (named("name")?, named("repo")?, named("test")?, named("commit")?);
        let _ = fields.text("semantics_there")?;
        let (note, why, error) = (fields.text("note")?, fields.text("why")?, fields.text("error")?);
        if why.is_some() && error.is_none() {
            return Err(format!("{name}: `why` belongs to an `error` or to a step"));
        }
        let quotas = match fields.take("quota") {
            Some(one) => vec![one],
            None => fields.list("quotas")?,
        };
        let in_case = |fault| format!("{name}: {fault}");
        let case = Self {
            quotas: quotas.iter().map(quota).collect::<Result<_, _>>()?,
            asks: fields.list("steps")?.iter().map(Ask::read).collect::<Result<_, _>>().map_err(in_case)?,
            said: note.into_iter().chain(why).collect(),
            name,
            repo,
            test,
            commit,
            error,
        };
        fields.nothing_else().map(|()| case)
    }
}

pub fn read(file: &str) -> Result<Vec<Case>, Fault> {
    let value: Value = serde_json::from_str(file).map_err(|error| error.to_string())?;
    let mut fields = Fields::of(&value)?;
    if fields.number("format")? != Some(2) {
        return Err("not format 2".to_owned());
    }
    let cases = fields.list("cases")?.iter().map(Case::read).collect::<Result<_, _>>()?;
    fields.nothing_else().map(|()| cases)
}
