//! Tuples of extractors.

use super::{Head, KeyError, KeyExtractor, Missing};

/// Extractors for the dimensions of a [`JointLimiter`](tollgate::JointLimiter): a tuple of one to
/// eight.
///
/// This trait is implemented for such tuples; it is not meant to be implemented elsewhere.
pub trait JointKeys: KeyExtractor + sealed::Sealed {
    /// A key for each dimension, or `None` where it is not asked.
    #[doc(hidden)]
    type Found;

    #[doc(hidden)]
    type Refs<'a>: tollgate::Keys<Self::Key>
    where
        Self: 'a;

    /// How many there are.
    #[doc(hidden)]
    const COUNT: usize;

    /// `None` if no dimension is asked.
    #[doc(hidden)]
    fn find(&self, missing: &Missing<Self::Key>, head: &Head<'_>) -> Result<Option<Self::Found>, KeyError>;

    #[doc(hidden)]
    fn refs<'a>(found: &'a Self::Found) -> Self::Refs<'a>
    where
        Self: 'a;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! tuples {
    ($count:literal: $($X:ident $at:tt),*) => {
        impl<$($X: KeyExtractor),*> KeyExtractor for ($($X,)*) {
            type Key = ($($X::Key,)*);

            fn extract(&self, head: &Head<'_>) -> Result<Self::Key, KeyError> {
                let found = ($(self.$at.extract(head),)*);
                // A key that is malformed is not forgiven for another that is missing.
                let worst = [$(found.$at.as_ref().err().copied()),*].into_iter().flatten().reduce(KeyError::or_worse);
                worst.map_or(Ok(()), Err)?;
                Ok(($(found.$at?,)*))
            }
        }

        impl<$($X: KeyExtractor),*> sealed::Sealed for ($($X,)*) {}

        impl<$($X: KeyExtractor),*> JointKeys for ($($X,)*) {
            type Found = ($(Option<$X::Key>,)*);
            type Refs<'a> = ($(Option<&'a $X::Key>,)*) where Self: 'a;
            const COUNT: usize = $count;

            fn find(&self, missing: &Missing<Self::Key>, head: &Head<'_>) -> Result<Option<Self::Found>, KeyError> {
                let shared = missing.as_ref();
                let found = ($(shared.map(|keys| &keys.$at).resolve_part(self.$at.extract(head))?,)*);
                let any = $(found.$at.is_some())||*;
                Ok(any.then_some(found))
            }

            fn refs<'a>(found: &'a Self::Found) -> Self::Refs<'a>
            where
                Self: 'a,
            {
                ($(found.$at.as_ref(),)*)
            }
        }
    };
}

tuples!(1: A 0);
tuples!(2: A 0, B 1);
tuples!(3: A 0, B 1, C 2);
tuples!(4: A 0, B 1, C 2, D 3);
tuples!(5: A 0, B 1, C 2, D 3, E 4);
tuples!(6: A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
