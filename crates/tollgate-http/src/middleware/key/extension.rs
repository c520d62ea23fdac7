//! Keys that outer middleware has put into the request, and keys that are always the same.

use core::any::type_name;
use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;
use std::borrow::Cow;

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::{Framework, HasExtension};

/// The key in an extension of the request, such as the user that outer middleware has authenticated.
///
/// Without that extension the key is [not provided](KeyError::not_provided): the answer to a
/// request without a user is 500, unless `on_missing` sets another treatment.
///
/// ```
/// use tollgate_http::middleware::extension;
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// let user = extension(|user: &User| user.id);
/// # let _ = user;
/// ```
pub const fn extension<E, T, K>(key: T) -> FromExtension<E, T>
where
    E: 'static,
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

impl<W, E, T, K> Extractor<W> for FromExtension<E, T>
where
    W: HasExtension<E>,
    T: Fn(&E) -> K + Send + Sync,
    K: Hash + Clone,
{
    type Key = K;

    fn extract(&self, head: &W::Head<'_>) -> Result<K, KeyError> {
        W::extension(head, &self.key).ok_or(KeyError::not_provided())
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(format!("an extension of type {}", type_name::<E>()).into())
    }
}

impl<E, T> fmt::Debug for FromExtension<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromExtension").field("extension", &type_name::<E>()).finish_non_exhaustive()
    }
}

/// The same key for each request. Use it as a part of a tuple that distinguishes limits, or as the
/// dimension of a joint limiter for a whole endpoint.
///
/// ```
/// use tollgate_http::middleware::{constant, path};
///
/// let key = (path(), constant("login"));
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

impl<W: Framework, K: Hash + Clone + Send + Sync> Extractor<W> for Constant<K> {
    type Key = K;

    fn extract(&self, _: &W::Head<'_>) -> Result<K, KeyError> {
        Ok(self.key.clone())
    }
}
