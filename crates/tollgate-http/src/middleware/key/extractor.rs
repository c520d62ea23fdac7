//! [`Extractor`], and extractors that change what another one finds.

use core::hash::Hash;
use std::borrow::Cow;
use std::sync::Arc;

use super::super::key_error::KeyError;
use super::super::missing::Missing;
use super::framework::Framework;

/// Finds the key of a request in any framework. Whatever implements it implements the trait
/// `KeyExtractor` of the crates for tower and actix-web.
///
/// ```
/// use tollgate_http::middleware::{Extractor, Framework, KeyError};
///
/// /// The first segment of the path.
/// struct Tenant;
///
/// impl<W: Framework> Extractor<W> for Tenant {
///     type Key = String;
///
///     fn extract(&self, head: &W::Head<'_>) -> Result<String, KeyError> {
///         let path = W::path(W::uri(head));
///         path.split('/').nth(1).map(str::to_owned).ok_or(KeyError::not_sent())
///     }
/// }
/// ```
pub trait Extractor<W: Framework>: Send + Sync {
    /// The key.
    type Key: Hash + Clone;

    /// The key of the request with this head.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when there is no key.
    fn extract(&self, head: &W::Head<'_>) -> Result<Self::Key, KeyError>;

    /// Words for the key, which follow "The request needs".
    fn wants(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Words for the key, or for the part of it, that has this error in this head.
    #[doc(hidden)]
    fn lacks(&self, _: &W::Head<'_>, _: KeyError) -> Option<Cow<'_, str>> {
        self.wants()
    }
}

/// A framework whose trait `KeyExtractor` this type implements.
pub trait Extracts<X: ?Sized>: Framework {
    /// The key.
    type Key: Hash + Clone;

    /// The key of the request with this head.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when there is no key.
    fn extract(extractor: &X, head: &Self::Head<'_>) -> Result<Self::Key, KeyError>;

    /// Words for the key.
    fn wants(extractor: &X) -> Option<Cow<'_, str>>;

    /// Words for the key, or for the part of it, that has this error in this head.
    fn lacks<'x>(extractor: &'x X, head: &Self::Head<'_>, error: KeyError) -> Option<Cow<'x, str>>;
}

macro_rules! by_reference {
    ($($By:ty),*) => { $(
        impl<W: Extracts<X>, X: Send + Sync + ?Sized> Extractor<W> for $By {
            type Key = W::Key;

            fn extract(&self, head: &W::Head<'_>) -> Result<W::Key, KeyError> {
                W::extract(self, head)
            }

            fn wants(&self) -> Option<Cow<'_, str>> {
                W::wants(self)
            }

            fn lacks(&self, head: &W::Head<'_>, error: KeyError) -> Option<Cow<'_, str>> {
                W::lacks(self, head, error)
            }
        }
    )* };
}

by_reference!(&X, Box<X>, Arc<X>);

/// An extractor with its own treatment of a missing key. `KeyExtractor::on_missing` makes it.
///
/// ```
/// use tollgate_http::middleware::{Missing, OnMissing, extension};
///
/// #[derive(Clone)]
/// struct User(u64);
///
/// let user = OnMissing::new(extension(|user: &User| user.0), Missing::Skip);
/// # let _: OnMissing<_, u64> = user;
/// ```
#[derive(Debug, Clone)]
pub struct OnMissing<X, K> {
    extractor: X,
    missing: Missing<K>,
}

impl<X, K> OnMissing<X, K> {
    /// The extractor with this treatment of a missing key.
    pub const fn new(extractor: X, missing: Missing<K>) -> Self {
        Self { extractor, missing }
    }
}

impl<W, X> Extractor<W> for OnMissing<X, <W as Extracts<X>>::Key>
where
    W: Extracts<X, Key: Send + Sync>,
    X: Send + Sync,
{
    type Key = W::Key;

    fn extract(&self, head: &W::Head<'_>) -> Result<W::Key, KeyError> {
        self.missing.settle(W::extract(&self.extractor, head))
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        W::wants(&self.extractor)
    }

    fn lacks(&self, head: &W::Head<'_>, _: KeyError) -> Option<Cow<'_, str>> {
        // The extractor's own error, which `missing` has closed.
        let error = W::extract(&self.extractor, head).err()?;
        W::lacks(&self.extractor, head, error)
    }
}
