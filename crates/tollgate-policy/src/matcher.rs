//! [`Matcher`]: which rule, which dimensions and which tiers a request is for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::condition::Test;
use crate::matches::Match;
use crate::model::{Dimension, Policy};
use crate::rule::Action;
use crate::values::{Part, Value};

/// What a policy says of requests by the values of their fields: which rule decides one, and which
/// dimensions and tiers it is asked of. It is the same in layers, `tollgate serve`, `tollgate replay`
/// and on a store.
///
/// Values are given in the order of [`fields`](Self::fields), `None` for those that a request lacks.
///
/// ```
/// use tollgate_policy::{Choice, Matcher, Policy};
///
/// let policy = Policy::from_toml(r#"
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 100, per = "1m" }]
///
///     [[dimension.tier]]
///     name = "export"
///     match = { path = "/export/{*rest}" }
///     quota = [{ limit = 2, per = "1m" }]
/// "#)?;
/// let matcher = Matcher::new(&policy);
/// assert_eq!(matcher.fields(), ["user", "path"]);
/// let choice = |path: &'static str| matcher.choice(0, &[Some("alice".into()), Some(path.into())]);
/// assert_eq!(choice("/"), Choice::Own);
/// assert_eq!(choice("/export/all"), Choice::Tier(0));
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Matcher {
    fields: Vec<String>,
    /// How many of the fields, the first, are parts of keys.
    key_fields: usize,
    rules: Vec<(Tests, Action)>,
    dimensions: Vec<OfDimension>,
}

/// The quotas of a dimension that a request is decided by.
///
/// ```
/// use tollgate_policy::{Choice, Matcher, Policy};
///
/// let text = "[[dimension]]\nname = \"user\"\nmatch = { path = \"/\" }\nquota = [{ limit = 5, per = \"1m\" }]";
/// let matcher = Matcher::new(&Policy::from_toml(text)?);
/// assert_eq!(matcher.choice(0, &[Some("alice".into()), None]), Choice::Unasked);
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// None: the dimension does not limit it.
    Unasked,
    /// Those of the dimension.
    Own,
    /// Those of the tier in this place.
    Tier(usize),
}

/// The tests of a match, each of a field in this place. All must hold.
#[derive(Debug, Clone)]
struct Tests(Vec<(usize, Test)>);

#[derive(Debug, Clone)]
struct OfDimension {
    parts: Arc<[Part]>,
    tests: Tests,
    /// The tiers with a match, in order.
    matched: Vec<(Tests, usize)>,
    /// The field whose value names a tier, and the tiers by their names.
    named: Option<(usize, HashMap<Box<str>, usize>)>,
    /// Of each tier, whether it is unlimited.
    unlimited: Vec<bool>,
}

/// Collects the fields of a policy in the order in which it names them.
struct Fields(Vec<String>);

impl Fields {
    fn place(&mut self, name: &str) -> usize {
        self.0.iter().position(|field| field == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }

    fn tests(&mut self, matches: &Match) -> Tests {
        // What was read has only values that can be tested by.
        let tests = matches.conditions.iter().filter_map(|condition| {
            Some((self.place(&condition.field), Test::new(&condition.field, &condition.values).ok()?))
        });
        Tests(tests.collect())
    }

    fn parts(&mut self, dimension: &Dimension) -> Arc<[Part]> {
        let part = |name| {
            let (field, bits) = Part::parse(name);
            Part { field: self.place(field), bits }
        };
        dimension.key().map(part).collect()
    }

    fn dimension(&mut self, dimension: &Dimension, parts: Arc<[Part]>) -> OfDimension {
        let tiers = || dimension.tiers.iter().enumerate();
        let matched = tiers().filter(|(_, tier)| !tier.matches.is_any());
        let named = dimension.tier_by.as_ref().map(|field| {
            let named = tiers().filter(|(_, tier)| tier.matches.is_any());
            (self.place(field), named.map(|(at, tier)| (tier.name.clone(), at)).collect())
        });
        OfDimension {
            parts,
            tests: self.tests(&dimension.matches),
            matched: matched.map(|(at, tier)| (self.tests(&tier.matches), at)).collect(),
            named,
            unlimited: tiers().map(|(_, tier)| tier.quotas.is_empty()).collect(),
        }
    }
}

impl Tests {
    fn hold(&self, values: &[Option<Value<'_>>]) -> bool {
        self.0.iter().all(|(field, test)| matches!(values.get(*field), Some(Some(value)) if test.holds(value)))
    }
}

impl Matcher {
    /// The matcher of a policy.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let mut fields = Fields(Vec::new());
        // The fields of keys come first: requests need them.
        let parts: Vec<_> = policy.dimensions().iter().map(|dimension| fields.parts(dimension)).collect();
        let key_fields = fields.0.len();
        let rules = policy.rules().iter().map(|rule| (fields.tests(&rule.matches), rule.action)).collect();
        let dimensions = policy.dimensions().iter().zip(parts);
        let dimensions = dimensions.map(|(dimension, parts)| fields.dimension(dimension, parts)).collect();
        Self { fields: fields.0, key_fields, rules, dimensions }
    }

