//! [`StoreKey`]: keys that all nodes of a store write alike.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tollgate::Absent;

/// A key of a [`PolicyLimiter`](crate::PolicyLimiter). (Feature `policy`.)
///
/// Its bytes are the same on each node and in each version of the program: else nodes do not share
/// limits. Those of a text are the text. Those of a number or an address are its usual text, as
/// `tollgate serve` has it. Those of a tuple are each part after its length in eight bytes.
///
/// ```
/// use tollgate_redis::StoreKey;
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Tenant(u64);
///
/// impl StoreKey for Tenant {
///     fn put(&self, bytes: &mut Vec<u8>) {
///         self.0.put(bytes);
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Tenant(7).put(&mut bytes);
/// assert_eq!(bytes, b"7");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key for a store",
    note = "implement `StoreKey` for it: the bytes that each node of the store writes for the key"
)]
pub trait StoreKey {
    /// Appends the bytes of the key.
    fn put(&self, bytes: &mut Vec<u8>);
}

macro_rules! as_bytes {
    ($($type:ty),+) => {
        $(impl StoreKey for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(self.as_ref());
            }
        })+
    };
}

macro_rules! as_text {
    ($($type:ty),+) => {
        $(impl StoreKey for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_string().into_bytes());
            }
        })+
    };
}

as_bytes!(Vec<u8>, [u8]);
as_text!(IpAddr, Ipv4Addr, Ipv6Addr, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl StoreKey for str {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }
}

impl StoreKey for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_str().put(bytes);
    }
}

impl<T: StoreKey + ?Sized> StoreKey for Arc<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (**self).put(bytes);
    }
}

impl<T: StoreKey + ?Sized> StoreKey for &T {
    fn put(&self, bytes: &mut Vec<u8>) {
        (**self).put(bytes);
    }
}

/// A part of a tuple.
fn put_part(part: &impl StoreKey, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend([0; 8]);
    part.put(bytes);
    let length = (bytes.len() - start - 8) as u64;
    bytes[start..start + 8].copy_from_slice(&length.to_be_bytes());
}

/// The keys of a request for the dimensions of a store: a tuple of one to eight, each a
/// [`StoreKey`], an `Option` of one, or [`Absent`]; or a `Vec` of these. A dimension without a key is
/// not asked.
///
/// This trait is sealed: only these implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are no keys for a store",
    note = "give a tuple of one key for each dimension, such as `(user, address)`, or `(user,)` for one; a key of your own \
            implements `StoreKey`"
)]
pub trait StoreKeys: sealed::Sealed {
    /// The bytes of each key.
    #[doc(hidden)]
    fn bytes(&self) -> Vec<Option<Vec<u8>>>;
}

mod sealed {
    pub trait Sealed {}

    /// A key, or none.
    pub trait Part {
        fn bytes(&self) -> Option<Vec<u8>>;
    }
}

use sealed::Part;

impl<K: StoreKey> Part for K {
    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        Some(bytes)
    }
}

impl<K: StoreKey> Part for Option<K> {
    fn bytes(&self) -> Option<Vec<u8>> {
        self.as_ref()?.bytes()
    }
}

impl Part for Absent {
    fn bytes(&self) -> Option<Vec<u8>> {
        None
    }
}

impl<K: Part> sealed::Sealed for Vec<K> {}

impl<K: Part> StoreKeys for Vec<K> {
    fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        self.iter().map(Part::bytes).collect()
    }
}

macro_rules! tuples {
    ($($K:ident $at:tt),*) => {
        impl<$($K: StoreKey),*> StoreKey for ($($K,)*) {
            fn put(&self, bytes: &mut Vec<u8>) {
                $(put_part(&self.$at, bytes);)*
            }
        }

        impl<$($K: Part),*> sealed::Sealed for ($($K,)*) {}

        impl<$($K: Part),*> StoreKeys for ($($K,)*) {
            fn bytes(&self) -> Vec<Option<Vec<u8>>> {
                vec![$(self.$at.bytes()),*]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(key: &(impl StoreKey + ?Sized)) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.put(&mut bytes);
        bytes
    }

    /// Nodes of different versions share keys, so the bytes of a version never change.
    #[test]
    fn the_bytes_are_the_same_on_every_node() {
        assert_eq!(bytes("alice"), b"alice");
        assert_eq!(bytes(&Arc::<str>::from("alice")), b"alice");
        assert_eq!(bytes(&IpAddr::from([192, 0, 2, 7])), b"192.0.2.7");
        assert_eq!(bytes(&IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])), b"2001:db8::1");
        assert_eq!(bytes(&u64::MAX), b"18446744073709551615");
        assert_eq!(bytes(&(7_u64, "x".to_owned())), b"\0\0\0\0\0\0\0\x017\0\0\0\0\0\0\0\x01x");
        assert_ne!(bytes(&("ab", "c")), bytes(&("a", "bc")));
        assert_eq!(StoreKeys::bytes(&(Some("a"), None::<u8>)), [Some(b"a".to_vec()), None]);
        assert_eq!(StoreKeys::bytes(&("a", 7, Absent)), [Some(b"a".to_vec()), Some(b"7".to_vec()), None]);
    }
}
