//! [`KeyDigest`]: what stands for a key on the server.

use core::fmt;

/// The keyed hash of a key, as its name on the server has it: 32 hexadecimal digits.
///
/// ```
/// use tollgate_redis::{RedisLimiter, Secret, Store};
/// use tollgate::Quota;
///
/// let store = Store::new("redis://127.0.0.1", Secret::new("sixteen bytes or more")?)?;
/// let limiter = RedisLimiter::new(&store, "login", Quota::per_minute(5))?;
/// assert_eq!(limiter.digest("alice").to_string().len(), 32);
/// assert_ne!(limiter.digest("alice"), limiter.digest("bob"));
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub(crate) u128);

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
