//! [`Pause`]: what a server that refuses a request asks of its client.

use core::time::Duration;
use std::time::SystemTime;

use sfv::{Item, List, ListEntry, Parser};

/// What a server that refuses a request asks of its client: a time without requests, and the pace
/// after it. [`asked`](Self::asked) reads it. (Feature `client`.)
///
/// A [`Duration`] becomes a pause without a pace.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::Pause;
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

    /// The pause that an answer with 429 or 503 asks for, by `Retry-After` in seconds or as a date.
    /// `lines` has the lines of a header field.
    ///
    /// The quota after it is that of `RateLimit-Policy` whose item of `RateLimit` has nothing left. Of
    /// several, it is the slowest. The fields are in the format of
    /// draft-ietf-httpapi-ratelimit-headers-11. Quotas of other units than requests do not count.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_http::Pause;
    ///
    /// let fields = |name: &str| match name {
    ///     "retry-after" => &b"8"[..],
    ///     "ratelimit-policy" => br#""user-1s";q=10;w=1, "user-1m";q=100;w=60"#,
    ///     _ => br#""user-1m";r=0;t=8"#,
    /// };
    /// let pause = Pause::from(Duration::from_secs(8)).then(100, Duration::from_secs(60));
    /// assert_eq!(Pause::asked(429, |name| [fields(name)]), Some(pause));
    /// assert_eq!(Pause::asked(200, |name| [fields(name)]), None);
    /// ```
    #[must_use]
    pub fn asked<'f, I: IntoIterator<Item = &'f [u8]>>(status: u16, lines: impl Fn(&'static str) -> I) -> Option<Self> {
        if !matches!(status, 429 | 503) {
            return None;
        }
        let value = core::str::from_utf8(lines("retry-after").into_iter().next()?).ok()?;
        let pause = Self::from(wait(value.trim())?);
        Some(exhausted(lines).map_or(pause, |(quota, window)| pause.then(quota, window)))
    }

    /// The quota after the pause, and its window.
    pub(crate) const fn quota(&self) -> Option<(u32, Duration)> {
        self.quota
    }
}

impl From<Duration> for Pause {
    fn from(wait: Duration) -> Self {
        Self { wait, quota: None }
    }
}

fn wait(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A date that has passed asks for no time.
    httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok()
}

/// The slowest quota of which nothing is left, and its window.
fn exhausted<'f, I: IntoIterator<Item = &'f [u8]>>(lines: impl Fn(&'static str) -> I) -> Option<(u32, Duration)> {
    let limits = list(lines("ratelimit"))?;
    let exhausted: Vec<_> = items(&limits).filter(|limit| number(limit, "r") == Some(0)).filter_map(name).collect();
    let policies = list(lines("ratelimit-policy"))?;
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
fn list<'f>(lines: impl IntoIterator<Item = &'f [u8]>) -> Option<List> {
    let lines: Vec<_> = lines.into_iter().collect();
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
