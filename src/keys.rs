//! The forms in which a request passes one key ([`AsKey`]), or keys of several dimensions
//! ([`Keys`]).

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::caps::MAX_DIMENSIONS;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::tier::{Tier, TierKey};

/// A form of a key of type `K`.
///
/// A limiter hashes keys and never stores them. So a request can pass any form of the key that
/// hashes as the key does:
///
/// | type `K` of the limiter's keys | forms that a request can pass |
/// |---|---|
/// | any `K` | `&K`, or a [borrowed](Borrow) form: `&str` for `String`, `&[T]` for `Vec<T>` |
/// | an integer, `bool`, `char`, an IP or socket address | also the value: `7`, `addr` |
/// | an array | also the array |
/// | a tuple of up to eight parts | also a tuple of forms: `(7, "x")` for `(u64, String)` |
///
/// None of these allocates. `Limiter<str>` and `Limiter<String>` both take `&str`. The examples
/// name `String`, because such a limiter takes `&String` as well.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Limiter, Quota};
///
/// let by_name = Limiter::<String>::new(Quota::per_minute(5))?;
/// assert!(by_name.try_acquire("alice").is_admitted());
/// assert!(by_name.try_acquire(&String::from("alice")).is_admitted());
///
/// let by_number = Limiter::<u64>::new(Quota::per_minute(5))?;
/// assert!(by_number.try_acquire(7).is_admitted());
///
/// let by_tenant_and_name = Limiter::<(u64, String)>::new(Quota::per_minute(5))?;
/// assert!(by_tenant_and_name.try_acquire((7, "alice")).is_admitted());
///
/// let by_address_and_path = Limiter::<(IpAddr, String)>::new(Quota::per_minute(5))?;
/// let addr: IpAddr = [192, 0, 2, 7].into();
/// assert!(by_address_and_path.try_acquire((addr, "/login")).is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// A key of another type does not compile:
///
/// ```compile_fail,E0277
/// let limiter = tollgate::Limiter::<u64>::new(tollgate::Quota::per_minute(5)).unwrap();
/// limiter.try_acquire("alice");
/// ```
///
/// ```compile_fail,E0277
/// let limiter = tollgate::Limiter::<(u64, String)>::new(tollgate::Quota::per_minute(5)).unwrap();
/// limiter.try_acquire(("alice", 7_u64));
/// ```
///
/// ```compile_fail,E0277
/// let limiter = tollgate::Limiter::<u64>::new(tollgate::Quota::per_minute(5)).unwrap();
/// limiter.try_acquire(7_u32);
/// ```
///
/// # Keys of your own
/// Implement the trait for the borrowed form of a key of your own. The contract: `hash_key` feeds
/// the hasher exactly as `K`'s [`Hash`] does. If it does not, the two forms are limited separately.
///
/// ```
/// use std::hash::{Hash, Hasher};
/// use tollgate::{AsKey, Limiter, Quota};
///
/// #[derive(Hash)]
/// struct Endpoint {
///     method: String,
///     path: String,
/// }
///
/// struct EndpointRef<'a> {
///     method: &'a str,
///     path: &'a str,
/// }
///
/// impl AsKey<Endpoint> for EndpointRef<'_> {
///     fn hash_key<H: Hasher>(&self, state: &mut H) {
///         self.method.hash(state);
///         self.path.hash(state);
///     }
/// }
///
/// let limiter = Limiter::<Endpoint>::new(Quota::per_minute(1))?;
/// assert!(limiter.try_acquire(EndpointRef { method: "GET", path: "/" }).is_admitted());
/// assert!(limiter.try_acquire(&Endpoint { method: "GET".into(), path: "/".into() }).is_denied());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be passed as the key of a limiter whose keys are `{K}`: pass a reference, such as `&{K}`",
    label = "not a form of the key `{K}`",
    note = "pass `&{K}` or a reference to a borrowed form of it (`&str` for `String`); integers, addresses and arrays \
            can be passed by value; of a tuple, pass a tuple of such values"
)]
pub trait AsKey<K: ?Sized> {
    /// Feeds the hasher exactly as `K`'s [`Hash`] does for this key.
    ///
    /// ```
    /// use std::hash::{DefaultHasher, Hash, Hasher};
    /// use tollgate::AsKey;
    ///
    /// let (mut of_key, mut of_form) = (DefaultHasher::new(), DefaultHasher::new());
    /// String::from("alice").hash(&mut of_key);
    /// AsKey::<String>::hash_key(&"alice", &mut of_form);
    /// assert_eq!(of_form.finish(), of_key.finish());
    /// ```
    fn hash_key<H: Hasher>(&self, state: &mut H);

