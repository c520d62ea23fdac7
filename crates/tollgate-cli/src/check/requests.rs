//! The requests that a part of a policy is for, in words; and which part is for all of another's.

use core::fmt;
use std::net::IpAddr;
use std::path::Path;

use tollgate_policy::{Dimension, Match, PolicyTier};

use crate::words::{count_of, human};

/// The requests whose fields each have one of some values.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests<'a>(Vec<Condition<'a>>);

#[derive(Debug, Clone)]
struct Condition<'a> {
    field: &'a str,
    values: Vec<&'a str>,
    file: Option<&'a Path>,
}

impl<'a> Requests<'a> {
    /// Those of a match.
    pub(super) fn of(matches: &'a Match) -> Self {
        let condition = |field| Condition { field, values: matches.values(field).collect(), file: matches.file(field) };
        Self(matches.fields().map(condition).collect())
    }

    /// Those of a tier; `None` if a program chooses it.
    pub(super) fn of_tier(dimension: &'a Dimension, tier: &'a PolicyTier) -> Option<Self> {
        if !tier.matches().is_any() {
            return Some(Self::of(tier.matches()));
        }
        let field = dimension.tier_by()?;
        Some(Self(vec![Condition { field, values: vec![tier.name()], file: None }]))
    }

    /// Those of these that are also among others.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether all of the others are among these, as far as texts and networks tell: each field has
    /// values that are all among those of these.
    pub(super) fn have_all(&self, others: &Self) -> bool {
        self.0.iter().all(|wide| {
            let mut narrow = others.0.iter().filter(|narrow| narrow.field == wide.field);
            narrow.any(|narrow| narrow.values.iter().all(|value| wide.has(value)))
        })
    }

    fn condition(&self, field: &str) -> Option<&Condition<'a>> {
        self.0.iter().find(|condition| condition.field == field)
    }
}

impl Condition<'_> {
    fn has(&self, value: &str) -> bool {
        let holds = |network| self.values.iter().filter_map(|wide| Network::parse(wide)).any(|it| it.holds(&network));
        self.values.contains(&value) || (self.field == "client" && Network::parse(value).is_some_and(holds))
    }
}

/// Clients alone are `clients in 192.0.2.0/24`; others `requests with path /login`.
impl fmt::Display for Requests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => return f.write_str("all requests"),
            [clients] if clients.field == "client" => return write!(f, "clients in {clients}"),
            _ => f.write_str("requests")?,
        }
        let mut word = " with";
        for field in ["method", "path", "host"] {
            if let Some(condition) = self.condition(field) {
                write!(f, "{word} {field} {condition}")?;
                word = " and";
            }
        }
        if let Some(clients) = self.condition("client") {
            write!(f, " from clients in {clients}")?;
        }
        let mut word = " whose";
        let is_other = |it: &&Condition<'_>| !["method", "path", "host", "client"].contains(&it.field);
        for condition in self.0.iter().filter(is_other) {
            write!(f, "{word} {} is {condition}", field_in_words(condition.field))?;
            word = " and whose";
        }
        Ok(())
    }
}

/// The most values that are shown.
const SHOWN: usize = 5;

/// The values.
impl fmt::Display for Condition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file {
            return write!(f, "one of the {} of {}", human(count_of(self.values.len())), file.display());
        }
        f.write_str(&self.values[..self.values.len().min(SHOWN)].join(" or "))?;
        match self.values.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " or {} more", human(count_of(more))),
        }
    }
}

/// `header x-plan`.
pub(super) fn field_in_words(field: &str) -> String {
    field.strip_prefix("header.").map_or_else(|| field.to_owned(), |name| format!("header {name}"))
}

/// A network of clients, or one address.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        Some(Self { address, bits: bits.map_or(Some(all), |bits| bits.parse().ok())? })
    }

    fn holds(&self, other: &Self) -> bool {
        let differ = match (self.address, other.address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        self.bits <= other.bits && differ.leading_zeros() >= self.bits
    }
}

#[cfg(test)]
mod tests {
    use tollgate_policy::Policy;

    use super::*;

    fn policy(matches: &[&str]) -> Policy {
        let rule = |matches: &&str| format!("[[rule]]\nmatch = {{ {matches} }}\naction = \"deny\"\n");
        let rules: String = matches.iter().map(rule).collect();
        let text = format!("{rules}[[dimension]]\nname = \"user\"\nquota = [{{ limit = 5, per = \"1m\" }}]\n");
        Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn requests_are_told_in_words() {
        for (matches, words) in [
            ("path = \"/health\"", "requests with path /health"),
            ("client = [\"192.0.2.0/24\", \"2001:db8::7\"]", "clients in 192.0.2.0/24 or 2001:db8::7"),
            ("header.x-plan = \"premium\"", "requests whose header x-plan is premium"),
            (
                "user = \"ann\", header.x-b = \"1\", client = \"10.0.0.0/8\", host = \"a.b\", path = \"/\", method = [\"PUT\", \"POST\"]",
                "requests with method PUT or POST and path / and host a.b from clients in 10.0.0.0/8 whose \
                 header x-b is 1 and whose user is ann",
            ),
            (
                "user = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\"]",
                "requests whose user is a or b or c or d or e or 2 more",
            ),
        ] {
            assert_eq!(Requests::of(policy(&[matches]).rules()[0].matches()).to_string(), words);
        }
    }

    #[test]
    fn all_requests_of_a_match_are_known_to_be_among_those_of_a_wider_one() {
        for (wide, narrow, expected) in [
            ("path = \"/a\"", "path = \"/a\"", true),
            ("path = [\"/b\", \"/a\"]", "path = \"/a\"", true),
            ("path = \"/a\"", "path = [\"/a\", \"/b\"]", false),
            ("path = \"/a\"", "path = \"/a\", method = \"GET\"", true),
            ("path = \"/a\", method = \"GET\"", "path = \"/a\"", false),
            ("user = \"/a\"", "path = \"/a\"", false),
            ("client = \"10.0.0.0/8\"", "client = [\"10.1.2.3\", \"10.128.0.0/9\"]", true),
            ("client = \"10.0.0.0/8\"", "client = \"11.0.0.0/8\"", false),
            ("client = \"10.0.0.0/9\"", "client = \"10.0.0.0/8\"", false),
            ("client = \"0.0.0.0/0\"", "client = \"10.0.0.0/8\"", true),
            ("client = \"0.0.0.0/0\"", "client = \"::/0\"", false),
            ("client = \"::/0\"", "client = \"2001:db8::7\"", true),
        ] {
            let policy = policy(&[wide, narrow]);
            let [wide_ones, narrow_ones] = [0, 1].map(|at| Requests::of(policy.rules()[at].matches()));
            assert_eq!(wide_ones.have_all(&narrow_ones), expected, "{wide} {narrow}");
        }
    }
}
