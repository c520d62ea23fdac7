//! [`Gate`]: a limiter as middleware asks it, with the keys of an extractor.

use core::hash::Hash;

#[cfg(feature = "redis")]
use tollgate::Dimensions;
use tollgate::{Clock, DirectLimiter, Fingerprinter, JointLimiter, Limiter};
#[cfg(feature = "redis")]
use tollgate_redis::{PolicyLimiter, StoreKeys};

use self::sealed::Same as _;
use super::gate::AskedWith;
use super::key::Extracts;
use super::key::extractors::{JointKeys, NoKey};
use super::key_error::KeyError;
use super::limits::{Limits, OutcomeLater};
use super::missing::Missing;
use super::values::FieldValue;

/// A limiter that can be asked with the keys of an extractor `X`, in the framework `W`:
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
pub trait Gate<W: Extracts<X>, X>: AskedWith<<Self as Gate<W, X>>::Keys> + Sized + 'static {
    /// The keys of a request.
    type Keys: Hash + Clone + 'static;

    /// The keys to ask with; `None` if the request is not limited.
    #[doc(hidden)]
    fn find(extractor: &X, missing: &Missing<W::Key>, head: &W::Head<'_>) -> Result<Option<Self::Keys>, KeyError>;

    /// Decides as [`Limits::later`] does. Only the keys for a store have to be `Send`.
    #[doc(hidden)]
    fn decide_later<V>(
        _: &Limits<Self, V>,
        keys: Self::Keys,
        _: u32,
    ) -> Result<OutcomeLater<Self, Self::Keys, V>, Self::Keys>
    where
        V: FieldValue + Send + Sync + 'static,
    {
        Err(keys)
    }
}

mod sealed {
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

impl<W: Extracts<NoKey>, C: Clock + 'static> Gate<W, NoKey> for DirectLimiter<C> {
    type Keys = ();

    fn find(_: &NoKey, _: &Missing<W::Key>, _: &W::Head<'_>) -> Result<Option<()>, KeyError> {
        Ok(Some(()))
    }
}

impl<W, X, K, C, F> Gate<W, X> for Limiter<K, C, F>
where
    Self: 'static,
    K: Hash + Clone + 'static,
    C: Clock,
    F: Fingerprinter,
    W: Extracts<X>,
    sealed::Keys: sealed::Same<K, W::Key>,
{
    type Keys = K;

    fn find(extractor: &X, missing: &Missing<W::Key>, head: &W::Head<'_>) -> Result<Option<K>, KeyError> {
        Ok(missing.resolve(W::extract(extractor, head))?.map(sealed::Keys::same))
    }
}

impl<W, X, C, F> Gate<W, X> for JointLimiter<<W as Extracts<X>>::Key, C, F>
where
    Self: 'static,
    C: Clock,
    F: Fingerprinter,
    W: Extracts<X>,
    X: JointKeys<W, All = W::Key, Found: Hash + Clone + 'static>,
{
    type Keys = X::Found;

    fn find(extractor: &X, missing: &Missing<W::Key>, head: &W::Head<'_>) -> Result<Option<X::Found>, KeyError> {
        extractor.find(missing, head)
    }
}

#[cfg(feature = "redis")]
impl<W, X> Gate<W, X> for PolicyLimiter<<W as Extracts<X>>::Key>
where
    W: Extracts<X, Key: Dimensions>,
    X: JointKeys<W, All = W::Key, Found: Hash + Clone + Send + Sync + StoreKeys + 'static>,
    Self: AskedWith<X::Found> + Send + Sync + 'static,
{
    type Keys = X::Found;

    fn find(extractor: &X, missing: &Missing<W::Key>, head: &W::Head<'_>) -> Result<Option<X::Found>, KeyError> {
        extractor.find(missing, head)
    }

    fn decide_later<V>(
        limits: &Limits<Self, V>,
        keys: X::Found,
        cost: u32,
    ) -> Result<OutcomeLater<Self, X::Found, V>, X::Found>
    where
        V: FieldValue + Send + Sync + 'static,
    {
        limits.later(keys, cost)
    }
}
