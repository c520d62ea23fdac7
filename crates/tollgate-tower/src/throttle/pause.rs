//! [`Pause`]: what a server that refuses a request asks of its client.

use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, StatusCode, header};
use sfv::{Item, List, ListEntry, Parser};

/// What a server that refuses a request asks of its client: a time without requests, and the pace
/// after it. [`retry_after`] reads it.
///
/// A [`Duration`] becomes a pause without a pace.
///
/// ```
/// use std::time::Duration;
/// use tollgate_tower::Pause;
///
/// let pause = Pause::from(Duration::from_secs(8)).then(100, Duration::from_secs(60));
/// assert_eq!((pause.wait().as_secs(), pause.pace()), (8, Some(Duration::from_millis(600))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    wait: Duration,
    /// The quota after it, and its window.
    quota: Option<(u32, Duration)>,
}

impl Pause {
    /// The same pause, after which the server serves so many requests a window. A quota of zero is
    /// ignored.
    #[must_use]
    pub const fn then(self, quota: u32, window: Duration) -> Self {
        Self { quota: if quota == 0 { self.quota } else { Some((quota, window)) }, ..self }
    }

    /// The time without requests.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// The time between two requests after the pause; `None` if the server does not tell.
    #[must_use]
    pub fn pace(&self) -> Option<Duration> {
        self.quota.map(|(quota, window)| window / quota)
    }

    /// The quota after the pause, and its window.
    pub(super) const fn quota(&self) -> Option<(u32, Duration)> {
        self.quota
    }
}

impl From<Duration> for Pause {
    fn from(wait: Duration) -> Self {
        Self { wait, quota: None }
    }
}

/// The pause that an answer with 429 or 503 asks for, by `Retry-After` in seconds or as a date.
///
/// The quota after it is that of `RateLimit-Policy` whose item of `RateLimit` has nothing left. Of
/// several, it is the slowest. The fields are in the format of
/// draft-ietf-httpapi-ratelimit-headers-11. Quotas of other units than requests do not count.
///
/// ```
/// use std::time::Duration;
/// use http::{Response, StatusCode};
/// use tollgate_tower::{Pause, retry_after};
///
/// let answer = Response::builder()
///     .status(StatusCode::TOO_MANY_REQUESTS)
///     .header("retry-after", "8")
///     .header("ratelimit-policy", r#""user-1s";q=10;w=1, "user-1m";q=100;w=60"#)
///     .header("ratelimit", r#""user-1m";r=0;t=8"#)
///     .body(())?;
/// let pause = Pause::from(Duration::from_secs(8)).then(100, Duration::from_secs(60));
/// assert_eq!(retry_after(answer.status(), answer.headers()), Some(pause));
/// assert_eq!(retry_after(StatusCode::OK, answer.headers()), None);
/// # Ok::<(), http::Error>(())
/// ```
#[must_use]
pub fn retry_after(status: StatusCode, fields: &HeaderMap) -> Option<Pause> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let pause = Pause::from(wait(fields.get(header::RETRY_AFTER)?.to_str().ok()?.trim())?);
    Some(exhausted(fields).map_or(pause, |(quota, window)| pause.then(quota, window)))
}

fn wait(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date that has passed asks for no time.
    httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok()
}

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICIES: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The slowest quota of which nothing is left, and its window.
fn exhausted(fields: &HeaderMap) -> Option<(u32, Duration)> {
    let limits = list(fields, &LIMIT)?;
    let exhausted: Vec<_> = items(&limits).filter(|limit| number(limit, "r") == Some(0)).filter_map(name).collect();
    let policies = list(fields, &POLICIES)?;
    let quotas = items(&policies).filter(|policy| name(policy).is_some_and(|name| exhausted.contains(&name)));
    let quotas = quotas.filter_map(|policy| {
        let unit = policy.params.get("qu").map(|unit| unit.as_string().map(|unit| unit.as_str()));
        let quota = u32::try_from(number(policy, "q")?).ok().filter(|quota| *quota > 0)?;
        let window = Duration::from_secs(number(policy, "w")?);
        matches!(unit, None | Some(Some("requests"))).then_some((quota, window))
    });
    quotas.max_by_key(|(quota, window)| *window / *quota)
}

/// The items of a field, of which each line has a part.
fn list(fields: &HeaderMap, name: &HeaderName) -> Option<List> {
    let lines: Vec<_> = fields.get_all(name).iter().map(|line| line.as_bytes()).collect();
    Parser::new(&lines.join(&b", "[..])).parse().ok()
}

fn items(list: &List) -> impl Iterator<Item = &Item> {
    list.iter().filter_map(|entry| match entry {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    })
}

fn name(item: &Item) -> Option<&str> {
    item.bare_item.as_string().map(|name| name.as_str())
}

fn number(item: &Item, parameter: &str) -> Option<u64> {
    u64::try_from(i64::from(item.params.get(parameter)?.as_integer()?)).ok()
}
