//! [`Keys`]: the keys of a request in several dimensions, as one value.

use core::borrow::Borrow;
use core::hash::Hash;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::single::{AsKey, ByRef, fingerprint_of};
use crate::caps::MAX_DIMENSIONS;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::tier::TierKey;

/// The dimensions of a [`JointLimiter`](crate::JointLimiter): the types of their keys.
///
/// - A **tuple** of one to eight types, one for each dimension: `(String, IpAddr, String)`.
/// - A **slice** `[T]` if the number of dimensions is known only at run time. Their keys have one
///   type.
///
/// This trait is sealed: only the types above implement it.
///
/// ```
/// use tollgate::{JointLimiter, Quota};
///
/// let builder = JointLimiter::<(String, u64)>::builder();
/// let builder = builder.dimension("user", [Quota::per_minute(5)]);
/// let fixed = builder.dimension("tenant", [Quota::per_minute(9)]).build()?;
/// assert!(fixed.try_acquire(("alice", 7))?.is_admitted());
///
/// let mut builder = JointLimiter::<[String]>::builder();
/// for name in ["user", "endpoint"] {
///     builder = builder.dimension(name, [Quota::per_minute(5)]);
/// }
/// assert!(builder.build()?.try_acquire(["alice", "/login"])?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the keys of dimensions",
    note = "name a tuple of up to eight key types, such as `JointLimiter::<(String, IpAddr)>`, or `[T]` for a number of \
            dimensions that is known at run time"
)]
pub trait Dimensions: sealed::Dimensions {
    /// The number of dimensions; `None` if it is known only at run time.
    ///
    /// ```
    /// use tollgate::Dimensions;
    ///
    /// assert_eq!(<(String, u64)>::COUNT, Some(2));
    /// assert_eq!(<[String]>::COUNT, None);
    /// ```
    const COUNT: Option<usize>;
}

impl<T> Dimensions for [T] {
    const COUNT: Option<usize> = None;
}

/// The absence of a key in a dimension, which is then not asked. It is `None` without a type to
/// name.
///
/// ```
/// use tollgate::{Absent, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, u64)>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("tenant", [Quota::per_minute(2)])
///     .build()?;
/// assert!(limiter.try_acquire((Absent, 7))?.is_admitted());
/// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Absent;

/// A key of one dimension whose keys are of type `K`, or the absence of a key.
///
/// - A form of a key as in [`AsKey`]: `&K`, a reference to a borrowed form, or an integer, address,
///   array or tuple by value.
/// - `Option` of any type that is [`AsKey<K>`](AsKey), including your own types.
/// - The key of a [tier](crate::Tier::key).
/// - [`Absent`].
///
/// This trait is sealed: only the types above implement it.
///
/// ```
/// use tollgate::{Absent, JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, u64)>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("tenant", [Quota::per_minute(2)])
///     .build()?;
/// assert!(limiter.try_acquire((&String::from("alice"), Absent))?.is_admitted());
/// let user: Option<&str> = None;
/// assert!(limiter.try_acquire((user, 7))?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be passed as the key of a dimension whose keys are `{K}`: pass a reference, such as \
               `&{K}`",
    label = "not a form of the key `{K}`",
    note = "pass `&{K}` or a reference to a borrowed form of it (`&str` for `String`), an `Option` of that, or `Absent`; \
            integers, addresses and arrays can be passed by value"
)]
pub trait DimensionKey<K: ?Sized>: sealed::DimensionKey<K> {
    #[doc(hidden)]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint>;
}

/// The keys of one request, one for each dimension of `D` and in their order.
///
/// - For a tuple of dimensions, a tuple with a [`DimensionKey`] for each.
/// - For a slice of dimensions, a slice or an array of [`DimensionKey`]s.
/// - A reference to either.
///
/// A dimension without a key is not asked. A request without any key is an error:
/// [`JointError::NoKeys`](crate::JointError::NoKeys).
///
/// This trait is sealed: only the types above implement it.
///
/// ```
/// use tollgate::{JointLimiter, Quota};
///
/// let limiter = JointLimiter::<(String, u64)>::builder()
///     .dimension("user", [Quota::per_minute(1)])
///     .dimension("tenant", [Quota::per_minute(2)])
///     .build()?;
/// let keys = ("alice", 7);
/// assert!(limiter.try_acquire(&keys)?.is_admitted());
/// assert!(limiter.try_acquire(keys)?.is_denied());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the keys of dimensions `{D}`",
    note = "pass a tuple with one key for each dimension, in order; for dimensions `[T]` a slice or an array of keys"
)]
pub trait Keys<D: ?Sized>: sealed::Keys<D> {
    #[doc(hidden)]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>));
}

