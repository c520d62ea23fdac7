//! [`Gate`]: a limiter as middleware asks it, with the keys of an extractor.

use core::hash::Hash;

#[cfg(feature = "redis")]
use tollgate::Dimensions;
use tollgate::{Clock, Fingerprinter, JointLimiter, Key, Limiter};
#[cfg(feature = "redis")]
use tollgate_redis::{PolicyLimiter, StoreKeys};

use super::gate::AskedWith;
use super::gate::single::{Keys, Same};
use super::key::Extracts;
use super::key::extractors::JointKeys;
#[cfg(feature = "policy")]
use super::key::{Framework, PolicyKey};
use super::key_error::KeyError;
use super::limits::{Limits, OutcomeLater};
use super::missing::Missing;
use super::values::FieldValue;

/// The keys of a request as a policy file names them.
#[cfg(feature = "policy")]
type PolicyKeys = Vec<Option<tollgate_policy::Key>>;

/// A limiter that can be asked with the keys of an extractor `X`, in the framework `W`:
/// - a [`DirectLimiter`](tollgate::DirectLimiter), without a key ([`NoKey`](tollgate::NoKey));
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

impl<W, X, K, C, F> Gate<W, X> for Limiter<K, C, F>
where
    Self: Send + Sync + 'static,
    K: Key,
    C: Clock,
    F: Fingerprinter,
    W: Extracts<X, Key: 'static>,
    Keys: Same<K, W::Key>,
{
    type Keys = W::Key;

    fn find(extractor: &X, missing: &Missing<W::Key>, head: &W::Head<'_>) -> Result<Option<W::Key>, KeyError> {
        missing.resolve(W::extract(extractor, head))
    }
}

impl<W, X, C, F> Gate<W, X> for JointLimiter<<W as Extracts<X>>::Key, C, F>
where
    Self: Send + Sync + 'static,
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

/// The limiter of a policy file, with the keys that the file names.
#[cfg(feature = "policy")]
impl<W, C, F> Gate<W, PolicyKey<W>> for JointLimiter<[tollgate_policy::Key], C, F>
where
    Self: Send + Sync + 'static,
    C: Clock,
    F: Fingerprinter,
    W: Framework<Name: Send + Sync> + Extracts<PolicyKey<W>, Key = PolicyKeys>,
{
    type Keys = PolicyKeys;

    fn find(
        extractor: &PolicyKey<W>,
        missing: &Missing<PolicyKeys>,
        head: &W::Head<'_>,
    ) -> Result<Option<PolicyKeys>, KeyError> {
        missing.resolve(W::extract(extractor, head))
    }
}

/// The same, in process or on a store.
#[cfg(feature = "redis")]
impl<W, C> Gate<W, PolicyKey<W>> for PolicyLimiter<[tollgate_policy::Key], C>
where
    Self: Send + Sync + 'static,
    JointLimiter<[tollgate_policy::Key], C>: Send + Sync,
    C: Clock,
    W: Framework<Name: Send + Sync> + Extracts<PolicyKey<W>, Key = PolicyKeys>,
{
    type Keys = PolicyKeys;

    fn find(
        extractor: &PolicyKey<W>,
        missing: &Missing<PolicyKeys>,
        head: &W::Head<'_>,
    ) -> Result<Option<PolicyKeys>, KeyError> {
        missing.resolve(W::extract(extractor, head))
    }

    fn decide_later<V>(
        limits: &Limits<Self, V>,
        keys: PolicyKeys,
        cost: u32,
    ) -> Result<OutcomeLater<Self, PolicyKeys, V>, PolicyKeys>
    where
        V: FieldValue + Send + Sync + 'static,
    {
        limits.later(keys, cost)
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
