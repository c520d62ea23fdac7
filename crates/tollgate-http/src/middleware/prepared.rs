//! The policies of quotas, made once for each revision of them.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use tollgate::{NamedQuotas, Quota};

use super::gate::Item;
use super::gate::sealed::Ask;
use super::values::FieldValue;
use crate::limit::ServiceLimit;
use crate::policy::{Policies, Policy, PolicyError, QuotaUnit};

/// The quotas of a limiter, and the texts about them that clients see.
#[derive(Debug)]
pub(crate) struct Prepared<V> {
    /// Those of each dimension.
    quotas: Vec<OfDimension>,
    /// A policy for each quota, dimension by dimension. `None` if a policy cannot be made; no quota
    /// that a limiter accepts is known to cause that.
    policies: Option<Policies>,
    /// The value of `RateLimit-Policy`, as the framework has it.
    field: Option<V>,
    /// Whether a quota has the name of the limiter.
    is_unnamed: bool,
}

/// The quotas of a dimension.
#[derive(Debug)]
struct OfDimension {
    /// Those of the limiter, which never changes them there.
    quotas: Arc<[Quota]>,
    /// The policies of the dimensions before this one.
    before: usize,
}

/// The most dimensions of a limiter.
const MOST: usize = 8;

/// The current quotas of the keys of a request: those of each dimension, with its name if it has
/// one.
pub(crate) struct Current<'a> {
    dimensions: [Option<Dimension<'a>>; MOST],
    count: usize,
}

type Dimension<'a> = (Option<&'a str>, Arc<[Quota]>);

impl<'a> Current<'a> {
    pub(crate) fn new(dimensions: impl IntoIterator<Item = Dimension<'a>>) -> Self {
        let mut current = Self { dimensions: [const { None }; MOST], count: 0 };
        dimensions.into_iter().for_each(|(name, quotas)| current.push(name, quotas));
        current
    }

    pub(crate) fn of<K>(limiter: &'a impl Ask<K>, keys: &K) -> Self {
        let mut current = Self::new([]);
        limiter.each_quotas(keys, |name, quotas| current.push(name, quotas));
        current
    }

    fn push(&mut self, name: Option<&'a str>, quotas: Arc<[Quota]>) {
        if let Some(place) = self.dimensions.get_mut(self.count) {
            *place = Some((name, quotas));
            self.count += 1;
        }
    }

    fn dimensions(&self) -> impl Iterator<Item = &Dimension<'a>> {
        self.dimensions.iter().flatten()
    }

    /// A place from 0 to `places`, the same for the same quotas.
    pub(crate) fn spread(&self, places: usize) -> usize {
        // The multiplier of Knuth's multiplicative hash. Quotas are the operator's, not a client's.
        let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let all = self.dimensions().flat_map(|(_, quotas)| &**quotas);
        let hash = all.fold(0, |hash, quota| {
            let window = quota.window();
            mix(mix(mix(hash, quota.limit().into()), window.as_secs()), window.subsec_nanos().into())
        });
        // The high bits are the well-mixed ones.
        usize::try_from(hash >> 32).unwrap_or(0) % places
    }

    /// The texts. `name` is for quotas without a dimension.
    pub(crate) fn prepare<V: FieldValue>(&self, name: &str, unit: QuotaUnit) -> Prepared<V> {
        let (mut quotas, mut before) = (Vec::new(), 0);
        for (_, of_dimension) in self.dimensions() {
            quotas.push(OfDimension { quotas: Arc::clone(of_dimension), before });
            before += of_dimension.len();
        }
        let policies = self.policies(name, unit).ok();
        let field = policies.as_ref().and_then(|policies| V::of(Bytes::copy_from_slice(policies.value().as_bytes())));
        let has_none = |(name, quotas): &Dimension<'_>| name.is_none() && quotas.iter().any(|it| it.name().is_none());
        Prepared { quotas, policies, field, is_unnamed: self.dimensions().any(has_none) }
    }

    /// A policy for each quota, dimension by dimension. `name` is for quotas without a dimension.
    pub(crate) fn policies(&self, name: &str, unit: QuotaUnit) -> Result<Policies, PolicyError> {
        let all = || self.dimensions().flat_map(|(_, quotas)| &**quotas);
        let own: Vec<&str> = all().filter_map(Quota::name).collect();
        let mut taken: Vec<String> = Vec::new();
        for (quota, name) in all().zip(self.names(name)) {
            // A quota's own name comes before a generated name.
            let name = match quota.name() {
                Some(own) => numbered(own, |name| taken.iter().any(|taken| taken == name)),
                None => numbered(&name, |name| own.contains(&name) || taken.iter().any(|taken| taken == name)),
            };
            taken.push(name);
        }
        let policies = all().zip(&taken).map(|(quota, name)| Ok(Policy::of(name, quota)?.unit(unit)));
        policies.collect::<Result<Vec<_>, PolicyError>>().and_then(Policies::new)
    }

    /// The name of each quota by its dimension.
    fn names(&self, name: &str) -> Vec<String> {
        let mut names = Vec::new();
        for (place, (dimension, quotas)) in self.dimensions().enumerate() {
            let name = dimension.unwrap_or(name);
            let name = if check_name(name).is_ok() { name.to_owned() } else { format!("dimension-{}", place + 1) };
            names.extend(quotas.iter().map(|quota| match **quotas {
                [_] => name.clone(),
                _ => format!("{name}-{}", window(quota.window())),
            }));
        }
        names
    }
}

