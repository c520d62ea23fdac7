//! [`StoreKey`]: keys that all nodes of a store write alike.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tollgate::Absent;
use tollgate_policy::Key;

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

    /// The place of its tier among those of its dimension in the policy; `None`, by default, in the
    /// dimension's own quotas.
    fn tier(&self) -> Option<usize> {
        None
    }
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

    fn tier(&self) -> Option<usize> {
        (**self).tier()
    }
}

impl<T: StoreKey + ?Sized> StoreKey for &T {
    fn put(&self, bytes: &mut Vec<u8>) {
        (**self).put(bytes);
    }

    fn tier(&self) -> Option<usize> {
        (**self).tier()
    }
}

/// The text of the only part; of several parts, each text after its length in eight bytes.
impl StoreKey for Key {
    fn put(&self, bytes: &mut Vec<u8>) {
        let texts = self.texts();
        let is_alone = texts.len() == 1;
        for text in texts {
            match is_alone {
                true => text.put(bytes),
                false => put_part(&*text, bytes),
            }
        }
    }

    fn tier(&self) -> Option<usize> {
        self.tier_place()
    }
}

/// A part of a tuple.
fn put_part(part: &(impl StoreKey + ?Sized), bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend([0; 8]);
    part.put(bytes);
    let length = (bytes.len() - start - 8) as u64;
    bytes[start..start + 8].copy_from_slice(&length.to_be_bytes());
}

/// The keys of a request for the dimensions of a store: a tuple of one to eight, each a
/// [`StoreKey`], an `Option` of one, or [`Absent`]; or a `Vec` or a slice of these. A dimension without a key is
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

    /// The place of the tier of a dimension's key.
    #[doc(hidden)]
    fn tier(&self, dimension: usize) -> Option<usize>;
}

mod sealed {
    pub trait Sealed {}

    /// A key, or none.
    pub trait Part {
        fn bytes(&self) -> Option<Vec<u8>>;

        fn tier(&self) -> Option<usize>;
    }
}

use sealed::Part;

impl<K: StoreKey> Part for K {
    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        Some(bytes)
    }

    fn tier(&self) -> Option<usize> {
        StoreKey::tier(self)
    }
}

impl<K: StoreKey> Part for Option<K> {
    fn bytes(&self) -> Option<Vec<u8>> {
        self.as_ref()?.bytes()
    }

    fn tier(&self) -> Option<usize> {
        StoreKey::tier(self.as_ref()?)
    }
}

impl Part for Absent {
    fn bytes(&self) -> Option<Vec<u8>> {
        None
    }

    fn tier(&self) -> Option<usize> {
        None
    }
}

impl<K: Part> sealed::Sealed for Vec<K> {}
impl<K: Part> sealed::Sealed for &[K] {}

impl<K: Part> StoreKeys for &[K] {
    fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        self.iter().map(Part::bytes).collect()
    }

    fn tier(&self, dimension: usize) -> Option<usize> {
        self.get(dimension)?.tier()
    }
}

impl<K: Part> StoreKeys for Vec<K> {
    fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        StoreKeys::bytes(&self.as_slice())
    }

    fn tier(&self, dimension: usize) -> Option<usize> {
        StoreKeys::tier(&self.as_slice(), dimension)
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

            fn tier(&self, dimension: usize) -> Option<usize> {
                [$(Part::tier(&self.$at)),*].get(dimension).copied().flatten()
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
    use tollgate_policy::{Asked, Policy, Value};

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
        let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]\n\
                    [[dimension]]\nname = \"both\"\nkey = [\"user\", \"client\"]\nquota = [{ limit = 5, per = \"1m\" }]\n\
                    [[dimension.tier]]\nname = \"all\"\nmatch = { user = \"alice\" }\nquota = [{ limit = 9, per = \"1m\" }]";
        let limiter = Policy::from_toml(text).unwrap().request_limiter().unwrap();
        let client = Value::address(limiter.requests().client(), [192, 0, 2, 7].into());
        let Asked::Limits(keys) = limiter.ask(vec![Some("alice".into()), Some(client)]) else { panic!("no rule") };
        assert_eq!(bytes(keys[0].as_ref().unwrap()), b"alice");
        assert_eq!(bytes(keys[1].as_ref().unwrap()), bytes(&("alice", "192.0.2.7")));
        assert_eq!([0, 1, 2].map(|dimension| StoreKeys::tier(&keys, dimension)), [None, Some(0), None]);
        assert_eq!(StoreKeys::bytes(&(Some("a"), None::<u8>)), [Some(b"a".to_vec()), None]);
        assert_eq!(StoreKeys::bytes(&("a", 7, Absent)), [Some(b"a".to_vec()), Some(b"7".to_vec()), None]);
    }
}
