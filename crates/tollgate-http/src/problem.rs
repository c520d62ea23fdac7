//! The answer to a denied request.

use core::fmt;
use core::fmt::Write as _;
use core::time::Duration;

use tollgate::{CostExceedsLimit, Denial, DenialReason};

use crate::grpc::PercentEncoded;
use crate::headers::{Headers, Line};
use crate::limit::{ServiceLimit, Usage};
use crate::policy::Policies;
use crate::seconds::retry_after;

/// Why a request is denied or rejected, as clients see it.
///
/// ```
/// use tollgate::DenialReason;
/// use tollgate_http::DenialKind;
///
/// assert_eq!(DenialKind::from(DenialReason::KeyCap).status(), 503);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialKind {
    /// A quota is exhausted: 429.
    Quota,
    /// As many requests are in flight as a limit allows at a time: 429. When one ends is not known, so
    /// the answer has no `Retry-After`.
    InFlight,
    /// The key is blocked because it was denied too often: 429.
    Penalty,
    /// The key is new and the limiter is at its key cap: 503.
    KeyCap,
    /// The key is on the deny list: 403.
    DenyList,
    /// A rule of the policy denies the request: 403.
    Rule,
    /// The request costs more than the limit: 422.
    CostExceedsLimit,
    /// The content of the request costs more than the limit: 413.
    ContentExceedsLimit,
    /// The client did not send the key of the request: 400.
    KeyNotSent,
    /// The client sent the key of the request in a form that is never accepted: 400.
    KeyMalformed,
    /// The server did not provide the key of the request: 500. The answer does not tell why.
    KeyNotProvided,
    /// The limiter could not decide, because its store is away: 503. The answer does not tell why.
    Undecided,
}

impl DenialKind {
    /// The status code of the answer.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Quota | Self::InFlight | Self::Penalty => 429,
            Self::KeyCap | Self::Undecided => 503,
            Self::DenyList | Self::Rule => 403,
            Self::CostExceedsLimit => 422,
            Self::ContentExceedsLimit => 413,
            Self::KeyNotSent | Self::KeyMalformed => 400,
            Self::KeyNotProvided => 500,
        }
    }

    /// The URI of the problem type; `None` where the status code is enough (`about:blank`).
    #[must_use]
    pub const fn problem_type(self) -> Option<&'static str> {
        match self {
            Self::Quota | Self::InFlight => Some("https://iana.org/assignments/http-problem-types#quota-exceeded"),
            Self::Penalty => Some("https://iana.org/assignments/http-problem-types#abnormal-usage-detected"),
            Self::KeyCap => Some("https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"),
            _ => None,
        }
    }

    /// The title of the problem.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Quota | Self::InFlight => "Request cannot be satisfied as assigned quota has been exceeded",
            Self::Penalty => "Request not satisfied due to detection of abnormal request pattern",
            Self::KeyCap => "Request cannot be satisfied due to temporary server capacity constraints",
            // The titles of the status codes, as RFC 9457 requires.
            Self::DenyList | Self::Rule => "Forbidden",
            Self::CostExceedsLimit => "Unprocessable Content",
            Self::ContentExceedsLimit => "Content Too Large",
            Self::KeyNotSent | Self::KeyMalformed => "Bad Request",
            Self::KeyNotProvided => "Internal Server Error",
            Self::Undecided => "Service Unavailable",
        }
    }

    /// Whether the same request succeeds after a time that is known.
    const fn waiting_helps(self) -> bool {
        matches!(self, Self::Quota | Self::Penalty | Self::KeyCap)
    }

    /// Whether a quota is the reason.
    pub(crate) const fn is_of_quota(self) -> bool {
        matches!(self, Self::Quota | Self::InFlight)
    }

    /// Whether the limiter has denied the request. Otherwise it was not asked, or did not decide.
    const fn is_of_limiter(self) -> bool {
        !matches!(self, Self::Rule | Self::KeyNotSent | Self::KeyMalformed | Self::KeyNotProvided | Self::Undecided)
    }

    /// The code of `grpc-status`: `RESOURCE_EXHAUSTED`, `PERMISSION_DENIED` for the deny list and rules,
    /// `INVALID_ARGUMENT` or `INTERNAL` without a key, and `UNAVAILABLE` without a decision.
    const fn grpc_status(self) -> &'static str {
        match self {
            Self::DenyList | Self::Rule => "7",
            Self::KeyNotSent | Self::KeyMalformed => "3",
            Self::KeyNotProvided => "13",
            Self::Undecided => "14",
            _ => "8",
        }
    }
}