impl Policies {
    /// A policy for each quota of these dimensions, dimension by dimension, with the names that
    /// [middleware](super) gives them: the quota's own name; else that of its dimension,
    /// and the window where the dimension has several quotas.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_http::Policies;
    ///
    /// let user = [Quota::per_second(10), Quota::per_minute(100)];
    /// let address = [Quota::per_minute(300)];
    /// let policies = Policies::of_dimensions([("user", &user[..]), ("address", &address[..])])?;
    /// let names: Vec<&str> = policies.iter().map(|policy| policy.name()).collect();
    /// assert_eq!(names, ["user-1s", "user-1m", "address"]);
    /// # Ok::<(), tollgate_http::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when there are no quotas, or a quota cannot be a policy: none that a limiter
    /// accepts is known to cause that.
    pub fn of_dimensions<'a>(
        dimensions: impl IntoIterator<Item = (&'a str, impl Into<Arc<[Quota]>>)>,
    ) -> Result<Self, PolicyError> {
        let dimensions = dimensions.into_iter().map(|(name, quotas)| (Some(name), quotas.into()));
        Current::new(dimensions).policies("default", QuotaUnit::Requests)
    }

    /// The policies of the quotas that an attribute's denial tells.
    pub(crate) fn of_call(quotas: &'static NamedQuotas) -> Option<&'static Self> {
        quotas.prepared(|| Self::of_dimensions(quotas.dimensions()).ok())?.as_ref()
    }
}

/// The name, with a number if it is taken.
fn numbered(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut names = core::iter::once(name.to_owned()).chain((2_u32..).map(|number| format!("{name}-{number}")));
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// The longest name of a limiter or a dimension. It leaves room for the suffix of a quota: a hyphen
/// and 20 digits with `ns`, and another hyphen and number.
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
    let unit = units.into_iter().find(|(unit, _)| nanos % *unit == 0);
    let (unit, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

impl<V> Prepared<V> {
    /// Whether these are the quotas of the keys.
    pub(crate) fn is_of<K>(&self, limiter: &impl Ask<K>, keys: &K) -> bool {
        let (mut at, mut same) = (0, true);
        limiter.each_quotas(keys, |_, quotas| {
            same = same && self.quotas.get(at).is_some_and(|own| own.is(&quotas));
            at += 1;
        });
        same && at == self.quotas.len()
    }

    /// Whether these are the current quotas.
    pub(crate) fn is(&self, current: &Current<'_>) -> bool {
        let mut both = self.quotas.iter().zip(current.dimensions());
        self.quotas.len() == current.count && both.all(|(own, (_, quotas))| own.is(quotas))
    }

    /// The value of `RateLimit-Policy`, if there is one.
    pub(crate) const fn field(&self) -> Option<&V> {
        self.field.as_ref()
    }

    /// Whether a quota has the name of the limiter: neither its own, nor that of a dimension.
    pub(crate) const fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// The limits that an admitted request leaves of these quotas.
    pub(crate) fn admitted(&self, items: &[Item]) -> impl Iterator<Item = ServiceLimit<'_>> {
        items.iter().filter_map(|item| Some(self.policy(item)?.admitted(item.usage)))
    }

    /// The violated limits of a request that can be sent again after `wait`.
    pub(crate) fn violated(&self, items: &[Item], wait: Duration) -> impl Iterator<Item = ServiceLimit<'_>> {
        items.iter().filter_map(move |item| Some(self.policy(item)?.violated(item.usage, wait)))
    }

    /// The policy of a quota. `None` if the quotas have just changed and the item is of another.
    fn policy(&self, item: &Item) -> Option<&Policy> {
        let before = self.quotas.get(item.dimension())?.before;
        self.policies.as_ref()?.get(before + item.quota()).filter(|policy| policy.quota() == item.limit)
    }
}

impl OfDimension {
    fn is(&self, quotas: &Arc<[Quota]>) -> bool {
        Arc::ptr_eq(&self.quotas, quotas) || self.quotas == *quotas
    }
}
