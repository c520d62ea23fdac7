//! [`Policy`] and [`Dimension`]: the contents of a policy file.

use core::fmt;
use core::hash::Hash;
use std::path::{Path, PathBuf};

use tollgate::{
    AtKeyCap, Dimensions, JointLimiter, JointLimiterBuilder, Limiter, LimiterBuilder, Penalty, Quota, format_duration,
};
use tollgate_address::ClientAddress;

use crate::error::{BuilderError, UnknownDimension};
use crate::matches::{Match, write_match};
use crate::quoted::Quoted;
use crate::read_client::write_client;
use crate::rule::{PolicyTier, Rule};
use crate::store::StoreTable;
use crate::values::Part;

/// Dimensions and their quotas, from a file. See [the crate](crate) for the file.
///
/// `Display` writes a policy file. Reading that file gives an equal policy.
///
/// ```
/// use tollgate::AtKeyCap;
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml(r#"
///     key_cap = 1000
///     at_key_cap = "admit"
///     shadow = true
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// assert_eq!((policy.key_cap(), policy.at_key_cap()), (Some(1000), Some(AtKeyCap::Admit)));
/// assert_eq!((policy.shadow(), policy.dimensions().len()), (Some(true), 1));
/// assert_eq!(Policy::from_toml(&policy.to_string())?, policy);
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub(crate) key_cap: Option<usize>,
    pub(crate) at_key_cap: Option<AtKeyCap>,
    pub(crate) shadow: Option<bool>,
    pub(crate) enforced_percent: Option<u8>,
    pub(crate) network_limits: Option<bool>,
    pub(crate) client: ClientAddress,
    pub(crate) store: Option<Box<StoreTable>>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) dimensions: Vec<Dimension>,
}

/// One dimension of a [`Policy`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Penalty, Quota};
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml(r#"
///     [[dimension]]
///     name = "login"
///     key = ["client", "user"]
///     quota = [{ limit = 5, per = "1m" }]
///     penalty = { denials = 3, within = "1m", blocked_for = "1h" }
/// "#)?;
/// let login = &policy.dimensions()[0];
/// assert_eq!((login.name(), login.quotas()), ("login", &[Quota::per_minute(5)][..]));
/// assert_eq!(login.key().collect::<Vec<_>>(), ["client", "user"]);
/// let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
/// assert_eq!(login.penalty(), Some(Penalty::new(3, minute, hour)));
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    pub(crate) name: Box<str>,
    pub(crate) key: Vec<String>,
    pub(crate) matches: Match,
    pub(crate) shadow: bool,
    pub(crate) quotas: Vec<Quota>,
    pub(crate) tier_by: Option<Box<str>>,
    pub(crate) tiers: Vec<PolicyTier>,
    pub(crate) penalty: Option<Penalty>,
}

impl Policy {
    /// Starts a limiter with the dimensions of the policy, in the same order, and with its key cap,
    /// shadow mode and penalties. All other options, such as the clock, are set on the builder.
    ///
    /// `D` names the types of the keys, in the order of the dimensions. If the service does not
    /// know the dimensions, `D` is a slice; see [`JointLimiter`]. The build fails if `D` names
    /// another number of dimensions than the policy has. Everything else was checked when the policy
    /// was read.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 5, per = \"10s\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let limiter = policy.builder::<(IpAddr,)>()?.build()?;
    /// assert!(limiter.try_acquire((IpAddr::from([192, 0, 2, 7]),))?.is_admitted());
    /// assert!(policy.builder::<(String, IpAddr)>()?.build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuilderError`] when the policy has a [`[store]`](Self::store), or parts that only
    /// [`Policy::request_limiter`] heeds: rules, matches, and tiers by the value of a field.
    pub fn builder<D: Dimensions + ?Sized>(&self) -> Result<JointLimiterBuilder<D>, BuilderError> {
        self.check_by_keys(&self.dimensions)?;
        self.builder_of_requests()
    }

