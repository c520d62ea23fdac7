//! [`Keys`]: the keys of a request that is limited in several dimensions, in one value.

use core::hash::Hash;

use crate::fingerprint::{Fingerprint, Fingerprinter};

/// A key of one dimension, or the lack of one: `&K`, or `Option<&K>`.
///
/// This trait is implemented for what can be a key; it is not meant to be implemented elsewhere.
pub trait DimensionKey: sealed::OfKey {
    #[doc(hidden)]
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint>;
}

impl<K: Hash + ?Sized> DimensionKey for &K {
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        Some(fingerprinter.fingerprint(*self))
    }
}

impl<K: Hash + ?Sized> DimensionKey for Option<&K> {
    fn fingerprint(&self, fingerprinter: &impl Fingerprinter) -> Option<Fingerprint> {
        self.map(|key| fingerprinter.fingerprint(key))
    }
}

/// The keys of one request, in the order of a [`JointLimiter`](crate::JointLimiter)'s dimensions: a tuple of up to eight, an array,
/// or a slice. Each is a reference, or an `Option` of one where a request may lack it: then that dimension is not asked.
///
/// This trait is implemented for what can be keys; it is not meant to be implemented elsewhere.
pub trait Keys: sealed::OfKeys {
    #[doc(hidden)]
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>));
}

impl<K: DimensionKey, const N: usize> Keys for [K; N] {
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.as_slice().each(fingerprinter, take);
    }
}

impl<K: DimensionKey> Keys for &[K] {
    fn each(&self, fingerprinter: &impl Fingerprinter, take: impl FnMut(Option<Fingerprint>)) {
        self.iter().map(|key| key.fingerprint(fingerprinter)).for_each(take);
    }
}

macro_rules! tuples_of_keys {
    ($($key:ident)*) => {
        impl<$($key: DimensionKey),*> Keys for ($($key,)*) {
            #[allow(non_snake_case, reason = "each key is named after its type")]
            fn each(&self, fingerprinter: &impl Fingerprinter, mut take: impl FnMut(Option<Fingerprint>)) {
                let ($($key,)*) = self;
                $(take($key.fingerprint(fingerprinter));)*
            }
        }
        impl<$($key: DimensionKey),*> sealed::OfKeys for ($($key,)*) {}
    };
}

tuples_of_keys!(A);
tuples_of_keys!(A B);
tuples_of_keys!(A B C);
tuples_of_keys!(A B C D);
tuples_of_keys!(A B C D E);
tuples_of_keys!(A B C D E F);
tuples_of_keys!(A B C D E F G);
tuples_of_keys!(A B C D E F G H);

mod sealed {
    use super::{DimensionKey, Hash};

    pub trait OfKey {}
    pub trait OfKeys {}

    impl<K: Hash + ?Sized> OfKey for &K {}
    impl<K: Hash + ?Sized> OfKey for Option<&K> {}
    impl<K: DimensionKey> OfKeys for &[K] {}
    impl<K: DimensionKey, const N: usize> OfKeys for [K; N] {}
}
