//! Keys that outer layers have put into the request, and keys that are always the same.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;
use std::borrow::Cow;

use super::{Head, KeyError, KeyExtractor};

/// The key in an extension of the request, such as the user that an outer layer has authenticated.
///
/// Without that extension the key is [not provided](KeyError::not_provided): the answer to a
/// request without a user is 500, unless [`on_missing`](KeyExtractor::on_missing) sets another
/// treatment.
///
/// ```
/// use tollgate_tower::{Head, KeyError, KeyExtractor, extension};
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// let user = extension(|user: &User| user.id);
/// let mut request = http::Request::new(());
/// assert_eq!(user.extract(&Head::of(&request)), Err(KeyError::not_provided()));
/// request.extensions_mut().insert(User { id: 7 });
/// assert_eq!(user.extract(&Head::of(&request)), Ok(7));
/// ```
pub const fn extension<E, T, K>(key: T) -> FromExtension<E, T>
where
    E: Send + Sync + 'static,
    T: Fn(&E) -> K + Send + Sync,
    K: Hash + Clone,
{
    FromExtension { key, extension: PhantomData }
}

/// The key in an extension of the request. [`extension`] makes it.
pub struct FromExtension<E, T> {
    key: T,
    extension: PhantomData<fn(&E)>,
}

impl<E, T: Clone> Clone for FromExtension<E, T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), extension: PhantomData }
    }
}

impl<E, T, K> KeyExtractor for FromExtension<E, T>
where
    E: Send + Sync + 'static,
    T: Fn(&E) -> K + Send + Sync,
    K: Hash + Clone,
{
    type Key = K;

    fn extract(&self, head: &Head<'_>) -> Result<K, KeyError> {
        head.extensions.get().map(&self.key).ok_or(KeyError::not_provided())
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(format!("an extension of type {}", core::any::type_name::<E>()).into())
    }
}

impl<E, T> fmt::Debug for FromExtension<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromExtension").field("extension", &core::any::type_name::<E>()).finish_non_exhaustive()
    }
}

/// The same key for each request. Use it as a part of a tuple that distinguishes layers, or as the
/// dimension of a joint limiter for a whole endpoint.
///
/// ```
/// use tollgate_tower::{ClientIp, constant};
///
/// let key = (ClientIp::peer(), constant("login"));
/// # let _ = key;
/// ```
pub const fn constant<K: Hash + Clone + Send + Sync>(key: K) -> Constant<K> {
    Constant { key }
}

/// The same key for each request. [`constant`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant<K> {
    key: K,
}

impl<K: Hash + Clone + Send + Sync> KeyExtractor for Constant<K> {
    type Key = K;

    fn extract(&self, _: &Head<'_>) -> Result<K, KeyError> {
        Ok(self.key.clone())
    }
}
