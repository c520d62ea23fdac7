//! [`MetricsObserver`]: decisions as metrics.

use core::fmt;
use std::sync::OnceLock;

use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};
use tollgate::{Counts, DenialReason, Observation, Observer, Quota, Unasked};

use crate::outcome::{Outcome, reason_name};

/// Counts decisions by the facade of the crate [`metrics`](https://docs.rs/metrics).
///
/// Install the recorder first: an observer takes its handles once, of the recorder that is there.
/// Limiters with the same policy name share their counters.
///
/// ```
/// use std::sync::Arc;
/// use metrics_exporter_prometheus::PrometheusBuilder;
/// use tollgate::{Limiter, Quota};
/// use tollgate_observe::MetricsObserver;
///
/// let recorder = PrometheusBuilder::new().install_recorder()?;
/// let metrics = Arc::new(MetricsObserver::new("login"));
/// let builder = Limiter::<String>::builder(Quota::per_minute(5).named("login"));
/// let limiter = builder.observer(Arc::clone(&metrics)).build()?;
/// metrics.register("", &limiter.quotas());
/// assert!(limiter.try_acquire("alice").is_admitted());
///
/// // On each scrape:
/// metrics.set_gauges(&limiter.counts());
/// let text = recorder.render();
/// assert!(text.contains(r#"tollgate_requests_total{policy="login",result="admitted"} 1"#));
/// assert!(text.contains(r#"tollgate_denials_total{policy="login",dimension="",quota="login"} 0"#));
/// assert!(text.contains(r#"tollgate_live_keys{policy="login"} 1"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Metrics
/// | metric | labels | counts |
/// |---|---|---|
/// | `tollgate_requests_total` | `policy`, `result` | requests |
/// | `tollgate_denials_total` | `policy`, `dimension`, `quota` | requests that a quota denied, also one on requests in flight, and those that shadow mode admitted |
/// | `tollgate_live_keys` | `policy` | keys with a live permit |
/// | `tollgate_bytes` | `policy` | bytes that the limiter takes |
///
/// `result` is `admitted`, `uncounted` (admitted without a charge), `overruled` (admitted by shadow
/// mode in place of a denial), `cost` (above the limit), or the reason of a denial: `quota`,
/// `in_flight` (too many at a time), `key_cap`, `penalty`, `deny_list`. The layers for HTTP tell
/// what they do without the limiter: `skipped` (not limited, or without a cost), `rule` (denied by a
/// rule of a policy file), and `missing_key`. The last two count where the layer's shadow mode lets
/// the request pass, too. A denial that this shadow mode replaces is `overruled`, as by the
/// limiter's own. All are there from the start, at zero. The series of a quota is there from its
/// first denial on, or from [`register`](Self::register).
///
/// `dimension` is empty for limiters of one dimension. `quota` is the [name](Quota::named) of the
/// quota, or its numbers. So name quotas whose limits you change, and their series go on.
///
/// No label comes from a request. Of one observer the quotas beyond the 64th share a series, with
/// the dimension and the quota `other`: keys may have quotas of their own.
///
/// # Cost
/// A request adds one to a counter, and a denied request to two. No lock is taken; the first denial
/// by a quota registers a counter.
pub struct MetricsObserver {
    policy: String,
    admitted: Counter,
    uncounted: Counter,
    overruled: Counter,
    cost: Counter,
    quota: Counter,
    key_cap: Counter,
    penalty: Counter,
    deny_list: Counter,
    in_flight: Counter,
    skipped: Counter,
    missing_key: Counter,
    rule: Counter,
    denials: Series,
    live_keys: Gauge,
    bytes: Gauge,
}

impl MetricsObserver {
    /// An observer whose metrics have this `policy`.
    #[must_use]
    pub fn new(policy: impl Into<String>) -> Self {
        describe();
        let policy = policy.into();
        let requests = |result| counter!(REQUESTS, "policy" => policy.clone(), "result" => result);
        let of = |reason| requests(reason_name(reason));
        Self {
            admitted: requests(Outcome::Admitted.name()),
            uncounted: requests(Outcome::Uncounted.name()),
            overruled: requests(Outcome::Overruled.name()),
            cost: requests(Outcome::Cost.name()),
            quota: of(DenialReason::Quota),
            key_cap: of(DenialReason::KeyCap),
            penalty: of(DenialReason::Penalty),
            deny_list: of(DenialReason::DenyList),
            in_flight: of(DenialReason::InFlight),
            skipped: requests("skipped"),
            missing_key: requests("missing_key"),
            rule: requests("rule"),
            denials: Series::default(),
            live_keys: gauge!(LIVE_KEYS, "policy" => policy.clone()),
            bytes: gauge!(BYTES, "policy" => policy.clone()),
            policy,
        }
    }

