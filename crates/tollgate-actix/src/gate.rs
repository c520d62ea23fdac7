//! [`Gate`]: a limiter as the middleware asks it.

use core::future::Future;
use core::hash::Hash;
use core::pin::Pin;

#[cfg(feature = "redis")]
use tollgate::Dimensions;
use tollgate::{Clock, DirectLimiter, Fingerprinter, JointLimiter, Limiter};
use tollgate_http::middleware;
#[cfg(feature = "redis")]
use tollgate_http::middleware::{Limits, PolicyLimiter, StoreKeys};

use self::sealed::Same as _;
use crate::answer::Value;
use crate::key::{Head, JointKeys, KeyError, KeyExtractor, Missing, NoKey};

/// A limiter that the middleware can ask with the keys of an extractor:
/// - a [`DirectLimiter`], without a key ([`NoKey`]);
/// - a [`Limiter<K>`](Limiter), with an extractor of `K`;
/// - a [`JointLimiter`], with a tuple of extractors;
/// - with the feature `redis`, a `PolicyLimiter`, with a tuple of extractors of `StoreKey`s.
///
/// This trait is sealed: only these limiters implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot limit by the key of `{X}`",
    label = "this limiter needs another key",
    note = "a `Limiter<K>` needs `.key(..)` with an extractor of exactly `K`; \
            a `JointLimiter` needs `.key((..,))` with a tuple of one extractor for each dimension; \
            a `DirectLimiter` needs no key"
)]
pub trait Gate<X: KeyExtractor>: sealed::Find<X> {}

impl<X: KeyExtractor, L: sealed::Find<X>> Gate<X> for L {}

/// The outcome of a request that waits: in a line, or for a store.
pub(crate) type Waiting<L, X> =
    Pin<Box<dyn Future<Output = middleware::Outcome<L, <L as sealed::Find<X>>::Keys, Value>>>>;

pub(crate) mod sealed {
    use core::hash::Hash;

    use tollgate_http::middleware::{self, Limits};

    use super::{Head, KeyError, KeyExtractor, Missing, Waiting};
    use crate::answer::Value;

    /// Finds the keys to ask a limiter with.
    pub trait Find<X: KeyExtractor>: middleware::Gate<<Self as Find<X>>::Keys> + 'static {
        /// The keys of a request.
        type Keys: Hash + Clone + 'static;

        /// The keys to ask with; `None` if the request is not limited.
        fn find(extractor: &X, missing: &Missing<X::Key>, head: &Head<'_>) -> Result<Option<Self::Keys>, KeyError>;

        /// Decides on a store; the keys if this limiter decides at once. Only the keys for a store
        /// have to be `Send`.
        fn decide_later(_: &Limits<Self, Value>, keys: Self::Keys, _: u32) -> Result<Waiting<Self, X>, Self::Keys>
        where
            Self: Sized,
        {
            Err(keys)
        }
    }

    /// That `K`, the key of a limiter, is `X`, the key of an extractor. As a bound of its own, it
    /// tells what to write where they differ. Either is inferred from the other.
    #[diagnostic::on_unimplemented(
        message = "the key of the limiter is `{K}`, and that of the extractor is `{X}`",
        label = "here the key has to be `{K}`",
        note = "write `.key(..)` with an extractor of `{K}`; without `.key(..)` the key is `()`"
    )]
    pub trait Same<K, X> {
        /// The same key.
        fn same(key: X) -> K;
    }

    /// What implements [`Same`]: a type that the compiler knows before it knows the keys.
    #[derive(Debug)]
    pub struct Keys;

    impl<K> Same<K, K> for Keys {
        fn same(key: K) -> K {
            key
        }
    }
}

impl<C: Clock> sealed::Find<NoKey> for DirectLimiter<C>
where
    Self: 'static,
{
    type Keys = ();

    fn find(_: &NoKey, _: &Missing<()>, _: &Head<'_>) -> Result<Option<()>, KeyError> {
        Ok(Some(()))
    }
}

impl<K, C, F, X> sealed::Find<X> for Limiter<K, C, F>
where
    Self: 'static,
    K: Hash + Clone + 'static,
    C: Clock,
    F: Fingerprinter,
    X: KeyExtractor,
    sealed::Keys: sealed::Same<K, X::Key>,
{
    type Keys = K;

    fn find(extractor: &X, missing: &Missing<X::Key>, head: &Head<'_>) -> Result<Option<K>, KeyError> {
        Ok(missing.resolve(extractor.extract(head))?.map(sealed::Keys::same))
    }
}

impl<C, F, X> sealed::Find<X> for JointLimiter<X::Key, C, F>
where
    Self: 'static,
    C: Clock,
    F: Fingerprinter,
    X: JointKeys<Found: Hash + Clone + 'static>,
{
    type Keys = X::Found;

    fn find(extractor: &X, missing: &Missing<X::Key>, head: &Head<'_>) -> Result<Option<X::Found>, KeyError> {
        extractor.find(missing, head)
    }
}

#[cfg(feature = "redis")]
impl<X> sealed::Find<X> for PolicyLimiter<X::Key>
where
    X: JointKeys<Key: Dimensions, Found: Hash + Clone + Send + Sync + StoreKeys + 'static>,
    Self: middleware::Gate<X::Found> + Send + Sync + 'static,
{
    type Keys = X::Found;

    fn find(extractor: &X, missing: &Missing<X::Key>, head: &Head<'_>) -> Result<Option<X::Found>, KeyError> {
        extractor.find(missing, head)
    }

    fn decide_later(limits: &Limits<Self, Value>, keys: X::Found, cost: u32) -> Result<Waiting<Self, X>, X::Found> {
        Ok(limits.later(keys, cost)?)
    }
}