    /// The fields that the policy names: those of keys, then those of matches and tiers.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The first rule that the request matches, by its place in the policy, and what it does.
    #[must_use]
    pub fn rule(&self, values: &[Option<Value<'_>>]) -> Option<(usize, Action)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, (tests, _))| tests.hold(values)).map(|(at, (_, action))| (at, *action))
    }

    /// The quotas by which a dimension decides the request: those of the first tier whose match holds;
    /// else those of the tier that the value of `tier_by` names; else its own.
    #[must_use]
    pub fn choice(&self, dimension: usize, values: &[Option<Value<'_>>]) -> Choice {
        let Some(of) = self.dimensions.get(dimension).filter(|of| of.tests.hold(values)) else {
            return Choice::Unasked;
        };
        let matched = of.matched.iter().find(|(tests, _)| tests.hold(values)).map(|(_, at)| *at);
        let named = || {
            let (field, tiers) = of.named.as_ref()?;
            tiers.get(values.get(*field)?.as_ref()?.text()?).copied()
        };
        match matched.or_else(named) {
            None => Choice::Own,
            Some(at) if of.unlimited[at] => Choice::Unasked,
            Some(at) => Choice::Tier(at),
        }
    }

    /// Whether the request has a value of `tier_by` of this dimension that names none of its tiers.
    #[must_use]
    pub fn names_no_tier(&self, dimension: usize, values: &[Option<Value<'_>>]) -> bool {
        let named = self.dimensions.get(dimension).and_then(|of| of.named.as_ref());
        named.is_some_and(|(field, tiers)| match values.get(*field) {
            Some(Some(value)) => value.text().is_none_or(|text| !tiers.contains_key(text)),
            _ => false,
        })
    }

    /// The first field of the key of a dimension that the request lacks.
    #[must_use]
    pub fn lacks(&self, dimension: usize, values: &[Option<Value<'_>>]) -> Option<usize> {
        let parts = &self.dimensions.get(dimension)?.parts;
        parts.iter().find(|part| part.is_in(values) == Some(false)).map(|part| part.field)
    }

    /// Whether a dimension has a key for the request: each field has a value, and an IPv4 client no
    /// part that is an IPv6 network.
    #[must_use]
    pub fn has_key(&self, dimension: usize, values: &[Option<Value<'_>>]) -> bool {
        let of = self.dimensions.get(dimension);
        of.is_some_and(|of| of.parts.iter().all(|part| part.is_in(values) == Some(true)))
    }

    pub(crate) const fn key_fields(&self) -> usize {
        self.key_fields
    }

    pub(crate) fn parts(&self, dimension: usize) -> &Arc<[Part]> {
        &self.dimensions[dimension].parts
    }

    /// Whether the policy decides all requests by the keys of all its dimensions, without rules,
    /// matches and tiers.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let is_plain = |of: &OfDimension| of.tests.0.is_empty() && of.matched.is_empty() && of.named.is_none();
        self.rules.is_empty() && self.dimensions.iter().all(is_plain)
    }

    /// The number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions.len()
    }
}
