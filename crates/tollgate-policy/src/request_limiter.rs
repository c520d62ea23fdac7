//! [`RequestLimiter`]: a limiter that is asked with the values of requests.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tollgate::{Clock, Fingerprinter, JointLimiter, JointLimiterBuilder, Tier};
use tollgate_address::ClientAddress;

use crate::apply_error::ApplyError;
use crate::error::BuilderError;
use crate::matcher::{Choice, Matcher};
use crate::model::Policy;
use crate::rule::Action;
use crate::target::Target;
use crate::values::{Key, Value};

/// A limiter, and what its policy says of requests: rules, matches and tiers.
///
/// A request is asked with the values of the [fields](Self::fields) of the policy. It heeds all of a
/// policy, so that a service, `tollgate serve` and `tollgate replay` decide alike. `L` is the limiter:
/// one in process, or one of `tollgate-redis`. [`try_enter`](Self::try_enter) holds a request in flight.
///
/// ```
/// use tollgate_policy::{Asked, Policy, Value};
///
/// let policy = Policy::from_toml(r#"
///     [[rule]]
///     match = { client = "203.0.113.0/24" }
///     action = "deny"
///
///     [[dimension]]
///     name = "client"
///     quota = [{ limit = 1, per = "1m" }]
/// "#)?;
/// let limiter = policy.request_limiter()?;
/// let client = |address: [u8; 4]| Some(Value::address(policy.client(), address.into()));
///
/// let Asked::Limits(keys) = limiter.ask(vec![client([192, 0, 2, 7])]) else { panic!("no rule is for it") };
/// assert!(limiter.limiter().try_acquire(&keys[..])?.is_admitted());
/// assert!(limiter.limiter().try_acquire(&keys[..])?.is_denied());
/// assert!(matches!(limiter.ask(vec![client([203, 0, 113, 9])]), Asked::Denied { rule: 0 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RequestLimiter<L = JointLimiter<[Key]>> {
    limiter: Arc<L>,
    requests: Arc<Requests>,
}

/// The part of a [`RequestLimiter`] that sees requests: it says of which dimensions and tiers the
/// limiter is asked. It is for middleware.
///
/// ```
/// use tollgate_policy::{Asked, Policy};
///
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let limiter = Policy::from_toml(text)?.request_limiter()?;
/// let requests = limiter.requests();
/// assert_eq!(requests.fields(), ["user"]);
/// assert!(matches!(requests.ask(vec![None], |_| false), Asked::Lacks { field: 0 }));
/// assert!(matches!(requests.ask(vec![None], |_| true), Asked::Limits(keys) if keys[0].is_none()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Requests {
    matching: ArcSwap<Matching>,
    fields: Box<[String]>,
    client: ClientAddress,
    unknown_tiers: AtomicU64,
}

/// What is asked of a request.
///
/// ```
/// use tollgate_policy::{Asked, Policy};
///
/// let policy = Policy::from_toml(r#"
///     [[rule]]
///     match = { user = "root" }
///     action = "admit"
///
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// let limiter = policy.request_limiter()?;
/// assert!(matches!(limiter.ask(vec![Some("root".into())]), Asked::Admitted { rule: 0 }));
/// assert!(matches!(limiter.ask(vec![None]), Asked::Lacks { field: 0 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub enum Asked {
    /// A rule admits it. No limit is asked.
    Admitted {
        /// The place of the rule in the policy.
        rule: usize,
    },
    /// A rule denies it. No limit is asked.
    Denied {
        /// The place of the rule in the policy.
        rule: usize,
    },
    /// The limiter decides it by these keys, one for each dimension; `None` for one that is not asked.
    /// If all are `None`, no limit is for the request.
    Limits(Vec<Option<Key>>),
    /// The request lacks a field of a dimension that it is asked of.
    Lacks {
        /// The place of the field.
        field: usize,
    },
}

/// A matcher, and the tiers that it chooses.
#[derive(Debug)]
struct Matching {
    matcher: Matcher,
    /// Of each dimension, the tiers in the order of the policy. An unlimited one is not chosen.
    tiers: Vec<Vec<Tier>>,
}

impl Policy {
    /// A limiter in process that heeds all of the policy, by the clock of the machine.
    ///
    /// [`RequestLimiter`] has an example.
    ///
    /// # Errors
    ///
    /// [`BuilderError::ForStore`] when the policy has a [`[store]`](Self::store). Everything else was
    /// checked when the policy was read.
    pub fn request_limiter(&self) -> Result<RequestLimiter, BuilderError> {
        self.request_limiter_with(|builder| builder)
    }

    /// As [`request_limiter`](Self::request_limiter), with other options, such as another clock.
    ///
    /// ```
    /// use tollgate::MockClock;
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let clock = MockClock::new();
    /// let limiter = Policy::from_toml(text)?.request_limiter_with(|builder| builder.clock(clock))?;
    /// assert_eq!(limiter.fields(), ["user"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuilderError`] when the policy has a [`[store]`](Self::store), or the options make no limiter.
    pub fn request_limiter_with<C: Clock, F: Fingerprinter>(
        &self,
        options: impl FnOnce(JointLimiterBuilder<[Key]>) -> JointLimiterBuilder<[Key], C, F>,
    ) -> Result<RequestLimiter<JointLimiter<[Key], C, F>>, BuilderError> {
        let limiter = options(self.builder_of_requests()?).build().map_err(BuilderError::Build)?;
        let limiter = Arc::new(limiter);
        Ok(RequestLimiter::new(self, Arc::clone(&limiter), |dimension, name| limiter.tier(dimension, name)))
    }
}

