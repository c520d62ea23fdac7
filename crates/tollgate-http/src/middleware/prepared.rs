//! The policies of quotas, made once for each revision of them.

use core::time::Duration;

use bytes::Bytes;
use tollgate::{Quota, Status};

use super::gate::Violated;
use super::gate::sealed::Ask;
use super::values::FieldValue;
use crate::limit::{ServiceLimit, Usage};
use crate::policy::{Policies, Policy, PolicyError, QuotaUnit};

/// The quotas of a limiter, and what clients are told about them.
#[derive(Debug)]
pub(crate) struct Prepared<V> {
    /// Those of each dimension.
    quotas: Vec<Box<[Quota]>>,
    /// One for each quota, dimension by dimension. There are none if no policy can be made, of which
    /// no quota is known that a limiter would take.
    policies: Option<Policies>,
    /// The value of `RateLimit-Policy`, as the framework has it.
    field: Option<V>,
}

/// Collects the quotas of each dimension.
pub(crate) struct Collect<'a> {
    name: &'a str,
    unit: QuotaUnit,
    quotas: Vec<Box<[Quota]>>,
    policies: Vec<Policy>,
}

impl<'a> Collect<'a> {
    /// `name` is for quotas without a dimension.
    pub(crate) const fn new(name: &'a str, unit: QuotaUnit) -> Self {
        Self { name, unit, quotas: Vec::new(), policies: Vec::new() }
    }

    /// The quotas of the next dimension.
    pub(crate) fn push(&mut self, dimension: Option<&str>, quotas: &[Quota]) {
        let place = self.quotas.len() + 1;
        let name = dimension.unwrap_or(self.name);
        let name = if check_name(name).is_ok() { name.to_owned() } else { format!("dimension-{place}") };
        for quota in quotas {
            let name = if quotas.len() == 1 { name.clone() } else { format!("{name}-{}", window(quota.window())) };
            let name = self.not_taken(name);
            self.policies.extend(Policy::of(&name, quota).map(|policy| policy.unit(self.unit)));
        }
        self.quotas.push(quotas.into());
    }

    /// The name, or one with a number if another policy has it.
    fn not_taken(&self, name: String) -> String {
        let is_taken = |name: &str| self.policies.iter().any(|policy| policy.name() == name);
        if !is_taken(&name) {
            return name;
        }
        let mut numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        numbered.find(|name| !is_taken(name)).unwrap_or(name)
    }

    pub(crate) fn finish<V: FieldValue>(self) -> Prepared<V> {
        let Self { quotas, policies, .. } = self;
        let count = quotas.iter().map(|quotas| quotas.len()).sum::<usize>();
        let policies = if policies.len() == count { Policies::new(policies).ok() } else { None };
        let field = policies.as_ref().and_then(|policies| V::of(Bytes::copy_from_slice(policies.value().as_bytes())));
        Prepared { quotas, policies, field }
    }
}

/// The longest name of a limiter or a dimension, so that there is room for what tells its quotas
/// apart: a hyphen and 20 digits with `ns`, and another hyphen and number.
const MAX_NAME: usize = 32;

/// Whether a limiter or a dimension may have this name.
pub(crate) fn check_name(name: &str) -> Result<(), PolicyError> {
    Policy::new(name, 1, Duration::from_secs(1))?;
    if name.len() > MAX_NAME { Err(PolicyError::NameTooLong { bytes: name.len() }) } else { Ok(()) }
}

/// A window in its largest unit.
fn window(window: Duration) -> String {
    let nanos = window.as_nanos();
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let unit = units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

impl<V> Prepared<V> {
    /// Whether these are the quotas of the keys.
    pub(crate) fn is_of<K>(&self, limiter: &impl Ask<K>, keys: &K) -> bool {
        let (mut at, mut same) = (0, true);
        limiter.each_quotas(keys, |_, quotas: &[Quota]| {
            same = same && self.quotas.get(at).is_some_and(|own| **own == *quotas);
            at += 1;
        });
        same && at == self.quotas.len()
    }

    /// The value of `RateLimit-Policy`, if there is one.
    pub(crate) const fn field(&self) -> Option<&V> {
        self.field.as_ref()
    }

    /// What is left of the quota that leaves the least.
    pub(crate) fn tightest(&self, status: &Status) -> Option<ServiceLimit<'_>> {
        let quotas = self.quotas.first()?;
        // The status has the limit of that quota. Of those with the same limit, the longest window
        // has the fewest permits left.
        let same_limit = quotas.iter().enumerate().filter(|(_, quota)| quota.limit() == status.limit());
        let (at, quota) = same_limit.max_by_key(|(_, quota)| quota.window())?;
        let usage = Usage::from(status);
        // The status tells when the permits of all quotas are free. Those of this one are free when
        // its window has passed.
        let is_shorter = quotas.len() > 1 && usage.remaining > 0;
        let next_after = if is_shorter { usage.next_after.min(quota.window()) } else { usage.next_after };
        Some(self.policies.as_ref()?.get(at)?.admitted(Usage { next_after, ..usage }))
    }

    /// The limits that are in the way of a request that can be sent again after `wait`.
    pub(crate) fn violated(&self, violated: &[Violated], wait: Duration) -> Vec<ServiceLimit<'_>> {
        let policy = |&Violated { dimension, quota, .. }: &Violated| {
            let before: usize = self.quotas.get(..dimension)?.iter().map(|quotas| quotas.len()).sum();
            self.policies.as_ref()?.get(before + quota)
        };
        violated.iter().filter_map(|violated| Some(policy(violated)?.violated(violated.usage, wait))).collect()
    }
}