impl From<DenialReason> for DenialKind {
    fn from(reason: DenialReason) -> Self {
        match reason {
            DenialReason::InFlight => Self::InFlight,
            DenialReason::KeyCap => Self::KeyCap,
            DenialReason::Penalty => Self::Penalty,
            DenialReason::DenyList => Self::DenyList,
            _ => Self::Quota,
        }
    }
}

/// The answer to a denied request: problem details (RFC 9457), or the trailers of a gRPC call.
///
/// It holds no part of the request. Of the limiter it holds only the policies, and of an extractor
/// the words for a key.
///
/// ```
/// use std::time::Duration;
/// use tollgate_http::{DenialKind, Headers, Policy, Problem, Usage};
///
/// let policy = Policy::new("user-1m", 100, Duration::from_secs(60))?;
/// let wait = Duration::from_millis(7_200);
/// let violated = [policy.violated(Usage { remaining: 0, next_after: wait }, wait)];
/// let problem = Problem::new(DenialKind::Quota, wait).violated(&violated);
///
/// assert_eq!(problem.status(), 429);
/// let mut fields = Vec::new();
/// problem.write_fields(Headers::Draft11, |name, value| fields.push((name, value.to_vec())));
/// assert_eq!(fields[0], ("retry-after", b"8".to_vec()));
/// assert_eq!(fields[1], ("ratelimit", br#""user-1m";r=0;t=8"#.to_vec()));
/// assert!(problem.to_json().ends_with(r#""violated-policies":["user-1m"]}"#));
/// # Ok::<(), tollgate_http::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem<'a> {
    kind: DenialKind,
    wait: Duration,
    violated: Violated<'a>,
    /// Those of the limit of a call; middleware has prepared a field of its own.
    policies: Option<&'a Policies>,
    /// The key that the request does not have as it should.
    wanted: Option<&'a str>,
}

/// The violated limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Violated<'a> {
    These(&'a [ServiceLimit<'a>]),
    /// That of a call, which is kept without a place of its own.
    One(ServiceLimit<'a>),
}

impl<'a> Problem<'a> {
    /// The answer to a request that can be sent again after `wait`; [`Duration::MAX`] if no wait
    /// helps.
    #[must_use]
    pub const fn new(kind: DenialKind, wait: Duration) -> Self {
        let wait = if kind.waiting_helps() { wait } else { Duration::MAX };
        Self { kind, wait, violated: Violated::These(&[]), policies: None, wanted: None }
    }

    /// The same answer, with the violated limits.
    #[must_use]
    pub const fn violated<'b>(self, violated: &'b [ServiceLimit<'b>]) -> Problem<'b> {
        Problem { violated: Violated::These(violated), ..Problem::new(self.kind, self.wait) }
    }

    /// The same answer, with words for the key that the request does not have as it should. They
    /// follow "The request needs", and hold no part of the request.
    ///
    /// The body tells them if the client is to send the key, and nothing if the server is to provide
    /// it.
    ///
    /// ```
    /// use tollgate_http::Problem;
    /// use tollgate_http::middleware::KeyError;
    ///
    /// let problem = Problem::from(KeyError::not_sent()).wanting("the header field x-api-key");
    /// let detail = "The request needs the header field x-api-key.";
    /// assert_eq!(problem.to_json(), format!(r#"{{"title":"Bad Request","status":400,"detail":"{detail}"}}"#));
    ///
    /// let problem = Problem::from(KeyError::not_provided()).wanting("the address of the client");
    /// assert_eq!(problem.to_json(), r#"{"title":"Internal Server Error","status":500}"#);
    /// ```
    #[must_use]
    pub fn wanting(self, key: impl Into<Option<&'a str>>) -> Self {
        Self { wanted: key.into(), ..self }
    }

    /// Words for the key that the request does not have as it should, if the extractor has some.
    #[must_use]
    pub const fn wanted(&self) -> Option<&'a str> {
        self.wanted
    }

