//! The forms in which a request passes the keys of several dimensions ([`Keys`]).

use core::hash::{Hash, Hasher};

use crate::caps::MAX_DIMENSIONS;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::keys::{AlwaysKey, AsKey, each_length, fingerprint_of};

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

/// The key `None`.
impl<K> AsKey<Option<K>> for Absent {
    #[inline]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        None::<()>.hash(state);
    }
}

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

    #[doc(hidden)]
    fn hash_key_or_none<H: Hasher>(&self, state: &mut H);
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
    /// Feeds the hasher with the keys and their tiers: alike for all forms of the same keys, and
    /// differently for others.
    ///
    /// ```
    /// use std::hash::{DefaultHasher, Hasher};
    /// use tollgate::{Absent, Keys};
    ///
    /// fn hash(keys: impl Keys<(String, u64)>) -> u64 {
    ///     let mut state = DefaultHasher::new();
    ///     keys.hash_keys(&mut state);
    ///     state.finish()
    /// }
    ///
    /// assert_eq!(hash(("alice", 7)), hash((Some(&String::from("alice")), &7)));
    /// assert_ne!(hash(("alice", 7)), hash(("alice", Absent)));
    /// ```
    fn hash_keys<H: Hasher>(&self, state: &mut H);

    #[doc(hidden)]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>));
}

impl<K: ?Sized> DimensionKey<K> for Absent {
    fn fingerprint(&self, _: &impl Fingerprinter) -> Option<Fingerprint> {
        None
    }

    fn hash_key_or_none<H: Hasher>(&self, state: &mut H) {
        state.write_u8(0);
    }
}

impl<K: ?Sized> sealed::DimensionKey<K> for Absent {}

impl<K: ?Sized, A: AsKey<K>> DimensionKey<K> for Option<A> {
    #[inline]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        self.as_ref().map(|key| fingerprint_of(fingerprinter, key))
    }

    fn hash_key_or_none<H: Hasher>(&self, state: &mut H) {
        match self {
            Some(key) => hash_in_its_tier(key, state),
            None => state.write_u8(0),
        }
    }
}

impl<K: ?Sized, A: AsKey<K>> sealed::DimensionKey<K> for Option<A> {}

#[diagnostic::do_not_recommend]
impl<K: ?Sized, A: AsKey<K> + AlwaysKey> DimensionKey<K> for A {
    #[inline]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        Some(fingerprint_of::<K>(fingerprinter, self))
    }

    fn hash_key_or_none<H: Hasher>(&self, state: &mut H) {
        hash_in_its_tier::<K>(self, state);
    }
}

#[diagnostic::do_not_recommend]
impl<K: ?Sized, A: AsKey<K> + AlwaysKey> sealed::DimensionKey<K> for A {}

fn hash_in_its_tier<K: ?Sized>(key: &impl AsKey<K>, state: &mut impl Hasher) {
    state.write_u8(1);
    key.tier().hash(state);
    key.hash_key(state);
}

impl<T, A: DimensionKey<T>> Keys<[T]> for [A] {
    fn hash_keys<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|key| key.hash_key_or_none(state));
    }

    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.iter().map(|key| key.fingerprint(fingerprinter)).for_each(take);
    }
}

impl<T, A: DimensionKey<T>> sealed::Keys<[T]> for [A] {}

impl<T, A: DimensionKey<T>, const N: usize> Keys<[T]> for [A; N] {
    fn hash_keys<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash_keys(state);
    }

    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.as_slice().each(fingerprinter, take);
    }
}

impl<T, A: DimensionKey<T>, const N: usize> sealed::Keys<[T]> for [A; N] {}

#[diagnostic::do_not_recommend]
impl<D: ?Sized, Q: Keys<D> + ?Sized> Keys<D> for &Q {
    fn hash_keys<H: Hasher>(&self, state: &mut H) {
        Q::hash_keys(self, state);
    }

    #[inline]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        Q::each(self, fingerprinter, take);
    }
}

#[diagnostic::do_not_recommend]
impl<D: ?Sized, Q: Keys<D> + ?Sized> sealed::Keys<D> for &Q {}

/// A tuple as one key for each dimension.
macro_rules! tuples {
    ($count:literal: $($part:ident $key:ident $value:ident),*) => {
        impl<$($key),*> Dimensions for ($($key,)*) {
            const COUNT: Option<usize> = Some($count);
        }

        impl<$($key),*> sealed::Dimensions for ($($key,)*) {}

        impl<$($key, $part: DimensionKey<$key>),*> Keys<($($key,)*)> for ($($part,)*) {
            fn hash_keys<HH: Hasher>(&self, state: &mut HH) {
                let ($($value,)*) = self;
                $($value.hash_key_or_none(state);)*
            }

            #[inline]
            fn each(&self, fingerprinter: &impl Fingerprinter, mut take: impl FnMut(Option<Fingerprint>)) {
                let ($($value,)*) = self;
                $(take($value.fingerprint(fingerprinter));)*
            }
        }

        impl<$($key, $part: DimensionKey<$key>),*> sealed::Keys<($($key,)*)> for ($($part,)*) {}
    };
}

each_length!(tuples);

const _: () = assert!(MAX_DIMENSIONS == 8, "as many as the longest tuple");

mod sealed {
    pub trait Dimensions {}
    pub trait DimensionKey<K: ?Sized> {}
    pub trait Keys<D: ?Sized> {}

    impl<T> Dimensions for [T] {}
}
