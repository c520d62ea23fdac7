//! Tuples of extractors.

use std::borrow::Cow;

use tollgate_http::middleware::JointKey;

use super::{Head, KeyError, KeyExtractor, Missing};

/// Extractors for the dimensions of a [`JointLimiter`](tollgate::JointLimiter): a tuple of one to
/// eight.
///
/// This trait is sealed: only such tuples implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of extractors",
    label = "a joint limiter needs an extractor for each dimension",
    note = "write a tuple, such as `.key((user, address))`, or `.key((user,))` for one dimension; \
            without `.key(..)` the extractor is `NoKey`"
)]
pub trait JointKeys: KeyExtractor + sealed::Sealed {
    /// A key for each dimension, or `None` for a dimension that is not asked.
    #[doc(hidden)]
    type Found: JointKey<Dimensions = Self::Key>;

    /// `None` if no dimension is asked.
    #[doc(hidden)]
    fn find(&self, missing: &Missing<Self::Key>, head: &Head<'_>) -> Result<Option<Self::Found>, KeyError>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! tuples {
    ($($X:ident $at:tt),*) => {
        impl<$($X: KeyExtractor),*> KeyExtractor for ($($X,)*) {
            type Key = ($($X::Key,)*);

            fn extract(&self, head: &Head<'_>) -> Result<Self::Key, KeyError> {
                let found = ($(self.$at.extract(head),)*);
                // A malformed key is rejected even if another key is missing.
                let worst = [$(found.$at.as_ref().err().copied()),*].into_iter().flatten().reduce(KeyError::or_worse);
                worst.map_or(Ok(()), Err)?;
                Ok(($(found.$at?,)*))
            }

            fn lacks(&self, head: &Head<'_>, error: KeyError) -> Option<Cow<'_, str>> {
                $(if self.$at.extract(head).err() == Some(error) {
                    return self.$at.lacks(head, error);
                })*
                None
            }
        }

        impl<$($X: KeyExtractor),*> sealed::Sealed for ($($X,)*) {}

        impl<$($X: KeyExtractor),*> JointKeys for ($($X,)*) {
            type Found = ($(Option<$X::Key>,)*);

            fn find(&self, missing: &Missing<Self::Key>, head: &Head<'_>) -> Result<Option<Self::Found>, KeyError> {
                let shared = missing.as_ref();
                let found = ($(shared.map(|keys| &keys.$at).resolve_part(self.$at.extract(head))?,)*);
                let any = $(found.$at.is_some())||*;
                Ok(any.then_some(found))
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