    /// The same answer without the violated limits, to keep it.
    #[must_use]
    pub const fn without_limits(&self) -> Problem<'static> {
        Problem::new(self.kind, self.wait)
    }

    /// Why the request is denied.
    #[must_use]
    pub const fn kind(&self) -> DenialKind {
        self.kind
    }

    /// The status code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.kind.status()
    }

    /// The time after which the same request succeeds without other traffic; `None` if no wait
    /// helps.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        if self.wait.as_nanos() == Duration::MAX.as_nanos() { None } else { Some(self.wait) }
    }

    /// The name of the violated quota, as clients see it; of several, of the
    /// [tightest](ServiceLimit::tightest). `None` if no quota is the reason.
    ///
    /// ```
    /// use tollgate_http::{DenialKind, Policy, Problem, Usage};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::new("user-1m", 100, Duration::from_secs(60))?;
    /// let wait = Duration::from_millis(7_200);
    /// let violated = [policy.violated(Usage { remaining: 3, next_after: wait }, wait)];
    /// let problem = Problem::new(DenialKind::Quota, wait).violated(&violated);
    /// assert_eq!(problem.quota(), Some("user-1m"));
    /// assert_eq!((problem.limit(), problem.remaining()), (Some(100), Some(3)));
    /// assert_eq!((problem.wait(), problem.retry_after()), (Some(wait), Some(8)));
    /// # Ok::<(), tollgate_http::PolicyError>(())
    /// ```
    #[must_use]
    pub fn quota(&self) -> Option<&'a str> {
        self.tightest().map(|limit| limit.policy().name())
    }

    /// The permits of that [quota](Self::quota), per window or at a time.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        self.tightest().map(|limit| limit.limit())
    }

    /// The permits left of that [quota](Self::quota): fewer than the request costs.
    #[must_use]
    pub fn remaining(&self) -> Option<u32> {
        self.tightest().map(|limit| limit.remaining())
    }

    /// All violated limits.
    #[must_use]
    pub const fn violated_limits(&self) -> &[ServiceLimit<'a>] {
        match &self.violated {
            Violated::These(limits) => limits,
            Violated::One(limit) => core::slice::from_ref(limit),
        }
    }

    fn tightest(&self) -> Option<ServiceLimit<'a>> {
        ServiceLimit::tightest(self.violated_limits().iter().copied())
    }

    /// The value of `Retry-After`, in seconds; `None` if no wait helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        retry_after(self.wait)
    }

    /// Writes why a handler's call is denied, as the text of its error.
    #[doc(hidden)]
    pub fn put_denied_call(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after() {
            Some(seconds) => write!(f, "the call is denied: try again in {seconds} s"),
            None if self.kind == DenialKind::InFlight => {
                f.write_str("the call is denied: too many requests are in flight")
            }
            None => f.write_str("the call is denied: trying again does not help"),
        }
    }

    /// Passes the name and the value of each header field of the answer to `field`. Nothing is
    /// allocated.
    ///
    /// The answer to a call that the attribute `rate_limit` denies has
    /// [the field that is always the same](Headers::policy_field), too. For other answers, write it
    /// beside these.
    pub fn write_fields(&self, headers: Headers, mut field: impl FnMut(&'static str, &[u8])) {
        if let Some((name, value)) = self.policies.and_then(|policies| headers.policy_field(policies)) {
            field(name, value.as_bytes());
        }
        if let Some(seconds) = self.retry_after() {
            field("retry-after", itoa::Buffer::new().format(seconds).as_bytes());
        }
        headers.write(self.violated_limits().iter().copied(), &mut field);
        field("cache-control", b"no-store");
        field("content-type", b"application/problem+json");
    }

    /// Writes the body: an object of JSON in ASCII, on one line. Allocates nothing itself.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_json(&self, out: &mut impl fmt::Write) -> fmt::Result {
        // In pieces, which takes a third of the instructions of `write!`.
        out.write_str("{")?;
        if let Some(problem_type) = self.kind.problem_type() {
            write_all(out, ["\"type\":\"", problem_type, "\","])?;
        }
        let mut digits = itoa::Buffer::new();
        write_all(out, ["\"title\":\"", self.kind.title(), "\",\"status\":"])?;
        out.write_str(digits.format(self.status()))?;
        if self.has_detail() {
            out.write_str(",\"detail\":\"")?;
            match self.wanted {
                Some(_) => self.write_detail(&mut Escaped(out))?,
                None => self.write_detail(out)?,
            }
            out.write_str("\"")?;
        }
        for (at, limit) in self.violated_limits().iter().enumerate() {
            out.write_str(if at == 0 { ",\"violated-policies\":[" } else { "," })?;
            out.write_str(limit.policy().quoted())?;
        }
        out.write_str(if self.violated_limits().is_empty() { "}" } else { "]}" })
    }

    /// The body.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::with_capacity(256);
        // Writing to a `String` never fails.
        let _ = self.write_json(&mut json);
        json
    }

    const fn has_detail(&self) -> bool {
        match self.kind {
            DenialKind::KeyNotSent | DenialKind::KeyMalformed => self.wanted.is_some(),
            kind => kind.is_of_limiter(),
        }
    }

    fn write_detail(&self, out: &mut impl fmt::Write) -> fmt::Result {
        match (self.kind, self.wanted) {
            (DenialKind::KeyNotSent, Some(key)) => return write_all(out, ["The request needs ", key, "."]),
            (DenialKind::KeyMalformed, Some(key)) => {
                return write_all(out, ["The request has ", key, " twice, or in a form that is not accepted."]);
            }
            (DenialKind::InFlight, _) => {
                return out.write_str("Too many requests are in flight. Try again when one has ended.");
            }
            _ => {}
        }
        match self.retry_after() {
            None => out.write_str("Trying again does not help."),
            Some(1) => out.write_str("Try again in 1 second."),
            Some(seconds) => write_all(out, ["Try again in ", itoa::Buffer::new().format(seconds), " seconds."]),
        }
    }

    /// Passes the name and the value of each field of a gRPC answer to `field`: `grpc-status`,
    /// `grpc-message` and `grpc-retry-pushback-ms`. The last is -1, which tells clients not to
    /// retry, if no wait helps or the wait is longer than [`i32::MAX`] milliseconds, the most that
    /// clients parse. It is left out for [`DenialKind::InFlight`], so that clients choose a wait
    /// themselves. Nothing is allocated.
    ///
    /// Such an answer has the status code 200 and [its own content type](crate::grpc_content_type),
    /// and no body.
    pub fn write_grpc(&self, mut field: impl FnMut(&'static str, &[u8])) {
        let mut message = Line::new();
        if self.write_message(&mut message).is_err() {
            // Only the words for a key can be too long.
            message = Line::new();
            let _ = message.write_str(self.kind.title());
        }
        field("grpc-status", self.kind.grpc_status().as_bytes());
        field("grpc-message", message.bytes());
        if self.kind != DenialKind::InFlight {
            let milliseconds = self.wait.as_nanos().div_ceil(1_000_000).max(1);
            let pushback = i32::try_from(milliseconds).unwrap_or(-1);
            field("grpc-retry-pushback-ms", itoa::Buffer::new().format(pushback).as_bytes());
        }
    }

    /// The title and the detail, for `grpc-message`.
    fn write_message(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let mut encoded = PercentEncoded(out);
        encoded.write_str(self.kind.title())?;
        if self.has_detail() {
            encoded.write_str(". ")?;
            self.write_detail(&mut encoded)?;
        }
        Ok(())
    }
}

