//! The forms in which a request passes one key ([`AsKey`]), and the tier that it names ([`Tier`]).

mod by_value;

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::fingerprint::{Fingerprint, Fingerprinter};

/// A form of a key of type `K`.
///
/// A limiter hashes keys and never stores them. So a request can pass any form of the key that
/// hashes as the key does:
///
/// | type `K` of the limiter's keys | forms that a request can pass |
/// |---|---|
/// | any `K` | `&K`, or a [borrowed](Borrow) form: `&str` for `String`, `&[T]` for `Vec<T>` |
/// | an integer, `bool`, `char`, `String`, an IP or socket address, a `Uuid` (feature `uuid`) | also the value: `7`, `addr` |
/// | a type of yours with [`by_value!`](crate::by_value) | also the value: `Plan::Free` |
/// | an array | also the array |
/// | an `Option` | also an `Option` of a form: `Some("x")` for `Option<String>`; [`Absent`](crate::Absent) for `None` |
/// | a tuple of up to eight parts | also a tuple of forms: `(7, "x")` for `(u64, String)` |
///
/// None of these allocates. Each method that takes a key takes the same forms, here and in
/// `tollgate-wait`. In a tier, [`Tier::key`] takes them.
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
/// # What is not a form
/// - **`&String` for `Limiter<str>`.** That limiter takes `&str` alone, because a `str` does not
///   [borrow](Borrow) as a `String`, and Rust keeps this place free for the standard library. Name
///   `String`: `Limiter<String>` takes `&str` and `&String`.
/// - **Each `Copy` type by value.** `&str` is `Copy`, too, and would be a form of `&str` in two ways.
///   Rust cannot say "but references". [`by_value!`](crate::by_value) says it for one type.
/// - **`None` without a type**, as in `try_acquire((None, 7))`. Rust asks for its type: pass
///   [`Absent`](crate::Absent), which hashes alike.
///
/// # Keys of your own
/// For a type that is passed by value, write [`by_value!`](crate::by_value).
///
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
            can be passed by value, and so can a `Copy` type of yours with `tollgate::by_value!({K})`; of a tuple, pass \
            a tuple of such values"
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

/// As `Option` hashes by its derived implementation.
impl<K, A: AsKey<K>> AsKey<Option<K>> for Option<A> {
    #[inline]
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.as_ref().map(|key| Hashed::<K, A>(key, PhantomData)).hash(state);
    }

    #[inline]
    fn tier(&self) -> Tier {
        self.as_ref().map(AsKey::tier).unwrap_or_default()
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

/// A tier of a limiter: a named set of quotas, which the key of a request chooses.
///
/// Customers of one plan share a tier, or endpoints of one class. Each key has its own permits. The
/// tier is part of the key: a key in two tiers has permits in each, and a key that goes to another
/// tier starts there anew. Lists, penalties and [`enforced_percent`] are of the key in all tiers.
///
/// A tier costs nothing: the number of the tier is in the fingerprint of the key. A limiter has at
/// most 15 tiers; a [`JointLimiter`](crate::JointLimiter) has 16 dimensions and tiers together.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::builder(Quota::per_minute(60))
///     .tier("premium", [Quota::per_minute(600)])
///     .build()?;
/// let premium = limiter.tier("premium").unwrap();
/// assert_eq!(limiter.peek("bob").remaining(), 60);
/// assert_eq!(limiter.peek(premium.key("alice")).remaining(), 600);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// `Tier::default()` is that of keys which name none. It has the quotas of the limiter itself:
///
/// ```
/// # let builder = tollgate::Limiter::<String>::builder(tollgate::Quota::per_minute(60));
/// # let limiter = builder.build()?;
/// # let plan = "free";
/// let tier = limiter.tier(plan).unwrap_or_default();
/// assert_eq!(limiter.peek(tier.key("bob")), limiter.peek("bob"));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
///
/// A tier is a number: use it with the limiter that it comes from. A request with a tier that its
/// limiter does not have panics.
///
/// [`enforced_percent`]: crate::LimiterBuilder::enforced_percent
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tier(pub(crate) u8);

impl Tier {
    /// The key in this tier, for every method that takes a key.
    ///
    /// `key` has any form that [`AsKey`] allows. A tuple is in the tier of its parts.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<str>::builder(Quota::per_minute(1));
    /// let limiter = builder.tier("premium", [Quota::per_minute(2)]).build()?;
    /// let premium = limiter.tier("premium").unwrap();
    ///
    /// let alice = premium.key("alice");
    /// assert!(limiter.try_acquire(alice).is_admitted());
    /// assert_eq!(limiter.peek(alice).remaining(), 1);
    /// assert!(limiter.forget(alice));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub const fn key<A>(self, key: A) -> TierKey<A> {
        TierKey { tier: self, key }
    }

    pub(crate) fn group(self) -> usize {
        self.0.into()
    }

    /// This tier, or the other if this is none.
    pub(crate) fn or(self, other: Self) -> Self {
        if self.0 == 0 { other } else { self }
    }
}

/// A key in a tier: see [`Tier::key`].
///
/// ```
/// use tollgate::{AsKey, Limiter, Quota, TierKey};
///
/// let builder = Limiter::<str>::builder(Quota::per_minute(1));
/// let limiter = builder.tier("premium", [Quota::per_minute(2)]).build()?;
/// let key: TierKey<&str> = limiter.tier("premium").unwrap().key("alice");
/// assert!(limiter.try_acquire(key).is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TierKey<A> {
    pub(crate) tier: Tier,
    pub(crate) key: A,
}

/// A form of a key as a fingerprinter takes it: as a value with [`Hash`].
struct Hashed<'a, K: ?Sized, A>(&'a A, PhantomData<fn(&K)>);

impl<K: ?Sized, A: AsKey<K>> Hash for Hashed<'_, K, A> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_key(state);
    }
}

/// The fingerprint of a key, which is the same for all of its forms. Its group is the number of its
/// tier, or zero.
#[inline]
pub(crate) fn fingerprint_of<K: ?Sized>(fingerprinter: &impl Fingerprinter, key: &impl AsKey<K>) -> Fingerprint {
    let group = key.tier().group();
    fingerprinter.fingerprint(&Hashed(key, PhantomData)).of_group(group)
}

/// A form that stands for a key, always. [`Option`] and [`Absent`](crate::Absent) are not: in a dimension they may
/// stand for no key.
#[doc(hidden)]
pub trait AlwaysKey {}

impl<Q: ?Sized> AlwaysKey for &Q {}
impl<T, const N: usize> AlwaysKey for [T; N] {}
impl<A> AlwaysKey for TierKey<A> {}

/// Implements a macro for tuples of each length.
macro_rules! each_length {
    ($tuples:ident) => {
        $tuples!(1: A S a);
        $tuples!(2: A S a, B T b);
        $tuples!(3: A S a, B T b, C U c);
        $tuples!(4: A S a, B T b, C U c, D V d);
        $tuples!(5: A S a, B T b, C U c, D V d, E W e);
        $tuples!(6: A S a, B T b, C U c, D V d, E W e, F X f);
        $tuples!(7: A S a, B T b, C U c, D V d, E W e, F X f, G Y g);
        $tuples!(8: A S a, B T b, C U c, D V d, E W e, F X f, G Y g, H Z h);
    };
}

pub(crate) use each_length;

/// A tuple as one key of several parts: each is a form of the part at the same place.
macro_rules! tuples {
    ($count:literal: $($part:ident $key:ident $value:ident),*) => {
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

        impl<$($part),*> AlwaysKey for ($($part,)*) {}
    };
}

each_length!(tuples);