    /// The tier of the key; see [`Tier::key`]. By default that of keys which name none.
    ///
    /// ```
    /// use tollgate::{AsKey, Limiter, Quota, Tier};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier("premium").unwrap();
    /// assert_eq!(AsKey::<String>::tier(&premium.key("alice")), premium);
    /// assert_eq!(AsKey::<String>::tier(&"alice"), Tier::default());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[inline]
    fn tier(&self) -> Tier {
        Tier::default()
    }
}

#[diagnostic::do_not_recommend]
impl<K: Borrow<Q> + ?Sized, Q: Hash + ?Sized> AsKey<K> for &Q {
    #[inline]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        Q::hash(self, state);
    }
}

impl<T: Hash, const N: usize> AsKey<[T; N]> for [T; N] {
    #[inline]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

impl<K: ?Sized, A: AsKey<K>> AsKey<K> for TierKey<A> {
    #[inline]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.key.hash_key(state);
    }

    #[inline]
    fn tier(&self) -> Tier {
        self.tier
    }
}

/// A form of a key as a fingerprinter takes it: as a value with [`Hash`].
struct Hashed<'a, K: ?Sized, A>(&'a A, PhantomData<fn(&K)>);

impl<K: ?Sized, A: AsKey<K>> Hash for Hashed<'_, K, A> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_key(state);
    }
}

/// The fingerprint of a key, which is the same for all of its forms. Its plan is the number of its
/// tier, or zero.
#[inline]
pub(crate) fn fingerprint_of<K: ?Sized>(fingerprinter: &impl Fingerprinter, key: &impl AsKey<K>) -> Fingerprint {
    let plan = key.tier().plan();
    fingerprinter.fingerprint(&Hashed(key, PhantomData)).of_plan(plan)
}

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
        self.as_ref().map(|key| fingerprint_of(fingerprinter, key))
    }
}

impl<K: ?Sized, A: AsKey<K>> sealed::DimensionKey<K> for Option<A> {}

/// Implements [`DimensionKey`] for types that are [`AsKey`].
macro_rules! given {
    ($([$($generics:tt)*] $type:ty => $key:ty;)*) => { $(
        impl<$($generics)*> DimensionKey<$key> for $type {
            #[inline]
            fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
                Some(fingerprint_of::<$key>(fingerprinter, self))
            }
        }

        impl<$($generics)*> sealed::DimensionKey<$key> for $type {}
    )* };
}

/// Implements the traits for types that requests pass by value.
macro_rules! by_value {
    ($($type:ty)*) => { $(
        impl AsKey<$type> for $type {
            #[inline]
            fn hash_key<H: Hasher>(&self, state: &mut H) {
                self.hash(state);
            }
        }

        given! { [] $type => $type; }
    )* };
}

by_value!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize bool char);
by_value!(IpAddr Ipv4Addr Ipv6Addr SocketAddr SocketAddrV4 SocketAddrV6);

#[diagnostic::do_not_recommend]
impl<K: Borrow<Q> + ?Sized, Q: Hash + ?Sized> DimensionKey<K> for &Q {
    #[inline]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        Some(fingerprint_of::<K>(fingerprinter, self))
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
        // A tuple as one key of several parts: each is a form of the part at the same place.
        impl<$($key, $part: AsKey<$key>),*> AsKey<($($key,)*)> for ($($part,)*) {
            #[inline]
            fn hash_key<HH: Hasher>(&self, state: &mut HH) {
                let ($($value,)*) = self;
                $($value.hash_key(state);)*
            }

            #[inline]
            fn tier(&self) -> Tier {
                let ($($value,)*) = self;
                Tier::default()$(.or($value.tier()))*
            }
        }

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
