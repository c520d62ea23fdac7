//! [`Held`]: the requests in flight, by their tokens.
//!
//! `/acquire` gives a token for each request that counts in a concurrency limit. The request counts
//! until `/release` is told the token, or its time is over, whichever is first. Of several limits that
//! count it, the one with the shortest time tells. The time is looked at before each decision, so that no
//! task waits for it.
//!
//! Each request that is held takes a place of a concurrency limit. So no more are held than these limits
//! have places, for all keys together.

use core::fmt;
use core::mem;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate::{Algorithm, Clock as _, Quota};
use tollgate_http::middleware::RequestInFlight;
use tollgate_policy::{Key, Policy};

use crate::limiter::InProcess;

/// What a client releases a request by: 128 random bits, which nobody can guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token(u128);

impl Token {
    const DIGITS: usize = 32;

    /// A new one; `None` if the system has no random bits.
    pub(crate) fn new() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(u128::from_ne_bytes(bytes)))
    }

    /// The token with this text, which is as it was given.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = text.len() == Self::DIGITS && text.bytes().all(is_digit);
        u128::from_str_radix(text, 16).ok().filter(|_| is_token).map(Self)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The requests in flight of a policy with a concurrency limit.
#[derive(Debug)]
pub(crate) struct Held {
    limiter: Arc<InProcess>,
    /// By dimension.
    times: Vec<Times>,
    requests: Mutex<Requests>,
    overdue: AtomicU64,
}

/// For how many nanoseconds a request is held by the quotas of a dimension; `None` if none of them counts
/// those in flight.
#[derive(Debug)]
struct Times {
    own: Option<u64>,
    tiers: Vec<Option<u64>>,
}

#[derive(Debug, Default)]
struct Requests {
    by_token: HashMap<Token, (u64, RequestInFlight)>,
    /// When each is over, by the limiter's clock.
    ends: BTreeSet<(u64, Token)>,
}

impl Held {
    /// None yet; `None` if the policy has no concurrency limit.
    pub(crate) fn new(policy: &Policy, limiter: &Arc<InProcess>) -> Option<Self> {
        let times = |dimension: &tollgate_policy::Dimension| Times {
            own: shortest(dimension.quotas()),
            tiers: dimension.tiers().iter().map(|tier| shortest(tier.quotas())).collect(),
        };
        has_in_flight(policy).then(|| Self {
            limiter: Arc::clone(limiter),
            times: policy.dimensions().iter().map(times).collect(),
            requests: Mutex::default(),
            overdue: AtomicU64::new(0),
        })
    }

    /// For how many nanoseconds a request with these keys is held; `None` if it counts in no concurrency
    /// limit.
    pub(crate) fn time(&self, keys: &[Option<Key>]) -> Option<u64> {
        let of = |(key, times): (&Option<Key>, &Times)| match key.as_ref()?.tier_place() {
            Some(tier) => times.tiers.get(tier).copied().flatten(),
            None => times.own,
        };
        keys.iter().zip(&self.times).filter_map(of).min()
    }

    /// Holds a request until this token is released, or the time is over.
    pub(crate) fn hold(&self, token: Token, in_flight: RequestInFlight, time: u64) {
        let end = self.limiter.clock().now().saturating_add(time);
        let mut requests = self.requests();
        requests.ends.insert((end, token));
        requests.by_token.insert(token, (end, in_flight));
    }

    /// Releases the request with this token. Returns whether it was in flight.
    pub(crate) fn release(&self, token: Token) -> bool {
        self.end_overdue();
        let mut requests = self.requests();
        let released = requests.by_token.remove(&token);
        if let Some((end, _)) = &released {
            requests.ends.remove(&(*end, token));
        }
        drop(requests);
        released.is_some()
    }

    /// Ends the requests whose time is over.
    pub(crate) fn end_overdue(&self) {
        let now = self.limiter.clock().now();
        let mut requests = self.requests();
        if requests.ends.first().is_none_or(|(end, _)| *end > now) {
            return;
        }
        let Requests { by_token, ends } = &mut *requests;
        let later = ends.split_off(&(now.saturating_add(1), Token(0)));
        let over = mem::replace(ends, later);
        let over: Vec<_> = over.iter().filter_map(|(_, token)| by_token.remove(token)).collect();
        drop(requests);
        self.overdue.fetch_add(over.len() as u64, Ordering::Relaxed);
    }

    /// How many are in flight.
    pub(crate) fn count(&self) -> u64 {
        self.end_overdue();
        self.requests().by_token.len() as u64
    }

    /// How many were over before they were released.
    pub(crate) fn overdue(&self) -> u64 {
        self.overdue.load(Ordering::Relaxed)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // No code panics while it has the lock.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a policy has a concurrency limit.
pub(crate) fn has_in_flight(policy: &Policy) -> bool {
    policy.dimensions().iter().any(|dimension| dimension.all_quotas().any(counts_in_flight))
}

/// Whether a quota is a concurrency limit.
pub(crate) fn counts_in_flight(quota: &Quota) -> bool {
    quota.algorithm() == Algorithm::Concurrency
}

/// The shortest time for which one of these quotas holds a request.
fn shortest(quotas: &[Quota]) -> Option<u64> {
    quotas.iter().filter_map(Quota::max_hold).min().map(nanos)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_http::middleware::{Limits, Options};

    const TEXT: &str = "[[dimension]]\nname = \"user\"\nquota = [{ algorithm = \"concurrency\", limit = 9 }]";

    /// However many requests there were, those in flight alone take room.
    #[test]
    fn nothing_is_kept_of_a_request_that_is_over() {
        let policy = Policy::from_toml(TEXT).unwrap();
        let clock = tollgate::MockClock::new();
        let builder = policy.builder_of_requests::<[Key]>().unwrap().clock(tollgate::AnyClock::from(clock.clone()));
        let limiter = Arc::new(builder.build().unwrap());
        let held = Held::new(&policy, &limiter).unwrap();
        let limits = Limits::<_, bytes::Bytes>::new(limiter, Options::default());
        let asked = policy.request_limiter().unwrap().ask(vec![Some("alice".into())]);
        let tollgate_policy::Asked::Limits(keys) = asked else { panic!("no rule is for it") };
        let time = held.time(&keys).unwrap();
        assert_eq!(time, 60_000_000_000);
        let hold = || {
            let token = Token::new().unwrap();
            held.hold(token, limits.enter_by_dimension(&keys, 1).1.unwrap(), time);
            token
        };
        let kept = || {
            let requests = held.requests();
            [requests.by_token.len(), requests.ends.len()]
        };
        let tokens = [hold(), hold(), hold()];
        assert_eq!(kept(), [3, 3]);
        assert_eq!([held.release(tokens[1]), held.release(tokens[1])], [true, false]);
        assert_eq!(kept(), [2, 2]);
        clock.advance(Duration::from_secs(60));
        assert_eq!((held.count(), kept(), held.overdue()), (0, [0, 0], 2));
    }

    #[test]
    fn a_token_is_read_as_it_was_written_and_in_no_other_way() {
        let [one, other] = [(); 2].map(|()| Token::new().unwrap());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!(Token::from_text(&text), Some(one));
        assert_eq!(Token::from_text(&Token(7).to_string()), Some(Token(7)));
        let signed = format!("+{}", &text[1..]);
        for wrong in ["", "7", &text[1..], &format!("{text}0"), &signed, &"A".repeat(32), &"ü".repeat(16)] {
            assert_eq!(Token::from_text(wrong), None, "{wrong}");
        }
    }
}