/// Writes everything as a part of a string of JSON, in ASCII.
struct Escaped<'a, W>(&'a mut W);

impl<W: fmt::Write> fmt::Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|char| match char {
            '"' | '\\' => write!(self.0, "\\{char}"),
            ' '..='~' => self.0.write_char(char),
            _ => char.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(self.0, "\\u{unit:04x}")),
        })
    }
}

fn write_all<const N: usize>(out: &mut impl fmt::Write, texts: [&str; N]) -> fmt::Result {
    texts.into_iter().try_for_each(|text| out.write_str(text))
}

/// A denial by the attribute `rate_limit` has the policies of its limiter, and shows the quota that
/// decides the wait without permits left. A limiter without dimensions has the name of the function.
///
/// ```
/// use tollgate::{Quota, rate_limit};
/// use tollgate_http::{Headers, Problem};
///
/// #[rate_limit(limit = 1, per = "1m")]
/// fn report() -> Result<(), Problem<'static>> {
///     Ok(())
/// }
///
/// assert!(report().is_ok());
/// let problem = report().unwrap_err();
/// assert_eq!((problem.quota(), problem.limit(), problem.remaining()), (Some("report"), Some(1), Some(0)));
/// problem.write_fields(Headers::Draft11, |name, value| match name {
///     "ratelimit-policy" => assert_eq!(value, br#""report";q=1;w=60"#),
///     "ratelimit" => assert_eq!(value, br#""report";r=0;t=60"#),
///     _ => {}
/// });
/// ```
impl From<&Denial> for Problem<'static> {
    fn from(denial: &Denial) -> Self {
        let problem = Self::new(denial.reason().into(), denial.retry_after());
        let Some(named) = denial.named_quotas() else { return problem };
        let policies = Policies::of_call(named);
        let before: usize = named.dimensions().take(denial.dimension()).map(|(_, quotas)| quotas.len()).sum();
        let decides = policies.and_then(|policies| policies.get(before + denial.quota()));
        let usage = Usage { remaining: 0, next_after: problem.wait };
        let violated = match decides {
            Some(policy) if problem.kind.is_of_quota() => Violated::One(policy.violated(usage, problem.wait)),
            _ => problem.violated,
        };
        Self { violated, policies, ..problem }
    }
}

impl From<Denial> for Problem<'static> {
    fn from(denial: Denial) -> Self {
        Self::from(&denial)
    }
}

/// [`DenialKind::CostExceedsLimit`].
impl From<CostExceedsLimit> for Problem<'static> {
    fn from(_: CostExceedsLimit) -> Self {
        Self::new(DenialKind::CostExceedsLimit, Duration::MAX)
    }
}
