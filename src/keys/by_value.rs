//! `by_value!`: keys that requests pass by value.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Lets requests pass keys of these types by value, alone and as a part of a tuple.
///
/// Without it they pass a reference. Write it once, in the crate that has the type. The type
/// implements [`Hash`](core::hash::Hash). A value that is not [`Copy`] is gone after the request.
///
/// ```
/// use tollgate::{JointLimiter, Limiter, Quota};
///
/// #[derive(Clone, Copy, Hash)]
/// enum Plan {
///     Free,
///     Paid,
/// }
///
/// tollgate::by_value!(Plan);
///
/// let limiter = Limiter::<Plan>::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire(Plan::Free).is_admitted());
/// assert!(limiter.try_acquire(&Plan::Free).is_denied());
///
/// let limiter = Limiter::<(Plan, String)>::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire((Plan::Paid, "/search")).is_admitted());
///
/// let limiter = JointLimiter::<(Plan, u64)>::builder()
///     .dimension("plan", [Quota::per_minute(5)])
///     .dimension("user", [Quota::per_minute(1)])
///     .build()?;
/// assert!(limiter.try_acquire((Plan::Paid, 7))?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! by_value {
    ($($type:ty),+ $(,)?) => { $(
        impl $crate::AsKey<$type> for $type {
            #[inline]
            fn hash_key<H: ::core::hash::Hasher>(&self, state: &mut H) {
                ::core::hash::Hash::hash(self, state);
            }
        }

        impl $crate::__private::AlwaysKey for $type {}
    )+ };
}

by_value!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char);
// A text that was made for the request: `format!("{user}/{path}")`.
by_value!(String);
by_value!(IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6);
#[cfg(feature = "uuid")]
by_value!(uuid::Uuid);