impl<L> RequestLimiter<L> {
    /// For a limiter of the program: one of [`Policy::builder_of_requests`], or one of `tollgate-redis`.
    /// `tier` finds its tiers by the places of their dimensions and their names. On a store there is
    /// none: a key has the [place](Key::tier_place) of its tier.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_policy::{Key, Policy, RequestLimiter};
    ///
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let limiter = Arc::new(policy.builder_of_requests::<[Key]>()?.build()?);
    /// let tier = |dimension: usize, name: &str| limiter.tier(dimension, name);
    /// let limiter = RequestLimiter::new(&policy, Arc::clone(&limiter), tier);
    /// assert_eq!(limiter.fields(), ["user"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(policy: &Policy, limiter: Arc<L>, tier: impl Fn(usize, &str) -> Option<Tier>) -> Self {
        Self { limiter, requests: Arc::new(Requests::new(policy, tier)) }
    }

    /// The limiter that decides.
    #[must_use]
    pub const fn limiter(&self) -> &Arc<L> {
        &self.limiter
    }

    /// What it knows of requests.
    #[must_use]
    pub const fn requests(&self) -> &Arc<Requests> {
        &self.requests
    }

    /// The fields of the policy, in the order in which [`ask`](Self::ask) takes their values. It stays
    /// the same in use.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        self.requests.fields()
    }

    /// What is asked of a request with these values, in the order of the [fields](Self::fields); `None`
    /// for those that it lacks.
    #[must_use]
    pub fn ask(&self, values: Vec<Option<Value<'_>>>) -> Asked {
        self.requests.ask(values, |_| false)
    }
}

impl Requests {
    /// For a limiter whose tiers this finds by the places of their dimensions and their names.
    fn new(policy: &Policy, tier: impl Fn(usize, &str) -> Option<Tier>) -> Self {
        let matching = Matching::of(policy, tier);
        let (fields, client) = (matching.matcher.fields().into(), policy.client().clone());
        Self { matching: ArcSwap::from_pointee(matching), fields, client, unknown_tiers: AtomicU64::new(0) }
    }

    /// The fields of the policy, in the order in which [`ask`](Self::ask) takes their values.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Who a client is.
    #[must_use]
    pub const fn client(&self) -> &ClientAddress {
        &self.client
    }

    /// How many requests had a value of `tier_by` that names no tier. They were decided by the quotas
    /// of the dimension.
    #[must_use]
    pub fn unknown_tiers(&self) -> u64 {
        self.unknown_tiers.load(Ordering::Relaxed)
    }

    /// What is asked of a request with these values, in the order of the [fields](Self::fields); `None`
    /// for those that it lacks. Without an `optional` field, by its place, a dimension is not asked.
    pub fn ask(&self, values: Vec<Option<Value<'_>>>, optional: impl Fn(usize) -> bool) -> Asked {
        let matching = self.matching.load();
        let matcher = &matching.matcher;
        match matcher.rule(&values) {
            Some((rule, Action::Admit)) => return Asked::Admitted { rule },
            Some((rule, Action::Deny)) => return Asked::Denied { rule },
            None => {}
        }
        // Only the fields of keys outlive the request.
        let of_keys = || values.iter().take(matcher.key_fields()).map(|value| Some(value.clone()?.into_owned()));
        let mut shared: Option<Arc<[_]>> = None;
        let mut keys = Vec::with_capacity(matcher.dimensions());
        for dimension in 0..matcher.dimensions() {
            let place = match matcher.choice(dimension, &values) {
                Choice::Unasked => {
                    keys.push(None);
                    continue;
                }
                Choice::Own => None,
                Choice::Tier(place) => Some(place),
            };
            if place.is_none() && matcher.names_no_tier(dimension, &values) {
                self.unknown_tiers.fetch_add(1, Ordering::Relaxed);
            }
            match matcher.lacks(dimension, &values) {
                Some(field) if !optional(field) => return Asked::Lacks { field },
                _ => {}
            }
            let key = || Key {
                values: Arc::clone(shared.get_or_insert_with(|| of_keys().collect())),
                parts: Arc::clone(matcher.parts(dimension)),
                tier: place.map_or_else(Tier::default, |place| matching.tiers[dimension][place]),
                place,
            };
            keys.push(matcher.has_key(dimension, &values).then(key));
        }
        Asked::Limits(keys)
    }
}

impl Matching {
    /// By a limiter whose tiers this finds by the places of their dimensions and their names.
    fn of(policy: &Policy, tier: impl Fn(usize, &str) -> Option<Tier>) -> Self {
        let tiers = policy.dimensions().iter().enumerate();
        let tiers = tiers.map(|(dimension, it)| {
            it.tiers().iter().map(|found| tier(dimension, found.name()).unwrap_or_default()).collect()
        });
        Self { matcher: Matcher::new(policy), tiers: tiers.collect() }
    }
}

impl<C, F> Target for RequestLimiter<JointLimiter<[Key], C, F>>
where
    C: Clock + Send + Sync,
    F: Fingerprinter + Send + Sync,
{
    fn takes(&self, dimension: &str) -> bool {
        self.limiter.takes(dimension)
    }

    fn check(&self, policy: &Policy) -> Result<(), ApplyError> {
        if Matcher::new(policy).fields() != self.fields() {
            return Err(ApplyError::Fields);
        }
        self.limiter.check(policy)
    }

    fn set(&self, policy: &Policy) -> Result<(), ApplyError> {
        self.limiter.set(policy)?;
        let matching = Matching::of(policy, |dimension, name| self.limiter.tier(dimension, name));
        self.requests.matching.store(Arc::new(matching));
        Ok(())
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("fields", &self.fields).finish_non_exhaustive()
    }
}
