//! The reader of the vectors' format. Strict, so that nothing in a file can go unchecked.

use std::collections::BTreeMap;

use core::time::Duration;
use serde_json::{Map, Value};

use crate::quota::Quota;

pub(super) type Fault = String;

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

    fn nothing_else(self) -> Result<(), Fault> {
        self.0.keys().next().map_or(Ok(()), |field| Err(format!("unknown field {field:?} in {}", self.1)))
    }
}

/// What is expected; what is missing is not looked at. An answer is `admitted`, `denied` or `never`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expect {
    pub(super) answer: Option<String>,
    pub(super) numbers: BTreeMap<&'static str, u64>,
}

impl Expect {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        let answer = fields.text("answer")?;
        if answer.as_ref().is_some_and(|answer| !["admitted", "denied", "never"].contains(&answer.as_str())) {
            return Err(format!("unknown answer in {value}"));
        }
        let mut numbers = BTreeMap::new();
        for name in ["admitted", "remaining", "retry_ns", "reset_ns", "delay_ns"] {
            numbers.extend(fields.number(name)?.map(|number| (name, number)));
        }
        fields.nothing_else()?;
        if answer.is_none() && numbers.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        Ok(Self { answer, numbers })
    }

    /// Whatever is expected was also got.
    pub(super) fn is_met_by(&self, got: &Self) -> bool {
        (self.answer.is_none() || self.answer == got.answer)
            && self.numbers.iter().all(|(name, number)| got.numbers.get(name) == Some(number))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) at_ns: u64,
    pub(super) what: String,
    pub(super) key: String,
    pub(super) cost: u32,
    pub(super) times: Option<u64>,
    pub(super) every_ns: u64,
    pub(super) expect: Expect,
    pub(super) theirs: Option<Expect>,
}

impl Ask {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        let expect_of = |value: Option<Value>| value.as_ref().map(Expect::read).transpose();
        let ask = Self {
            at_ns: fields.needed("at_ns")?,
            what: fields.text("do")?.unwrap_or_default(),
            key: fields.text("key")?.unwrap_or_else(|| "k".to_owned()),
            cost: fields.number("cost")?.map_or(Ok(1), |cost| u32::try_from(cost).map_err(|_| "a large cost"))?,
            times: fields.number("times")?,
            every_ns: fields.number("every_ns")?.unwrap_or(0),
            expect: expect_of(fields.take("expect"))?.ok_or_else(|| format!("nothing is expected: {value}"))?,
            theirs: expect_of(fields.take("theirs"))?,
        };
        let alone = fields.take("ours_alone").is_some();
        if ask.theirs.is_some() != fields.text("why")?.is_some() || (alone && ask.theirs.is_some()) {
            return Err(format!("`theirs` and `why` go together, and not with `ours_alone`: {value}"));
        }
        if ask.theirs.as_ref().is_some_and(|theirs| theirs.is_met_by(&ask.expect)) {
            return Err(format!("no difference: {value}"));
        }
        if !["acquire", "would", "look"].contains(&ask.what.as_str()) {
            return Err(format!("unknown operation {:?}", ask.what));
        }
        fields.nothing_else().map(|()| ask)
    }
}

fn quota(value: &Value) -> Result<Quota, Fault> {
    let mut fields = Fields::of(value)?;
    let quota = match fields.text("algorithm")?.as_deref() {
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
        unknown => return Err(format!("unknown algorithm {unknown:?}")),
    };
    fields.nothing_else().map(|()| quota)
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) quotas: Vec<Quota>,
    pub(super) error: Option<String>,
    pub(super) asks: Vec<Ask>,
}

impl Case {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut fields = Fields::of(value)?;
        for source in ["repo", "test", "commit"] {
            fields.text(source)?.ok_or_else(|| format!("no {source} in {value}"))?;
        }
        let _ = (fields.text("semantics_there")?, fields.text("note")?, fields.text("why")?);
        let quotas = match fields.take("quota") {
            Some(one) => vec![one],
            None => fields.list("quotas")?,
        };
        let case = Self {
            name: fields.text("name")?.ok_or("no name")?,
            quotas: quotas.iter().map(quota).collect::<Result<_, _>>()?,
            error: fields.text("error")?,
            asks: fields.list("steps")?.iter().map(Ask::read).collect::<Result<_, _>>()?,
        };
        fields.nothing_else().map(|()| case)
    }
}

pub(super) fn read(file: &str) -> Result<Vec<Case>, Fault> {
    let value: Value = serde_json::from_str(file).map_err(|error| error.to_string())?;
    let mut fields = Fields::of(&value)?;
    if fields.number("format")? != Some(2) {
        return Err("not format 2".to_owned());
    }
    let cases = fields.list("cases")?.iter().map(Case::read).collect::<Result<_, _>>()?;
    fields.nothing_else().map(|()| cases)
}