    /// Gives quotas of this dimension their series of `tollgate_denials_total`, at zero. The
    /// dimension of a limiter without dimensions is empty.
    ///
    /// A server of metrics sees no increase in a series that begins with its first denial.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{JointLimiter, Quota};
    /// use tollgate_observe::MetricsObserver;
    ///
    /// let metrics = Arc::new(MetricsObserver::new("api"));
    /// let limiter = JointLimiter::<(String, u64)>::builder()
    ///     .dimension("user", [Quota::per_minute(5)])
    ///     .dimension("tenant", [Quota::per_minute(100)])
    ///     .observer(Arc::clone(&metrics))
    ///     .build()?;
    /// for (dimension, quotas) in limiter.dimensions() {
    ///     metrics.register(dimension, &quotas);
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn register(&self, dimension: &str, quotas: &[Quota]) {
        for quota in quotas {
            let _ = self.denials.of(&self.policy, dimension, quota);
        }
    }

    /// Sets `tollgate_live_keys` and `tollgate_bytes`. Call it before each scrape, with
    /// [`Limiter::counts`](tollgate::Limiter::counts).
    ///
    /// [`counts`](tollgate::Limiter::counts) looks at each key, so call it as often as a server of
    /// metrics asks, and not on each request.
    pub fn set_gauges(&self, counts: &Counts) {
        self.live_keys.set(as_f64(counts.live_keys));
        self.bytes.set(as_f64(counts.bytes));
    }

    fn result(&self, outcome: Outcome) -> Option<&Counter> {
        Some(match outcome {
            Outcome::Admitted => &self.admitted,
            Outcome::Uncounted => &self.uncounted,
            Outcome::Overruled => &self.overruled,
            Outcome::Cost => &self.cost,
            Outcome::Denied(DenialReason::Quota) => &self.quota,
            Outcome::Denied(DenialReason::KeyCap) => &self.key_cap,
            Outcome::Denied(DenialReason::Penalty) => &self.penalty,
            Outcome::Denied(DenialReason::DenyList) => &self.deny_list,
            Outcome::Denied(DenialReason::InFlight) => &self.in_flight,
            Outcome::Denied(_) => return None,
        })
    }
}

impl Observer for MetricsObserver {
    fn observe(&self, seen: &Observation<'_>) {
        if let Some(counter) = self.result(Outcome::of(seen)) {
            counter.increment(1);
        }
        if let (Some(denial), Some(quota)) = (seen.denial(), seen.quota()) {
            let dimension = seen.dimension(denial.dimension()).unwrap_or_default();
            self.denials.of(&self.policy, dimension, quota).increment(1);
        }
    }

    fn unasked(&self, request: Unasked) {
        match request {
            Unasked::Skipped => self.skipped.increment(1),
            Unasked::MissingKey => self.missing_key.increment(1),
            Unasked::Rule => self.rule.increment(1),
            _ => {}
        }
    }
}

impl fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsObserver").field("policy", &self.policy).finish_non_exhaustive()
    }
}

const REQUESTS: &str = "tollgate_requests_total";
const DENIALS: &str = "tollgate_denials_total";
const LIVE_KEYS: &str = "tollgate_live_keys";
const BYTES: &str = "tollgate_bytes";

fn describe() {
    describe_counter!(REQUESTS, Unit::Count, "Requests that a limiter decided.");
    describe_counter!(DENIALS, Unit::Count, "Requests that a quota denied, or would have denied.");
    describe_gauge!(LIVE_KEYS, Unit::Count, "Keys with a live permit.");
    describe_gauge!(BYTES, Unit::Bytes, "Memory of the limiter.");
}

#[expect(clippy::cast_precision_loss, reason = "a gauge need not be exact beyond 2^53")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

/// The counters of denials, one for each quota: a list that only grows, so that no reader waits.
#[derive(Default)]
struct Series(OnceLock<Box<Link>>);

struct Link {
    dimension: Box<str>,
    quota: Quota,
    counter: Counter,
    next: OnceLock<Box<Link>>,
}

/// The most quotas with a series of their own.
const MOST_SERIES: usize = 64;

impl Series {
    fn of(&self, policy: &str, dimension: &str, quota: &Quota) -> &Counter {
        let mut place = &self.0;
        for _ in 0..MOST_SERIES {
            let link = place.get_or_init(|| Box::new(Link::new(policy, dimension, quota, label(quota))));
            if link.is(dimension, quota) {
                return &link.counter;
            }
            place = &link.next;
        }
        &place.get_or_init(|| Box::new(Link::new(policy, "other", quota, "other".to_owned()))).counter
    }
}

impl Link {
    fn new(policy: &str, dimension: &str, quota: &Quota, label: String) -> Self {
        let (policy, of) = (policy.to_owned(), dimension.to_owned());
        let counter = counter!(DENIALS, "policy" => policy, "dimension" => of, "quota" => label);
        Self { dimension: dimension.into(), quota: *quota, counter, next: OnceLock::new() }
    }

    fn is(&self, dimension: &str, quota: &Quota) -> bool {
        // A name stays the same when the numbers change.
        let same = if quota.name().is_some() { self.quota.name() == quota.name() } else { self.quota == *quota };
        same && *self.dimension == *dimension
    }
}

fn label(quota: &Quota) -> String {
    quota.name().map_or_else(|| quota.to_string(), str::to_owned)
}
