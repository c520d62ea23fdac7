//! What a policy says of requests beyond their keys: rules, matches and tiers, on the columns of a
//! log.

use std::net::IpAddr;

use tollgate_policy::{Action, Choice, ClientAddress, Matcher, Policy, Value};

use crate::events::Event;
use crate::key::Field;
use crate::log::Log;

/// The matcher of a policy that is not plain, and the columns that it looks at.
#[derive(Debug)]
pub(crate) struct Matching {
    matcher: Matcher,
    clients: ClientAddress,
    pub(crate) looked: Vec<Looked>,
    /// The rules in words, and what each does.
    pub(crate) rules: Vec<(String, Action)>,
}

/// A field that matches look at.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) field: Field,
    /// Where the log has its values.
    pub(crate) column: usize,
    /// Its place among the fields of the matcher.
    place: usize,
}

/// What is asked of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A rule decides it.
    Rule { rule: usize, action: Action },
    /// No limit is for it.
    Unlimited,
    /// The dimensions that still have a key.
    Limits,
}

impl Matching {
    /// `None` for a plain policy. `field` makes the field of a name that is not a client.
    pub(crate) fn new(policy: &Policy, field: impl Fn(&str) -> Field) -> Option<Self> {
        let matcher = Matcher::new(policy);
        if matcher.is_plain() {
            return None;
        }
        let of_dimensions = policy.dimensions().iter().flat_map(|dimension| {
            let of_tiers = dimension.tiers().iter().flat_map(|tier| tier.matches().fields());
            dimension.matches().fields().chain(of_tiers).chain(dimension.tier_by())
        });
        let names: Vec<&str> =
            policy.rules().iter().flat_map(|rule| rule.matches().fields()).chain(of_dimensions).collect();
        let fields = matcher.fields().iter().enumerate().filter(|(_, name)| names.contains(&name.as_str()));
        let looked = fields.map(|(place, name)| Looked { field: field(name), column: 0, place }).collect();
        let rules = policy.rules().iter().map(|rule| (rule.matches().to_string(), rule.action())).collect();
        Some(Self { matcher, clients: policy.client().clone(), looked, rules })
    }

    /// The values of a request, in the order of the matcher's fields.
    pub(crate) fn read<'l>(&self, log: &'l Log, event: &Event, values: &mut Vec<Option<Value<'l>>>) {
        values.clear();
        values.resize(self.matcher.fields().len(), None);
        for Looked { field, column, place } in &self.looked {
            let text = log.key(event, *column).map(|number| log.keys[*column].text(number as usize));
            values[*place] = match field {
                Field::Address(_) => text
                    .and_then(|text| text.parse::<IpAddr>().ok())
                    .map(|address| Value::address(&self.clients, address)),
                _ => text.map(Value::from),
            };
        }
    }

    /// What is asked of a request. Takes the keys of dimensions that are not, sets the set of quotas
    /// of each that is, and counts a value that names no tier.
    pub(crate) fn ask(
        &self,
        values: &[Option<Value<'_>>],
        keys: &mut [Option<u32>],
        sets: &mut [usize],
        unknown_tiers: &mut u64,
    ) -> Asked {
        if let Some((rule, action)) = self.matcher.rule(values) {
            keys.fill(None);
            return Asked::Rule { rule, action };
        }
        let mut is_asked = false;
        for (dimension, (key, set)) in keys.iter_mut().zip(sets).enumerate() {
            match self.matcher.choice(dimension, values) {
                Choice::Unasked => {
                    *key = None;
                    continue;
                }
                Choice::Own => {
                    *set = 0;
                    *unknown_tiers += u64::from(self.matcher.names_no_tier(dimension, values));
                }
                Choice::Tier(place) => *set = place + 1,
            }
            is_asked = true;
        }
        if is_asked { Asked::Limits } else { Asked::Unlimited }
    }
}