impl<K: ?Sized> DimensionKey<K> for Absent {
    fn fingerprint(&self, _: &impl Fingerprinter) -> Option<Fingerprint> {
        None
    }
}

impl<K: ?Sized> sealed::DimensionKey<K> for Absent {}

impl<K: ?Sized, A: AsKey<K>> DimensionKey<K> for Option<A> {
    #[inline]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        self.as_ref().map(|key| fingerprint_of(fingerprinter, ByRef(key)))
    }
}

impl<K: ?Sized, A: AsKey<K>> sealed::DimensionKey<K> for Option<A> {}

/// Implements [`DimensionKey`] for types that are [`AsKey`].
macro_rules! given {
    ($([$($generics:tt)*] $type:ty => $key:ty;)*) => { $(
        impl<$($generics)*> DimensionKey<$key> for $type {
            #[inline]
            fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
                Some(fingerprint_of::<$key>(fingerprinter, ByRef(self)))
            }
        }

        impl<$($generics)*> sealed::DimensionKey<$key> for $type {}
    )* };
}

macro_rules! by_value {
    ($($type:ty)*) => { given! { $([] $type => $type;)* } };
}

by_value!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize bool char);
by_value!(IpAddr Ipv4Addr Ipv6Addr SocketAddr SocketAddrV4 SocketAddrV6);

#[diagnostic::do_not_recommend]
impl<K: Borrow<Q> + ?Sized, Q: Hash + ?Sized> DimensionKey<K> for &Q {
    #[inline]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        Some(fingerprint_of::<K>(fingerprinter, *self))
    }
}

#[diagnostic::do_not_recommend]
impl<K: Borrow<Q> + ?Sized, Q: Hash + ?Sized> sealed::DimensionKey<K> for &Q {}

given! { [T: Hash, const N: usize] [T; N] => [T; N]; }
given! { [K: ?Sized, A: AsKey<K>] TierKey<A> => K; }

impl<T, A: DimensionKey<T>> Keys<[T]> for [A] {
    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.iter().map(|key| key.fingerprint(fingerprinter)).for_each(take);
    }
}

impl<T, A: DimensionKey<T>> sealed::Keys<[T]> for [A] {}

impl<T, A: DimensionKey<T>, const N: usize> Keys<[T]> for [A; N] {
    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.as_slice().each(fingerprinter, take);
    }
}

impl<T, A: DimensionKey<T>, const N: usize> sealed::Keys<[T]> for [A; N] {}

#[diagnostic::do_not_recommend]
impl<D: ?Sized, Q: Keys<D> + ?Sized> Keys<D> for &Q {
    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        Q::each(self, fingerprinter, take);
    }
}

#[diagnostic::do_not_recommend]
impl<D: ?Sized, Q: Keys<D> + ?Sized> sealed::Keys<D> for &Q {}

/// Implements the traits for tuples of this length.
macro_rules! tuples {
    ($count:literal: $($part:ident $key:ident $value:ident),*) => {
        // A tuple as one key of several parts.
        given! { [$($key, $part: AsKey<$key>),*] ($($part,)*) => ($($key,)*); }

        // A tuple as one key for each dimension.
        impl<$($key),*> Dimensions for ($($key,)*) {
            const COUNT: Option<usize> = Some($count);
        }

        impl<$($key),*> sealed::Dimensions for ($($key,)*) {}

        impl<$($key, $part: DimensionKey<$key>),*> Keys<($($key,)*)> for ($($part,)*) {
            #[inline]
            fn each(&self, fingerprinter: &impl Fingerprinter, mut take: impl FnMut(Option<Fingerprint>)) {
                let ($($value,)*) = self;
                $(take($value.fingerprint(fingerprinter));)*
            }
        }

        impl<$($key, $part: DimensionKey<$key>),*> sealed::Keys<($($key,)*)> for ($($part,)*) {}
    };
}

tuples!(1: A S a);
tuples!(2: A S a, B T b);
tuples!(3: A S a, B T b, C U c);
tuples!(4: A S a, B T b, C U c, D V d);
tuples!(5: A S a, B T b, C U c, D V d, E W e);
tuples!(6: A S a, B T b, C U c, D V d, E W e, F X f);
tuples!(7: A S a, B T b, C U c, D V d, E W e, F X f, G Y g);
tuples!(8: A S a, B T b, C U c, D V d, E W e, F X f, G Y g, H Z h);

const _: () = assert!(MAX_DIMENSIONS == 8, "as many as the longest tuple");

mod sealed {
    pub trait Dimensions {}
    pub trait DimensionKey<K: ?Sized> {}
    pub trait Keys<D: ?Sized> {}

    impl<T> Dimensions for [T] {}
}
