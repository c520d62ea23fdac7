//! Tuples of extractors.

use std::borrow::Cow;

use super::super::each_tuple::each_tuple;
use super::super::gate::joint::JointKey;
use super::super::key_error::KeyError;
use super::super::missing::Missing;
use super::extractor::{Extractor, Extracts};
use super::framework::Framework;

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
pub trait JointKeys<W: Framework>: sealed::Sealed + Sized {
    /// The keys of all dimensions.
    #[doc(hidden)]
    type All;

    /// A key for each dimension, or `None` for a dimension that is not asked.
    #[doc(hidden)]
    type Found: JointKey<Dimensions = Self::All>;

    /// `None` if no dimension is asked.
    #[doc(hidden)]
    fn find(&self, missing: &Missing<Self::All>, head: &W::Head<'_>) -> Result<Option<Self::Found>, KeyError>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! tuples {
    ($($X:ident $at:tt),*) => {
        impl<W: Framework $(+ Extracts<$X>)*, $($X: Send + Sync),*> Extractor<W> for ($($X,)*) {
            type Key = ($(<W as Extracts<$X>>::Key,)*);

            fn extract(&self, head: &W::Head<'_>) -> Result<Self::Key, KeyError> {
                let found = ($(<W as Extracts<$X>>::extract(&self.$at, head),)*);
                // A malformed key is rejected even if another key is missing.
                let worst = [$(found.$at.as_ref().err().copied()),*].into_iter().flatten().reduce(KeyError::or_worse);
                worst.map_or(Ok(()), Err)?;
                Ok(($(found.$at?,)*))
            }

            fn lacks(&self, head: &W::Head<'_>, error: KeyError) -> Option<Cow<'_, str>> {
                $(if <W as Extracts<$X>>::extract(&self.$at, head).err() == Some(error) {
                    return <W as Extracts<$X>>::lacks(&self.$at, head, error);
                })*
                None
            }
        }

        impl<$($X),*> sealed::Sealed for ($($X,)*) {}

        impl<W: Framework $(+ Extracts<$X>)*, $($X: Send + Sync),*> JointKeys<W> for ($($X,)*) {
            type All = ($(<W as Extracts<$X>>::Key,)*);
            type Found = ($(Option<<W as Extracts<$X>>::Key>,)*);

            fn find(&self, missing: &Missing<Self::All>, head: &W::Head<'_>) -> Result<Option<Self::Found>, KeyError> {
                let shared = missing.as_ref();
                let found =
                    ($(shared.map(|keys| &keys.$at).resolve_part(<W as Extracts<$X>>::extract(&self.$at, head))?,)*);
                let any = $(found.$at.is_some())||*;
                Ok(any.then_some(found))
            }
        }
    };
}

each_tuple!(tuples);