    /// Starts a limiter that is asked as a [`Matcher`](crate::Matcher) says: with all dimensions and
    /// all tiers that have quotas, and keys of any type. Most programs take a
    /// [`request_limiter`](Self::request_limiter).
    ///
    /// ```
    /// use tollgate_policy::{Choice, Matcher, Policy};
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [[dimension]]
    ///     name = "user"
    ///     quota = [{ limit = 5, per = "1m" }]
    ///     match = { path = "/login" }
    /// "#)?;
    /// let (limiter, matcher) = (policy.builder_of_requests::<[u32]>()?.build()?, Matcher::new(&policy));
    /// let values = [Some("alice".into()), Some("/login".into())];
    /// assert_eq!(matcher.choice(0, &values), Choice::Own);
    /// assert!(limiter.try_acquire(&[Some(7)])?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuilderError`] when the policy has a [`[store]`](Self::store).
    pub fn builder_of_requests<D: Dimensions + ?Sized>(&self) -> Result<JointLimiterBuilder<D>, BuilderError> {
        self.check_in_process()?;
        let mut builder = JointLimiter::<D>::builder();
        for (at, dimension) in self.dimensions.iter().enumerate() {
            builder = builder.dimension(dimension.name.clone(), dimension.quotas.iter().copied());
            if let Some(penalty) = dimension.penalty {
                builder = builder.penalty(at, penalty);
            }
            if dimension.shadow {
                builder = builder.shadow_dimension(at);
            }
            for tier in dimension.limited_tiers() {
                builder = builder.tier(at, tier.name.clone(), tier.quotas.iter().copied());
            }
        }
        if let Some(key_cap) = self.key_cap {
            builder = builder.key_cap(key_cap);
        }
        Ok(builder.at_key_cap(self.at_key_cap.unwrap_or_default()).enforced_percent(self.enforced()))
    }

    /// Starts a limiter of one dimension alone, with its quotas and penalty, and with the key cap and
    /// shadow mode of the policy. A service whose policy has one dimension needs no
    /// [`JointLimiter`].
    ///
    /// [`OfDimension`](crate::OfDimension) applies a changed file to it.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 5, per = \"10s\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let limiter = policy.builder_of::<IpAddr>("address")?.build()?;
    /// assert_eq!(limiter.try_acquire_status(IpAddr::from([192, 0, 2, 7])).remaining(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuilderError`] when the policy has a [`[store]`](Self::store), or no dimension of this name.
    pub fn builder_of<K: Hash + ?Sized>(&self, dimension: &str) -> Result<LimiterBuilder<K>, BuilderError> {
        self.check_in_process()?;
        let dimension = self.dimension(dimension)?;
        self.check_by_keys(core::slice::from_ref(dimension))?;
        let Dimension { quotas, penalty, .. } = dimension;
        // There is at least one.
        let mut builder =
            quotas[1..].iter().fold(Limiter::<K>::builder(quotas[0]), |builder, &quota| builder.and(quota));
        if let Some(penalty) = *penalty {
            builder = builder.penalty(penalty);
        }
        for tier in dimension.limited_tiers() {
            builder = builder.tier(tier.name.clone(), tier.quotas.iter().copied());
        }
        if let Some(key_cap) = self.key_cap {
            builder = builder.key_cap(key_cap);
        }
        Ok(builder.at_key_cap(self.at_key_cap.unwrap_or_default()).enforced_percent(if dimension.shadow {
            0
        } else {
            self.enforced()
        }))
    }

    /// The dimension of this name.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// assert_eq!(policy.dimension("address")?.quotas(), [Quota::per_minute(5)]);
    /// let error = policy.dimension("adress").unwrap_err();
    /// assert_eq!(error.to_string(), "the policy has no dimension \"adress\", only \"address\"");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnknownDimension`] when the policy has no dimension of this name.
    pub fn dimension(&self, name: &str) -> Result<&Dimension, UnknownDimension> {
        self.dimensions.iter().find(|dimension| *dimension.name == *name).ok_or_else(|| UnknownDimension {
            dimension: name.to_owned(),
            known: self.dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
        })
    }

    /// The policy with these dimensions alone, in this order: for one of several limiters that share
    /// a file. A [`Reloader`](crate::Reloader) applies the whole file to all of them.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate_policy::Policy;
    ///
    /// let dimension = |name| format!("[[dimension]]\nname = \"{name}\"\nquota = [{{ limit = 5, per = \"1m\" }}]\n");
    /// let policy = Policy::from_toml(&["user", "address", "path"].map(dimension).concat())?;
    /// let log_ins = policy.only(["address", "user"])?.builder::<(IpAddr, String)>()?.build()?;
    /// let pages = policy.only(["path"])?.builder::<(String,)>()?.build()?;
    /// assert_eq!(log_ins.dimension(0), "address");
    /// # assert_eq!(pages.dimension(0), "path");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnknownDimension`] when the policy has no dimension of one of these names.
    pub fn only<'a>(&self, dimensions: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownDimension> {
        let dimensions = dimensions.into_iter().map(|name| self.dimension(name).cloned()).collect::<Result<_, _>>()?;
        let (client, store, rules) = (self.client.clone(), self.store.clone(), self.rules.clone());
        Ok(Self { dimensions, client, store, rules, ..*self })
    }

    /// The dimensions, in the order of the file. Requests give their keys in this order.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The rules that decide requests before any dimension is asked, in the order of the file. The
    /// first that matches decides.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The paths of the files with the values of matches, for a policy that was read from this file.
    pub(crate) fn lists<'a>(&'a self, policy: &'a Path) -> impl Iterator<Item = PathBuf> {
        let of_rules = self.rules.iter().map(|rule| &rule.matches);
        let of_tiers = |it: &'a Dimension| it.tiers.iter().map(|tier| &tier.matches).chain([&it.matches]);
        let all = of_rules.chain(self.dimensions.iter().flat_map(of_tiers));
        let beside = policy.parent().unwrap_or(Path::new(""));
        all.flat_map(Match::files).map(|list| beside.join(list))
    }

    /// The most keys held at once, if the policy has `key_cap`.
    #[must_use]
    pub const fn key_cap(&self) -> Option<usize> {
        self.key_cap
    }

    /// The answer to a new key at the cap, if the policy has `at_key_cap`.
    #[must_use]
    pub const fn at_key_cap(&self) -> Option<AtKeyCap> {
        self.at_key_cap
    }

    /// Whether shadow mode is on, if the policy has `shadow`.
    #[must_use]
    pub const fn shadow(&self) -> Option<bool> {
        self.shadow
    }

    /// The percentage of keys for which limits are enforced, if the policy has `enforced_percent`.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "enforced_percent = 25\n[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// assert_eq!(Policy::from_toml(text)?.enforced_percent(), Some(25));
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    #[must_use]
    pub const fn enforced_percent(&self) -> Option<u8> {
        self.enforced_percent
    }

    /// Whether `tollgate serve` [adds](Self::with_network_limits) limits of whole networks, if the policy
    /// has `network_limits`.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "network_limits = false\n[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// assert_eq!(Policy::from_toml(text)?.network_limits(), Some(false));
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    #[must_use]
    pub const fn network_limits(&self) -> Option<bool> {
        self.network_limits
    }

    /// Who a client is, by the `[client]` of the policy. The key of its address is made by
    /// [`ClientAddress::key`], in all programs and layers. Without the table only the address of the
    /// peer counts, of IPv6 by /64.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [client]
    ///     trusted_proxies = ["10.0.0.0/8"]
    ///
    ///     [[dimension]]
    ///     name = "client"
    ///     quota = [{ limit = 5, per = "1m" }]
    /// "#)?;
    /// let (peer, forwarded) = (IpAddr::from([10, 0, 0, 2]), ["203.0.113.99, 2001:db8::7"]);
    /// assert_eq!(policy.client().key(peer, forwarded)?.to_string(), "2001:db8::");
    /// assert_eq!(policy.client().to_string(), "IPv6 by /64; behind 10.0.0.0/8, by x-forwarded-for");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn client(&self) -> &ClientAddress {
        &self.client
    }

    /// The store that decides, if the policy has `[store]`. Then no limiter in process is built of it:
    /// `tollgate-redis` builds one.
    ///
    /// ```
    /// use tollgate_policy::{BuilderError, Policy};
    ///
    /// let policy = Policy::from_toml(r#"
    ///     [store]
    ///     url = "redis://127.0.0.1:6379"
    ///     secret = { env = "TOLLGATE_SECRET" }
    ///
    ///     [[dimension]]
    ///     name = "user"
    ///     quota = [{ limit = 5, per = "1m" }]
    /// "#)?;
    /// assert!(policy.store().is_some());
    /// assert_eq!(policy.builder::<(String,)>().err(), Some(BuilderError::ForStore));
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    #[must_use]
    pub fn store(&self) -> Option<&StoreTable> {
        self.store.as_deref()
    }

    /// The same policy without its store: for a program that is told to decide in process.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// # let policy = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]")?;
    /// let limiter = policy.without_store().builder::<(String,)>()?.build()?;
    /// # assert!(limiter.try_acquire(("alice",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_store(&self) -> Self {
        Self { store: None, ..self.clone() }
    }

    /// Checks that keys alone say of which quotas of these dimensions a request is asked.
    fn check_by_keys(&self, dimensions: &[Dimension]) -> Result<(), BuilderError> {
        let is_by_keys = self.rules.is_empty() && dimensions.iter().all(Dimension::is_by_keys);
        if is_by_keys { Ok(()) } else { Err(BuilderError::ForRequests) }
    }

    fn check_in_process(&self) -> Result<(), BuilderError> {
        if self.store.is_some() { Err(BuilderError::ForStore) } else { Ok(()) }
    }

    /// The percentage of keys for which limits are enforced, whatever the file has.
    pub(crate) fn enforced(&self) -> u8 {
        let of_shadow = if self.shadow.unwrap_or_default() { 0 } else { 100 };
        self.enforced_percent.unwrap_or(of_shadow)
    }
}

impl Dimension {
    /// The name of the dimension.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the fields that form its keys, at least one. The library only stores them.
    pub fn key(&self) -> impl ExactSizeIterator<Item = &str> {
        self.key.iter().map(String::as_str)
    }

    /// The parts of its keys: the name of each field, and the bits if the part is the IPv6 network of a
    /// client.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"site\"\nkey = [\"user\", \"client/48\"]\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let parts: Vec<_> = policy.dimensions()[0].parts().collect();
    /// assert_eq!(parts, [("user", None), ("client", Some(48))]);
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (&str, Option<u8>)> {
        self.key().map(Part::parse)
    }

    /// The quotas of each of its keys, at least one.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.quotas
    }

    /// Its [quotas](Self::quotas), and those of its [tiers](Self::tiers).
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let dimension = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]\ntier_by = \"plan\"";
    /// let tier = "[[dimension.tier]]\nname = \"pro\"\nquota = [{ limit = 9, per = \"1m\" }]";
    /// let policy = Policy::from_toml(&format!("{dimension}\n{tier}"))?;
    /// let limits: Vec<u32> = policy.dimensions()[0].all_quotas().map(|quota| quota.limit()).collect();
    /// assert_eq!(limits, [5, 9]);
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    pub fn all_quotas(&self) -> impl Iterator<Item = &Quota> {
        self.quotas.iter().chain(self.tiers.iter().flat_map(|tier| &tier.quotas))
    }

    /// The requests that it is asked for.
    #[must_use]
    pub const fn matches(&self) -> &Match {
        &self.matches
    }

    /// Whether requests pass that only such dimensions deny.
    #[must_use]
    pub const fn shadow(&self) -> bool {
        self.shadow
    }

    /// The field whose value names the tier of a request, if there is one.
    #[must_use]
    pub fn tier_by(&self) -> Option<&str> {
        self.tier_by.as_deref()
    }

    /// The tiers, in the order of the file.
    #[must_use]
    pub fn tiers(&self) -> &[PolicyTier] {
        &self.tiers
    }

    /// The tiers with quotas.
    pub(crate) fn limited_tiers(&self) -> impl Iterator<Item = &PolicyTier> {
        self.tiers.iter().filter(|tier| !tier.quotas.is_empty())
    }

    /// Whether the keys of a request alone say by which quotas it is decided.
    fn is_by_keys(&self) -> bool {
        let tiers_are = self.tiers.iter().all(|tier| tier.matches.is_any() && !tier.quotas.is_empty());
        self.matches.is_any() && self.tier_by.is_none() && tiers_are
    }

    /// The penalty for keys that are denied too often, if the dimension has one.
    #[must_use]
    pub const fn penalty(&self) -> Option<Penalty> {
        self.penalty
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key_cap) = self.key_cap {
            writeln!(f, "key_cap = {key_cap}")?;
        }
        match self.at_key_cap {
            None => {}
            Some(AtKeyCap::Admit) => writeln!(f, "at_key_cap = \"admit\"")?,
            Some(_) => writeln!(f, "at_key_cap = \"deny\"")?,
        }
        if let Some(shadow) = self.shadow {
            writeln!(f, "shadow = {shadow}")?;
        }
        if let Some(percent) = self.enforced_percent {
            writeln!(f, "enforced_percent = {percent}")?;
        }
        if let Some(network_limits) = self.network_limits {
            writeln!(f, "network_limits = {network_limits}")?;
        }
        write_client(f, &self.client)?;
        if let Some(store) = &self.store {
            write!(f, "\n{store}")?;
        }
        for Rule { matches, action } in &self.rules {
            writeln!(f, "\n[[rule]]")?;
            write_match(f, matches)?;
            writeln!(f, "action = \"{action}\"")?;
        }
        for Dimension { name, key, matches, shadow, quotas, tier_by, tiers, penalty } in &self.dimensions {
            writeln!(f, "\n[[dimension]]\nname = {}", Quoted(name))?;
            let fields: Vec<String> = key.iter().map(|field| Quoted(field).to_string()).collect();
            writeln!(f, "key = [{}]", fields.join(", "))?;
            write_match(f, matches)?;
            if *shadow {
                writeln!(f, "shadow = true")?;
            }
            if let Some(field) = tier_by {
                writeln!(f, "tier_by = {}", Quoted(field))?;
            }
            if let Some(penalty) = penalty {
                let [within, blocked_for] = [penalty.within(), penalty.blocked_for()].map(format_duration);
                writeln!(f, "\n[dimension.penalty]\ndenials = {}", penalty.denials())?;
                writeln!(f, "within = \"{within}\"\nblocked_for = \"{blocked_for}\"")?;
                if let Some((factor, longest, quiet_for)) = penalty.growth() {
                    let [longest, quiet_for] = [longest, quiet_for].map(format_duration);
                    writeln!(f, "factor = {factor}\nlongest = \"{longest}\"\nquiet_for = \"{quiet_for}\"")?;
                }
            }
            write_quotas(f, "dimension", quotas)?;
            for PolicyTier { name, matches, quotas } in tiers {
                writeln!(f, "\n[[dimension.tier]]\nname = {}", Quoted(name))?;
                write_match(f, matches)?;
                if quotas.is_empty() {
                    writeln!(f, "unlimited = true")?;
                }
                write_quotas(f, "dimension.tier", quotas)?;
            }
        }
        Ok(())
    }
}

/// Writes the quotas of a table.
fn write_quotas(f: &mut fmt::Formatter<'_>, table: &str, quotas: &[Quota]) -> fmt::Result {
    quotas.iter().try_for_each(|quota| {
        let fields = toml::to_string(quota).map_err(|_| fmt::Error)?;
        write!(f, "\n[[{table}.quota]]\n{fields}")
    })
}
