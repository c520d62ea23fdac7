//! Keys in every form that a request may pass: each hashes as the key does, call by call, so it is
//! the same key to a limiter.

#![allow(clippy::needless_borrows_for_generic_args, reason = "references are one of the forms")]

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use tollgate::{Absent, AsKey, JointLimiter, Keys, Limiter, Quota};

/// Writes down each call, so that two writes of four bytes differ from one of eight.
#[derive(Debug, Default, PartialEq)]
struct Recorder {
    calls: Vec<(&'static str, Vec<u8>)>,
}

macro_rules! recorded {
    ($($method:ident $type:ty),*) => {
        $(fn $method(&mut self, value: $type) {
            self.calls.push((stringify!($method), value.to_le_bytes().to_vec()));
        })*
    };
}

impl Hasher for Recorder {
    fn write(&mut self, bytes: &[u8]) {
        self.calls.push(("write", bytes.to_vec()));
    }

    recorded!(write_u8 u8, write_u16 u16, write_u32 u32, write_u64 u64, write_u128 u128, write_usize usize);
    recorded!(write_i8 i8, write_i16 i16, write_i32 i32, write_i64 i64, write_i128 i128, write_isize isize);

    fn finish(&self) -> u64 {
        0
    }
}

/// Panics unless the form hashes as the key does, and a limiter takes the two for one key.
#[track_caller]
fn is_form_of<K: Hash>(key: &K, form: impl AsKey<K>) {
    let [mut of_key, mut of_form] = [Recorder::default(), Recorder::default()];
    key.hash(&mut of_key);
    form.hash_key(&mut of_form);
    assert_eq!(of_key, of_form);
    let limiter = Limiter::<K>::new(Quota::per_hour(1)).unwrap();
    assert!(limiter.try_acquire(key).is_admitted());
    assert!(limiter.try_acquire(form).is_denied());
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<Ipv4Addr>().prop_map(IpAddr::from), any::<Ipv6Addr>().prop_map(IpAddr::from)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn single_values(text in ".*", bytes in any::<Vec<u8>>(), number in any::<u64>(), address in address()) {
        is_form_of(&text, text.as_str());
        is_form_of(&text, &text);
        is_form_of(&text, text.clone());
        is_form_of(&text.clone().into_boxed_str(), text.as_str());
        is_form_of(&text.as_str(), text.as_str());
        is_form_of(&bytes, bytes.as_slice());
        is_form_of(&number, number);
        is_form_of(&number, &number);
        is_form_of(&address, address);
        is_form_of(&address, &address);
        is_form_of(&SocketAddr::new(address, 80), SocketAddr::new(address, 80));
    }

    #[test]
    fn numbers_of_every_width(number in any::<i128>()) {
        macro_rules! each {
            ($($type:ty)*) => { $(is_form_of(&(number as $type), number as $type);)* };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any number of that width will do")]
        {
            each!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
        }
        is_form_of(&(number % 2 == 0), number % 2 == 0);
    }

    #[test]
    fn characters_and_arrays(char in any::<char>(), bytes in any::<[u8; 6]>(), words in any::<[u32; 3]>()) {
        is_form_of(&char, char);
        is_form_of(&bytes, bytes);
        is_form_of(&words, words);
        is_form_of(&words, &words);
    }

    #[test]
    fn tuples(text in ".*", other in ".*", number in any::<u32>(), address in address()) {
        is_form_of(&(number, text.clone()), (number, text.as_str()));
        is_form_of(&(number, text.clone()), (&number, &text));
        is_form_of(&(text.clone(), other.clone()), (text.as_str(), other.as_str()));
        is_form_of(&(address, text.clone()), (address, text.as_str()));
        is_form_of(&(text.clone(),), (text.as_str(),));
        is_form_of(&((number, text.clone()), address), ((number, text.as_str()), &address));
        let (a, b) = (text.as_str(), number);
        is_form_of(
            &(text.clone(), b, text.clone(), b, text.clone(), b, other.clone(), b),
            (a, b, a, b, a, b, other.as_str(), b),
        );
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Plan {
    Free,
    Of(u32),
}

tollgate::by_value!(Plan);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An `Option` of a form is a form of an `Option`, and `Absent` is one of `None`.
    #[test]
    fn options(text in ".*", number in any::<u64>(), is_there: bool) {
        let key = is_there.then(|| text.clone());
        is_form_of(&key, key.as_deref());
        is_form_of(&key, key.as_ref());
        is_form_of(&(key.clone(), number), (key.as_deref(), number));
        is_form_of(&is_there.then_some(number), is_there.then_some(number));
        is_form_of(&Some(key.clone()), Some(key.as_deref()));
        is_form_of(&None::<String>, Absent);
        is_form_of(&(None::<u64>, text.clone()), (Absent, text.as_str()));
    }

    #[test]
    fn copies_of_types_of_ones_own(text in ".*", number in any::<u32>()) {
        for plan in [Plan::Free, Plan::Of(number)] {
            is_form_of(&plan, plan);
            is_form_of(&plan, &plan);
            is_form_of(&(plan, text.clone()), (plan, text.as_str()));
            is_form_of(&Some(plan), Some(plan));
        }
    }
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_passed_by_value() {
    let id = uuid::Uuid::from_u128(7);
    is_form_of(&id, id);
    is_form_of(&id, &id);
    is_form_of(&(id, String::from("/")), (id, "/"));
}

/// A type of one's own, an `Option` and `Absent` in dimensions.
#[test]
fn dimensions_take_the_forms() {
    let builder = JointLimiter::<(Plan, (Option<String>, u64))>::builder();
    let builder = builder.dimension("plan", [Quota::per_hour(9)]).dimension("of", [Quota::per_hour(1)]);
    let limiter = builder.build().unwrap();
    assert!(limiter.try_acquire((Plan::Free, (Some("x"), 7))).unwrap().is_admitted());
    assert!(limiter.try_acquire((Absent, (Some("x"), 7))).unwrap().is_denied());
    assert!(limiter.try_acquire((Some(Plan::Free), (Absent, 7))).unwrap().is_admitted());
    assert!(limiter.try_acquire((&Plan::Free, Some((None::<&str>, 7)))).unwrap().is_denied());
}

/// The same keys are fed to a hasher alike in all forms, and others are not.
#[test]
fn keys_of_dimensions_are_hashed_alike_in_all_forms() {
    type Dimensions = (String, u64);
    fn hash(keys: impl Keys<Dimensions>) -> Recorder {
        let mut state = Recorder::default();
        keys.hash_keys(&mut state);
        state
    }
    let (name, builder) = (String::from("alice"), JointLimiter::<Dimensions>::builder());
    let builder = builder.dimension("user", [Quota::per_hour(1)]).dimension("tenant", [Quota::per_hour(1)]);
    let limiter = builder.tier(1, "paid", [Quota::per_hour(2)]).build().unwrap();
    let paid = limiter.tier(1, "paid").unwrap();
    for keys in [hash((&name, &7)), hash((Some("alice"), 7)), hash(&("alice", Some(&7)))] {
        assert_eq!(keys, hash(("alice", 7)));
    }
    assert_eq!(hash((Absent, 7)), hash((None::<&str>, 7)));
    let others = [hash(("bob", 7)), hash(("alice", 8)), hash((Absent, 7)), hash(("alice", paid.key(7)))];
    assert!(others.iter().all(|other| *other != hash(("alice", 7))));
}

/// What is written is what is meant: no type has to be named.
#[test]
fn literals_need_no_suffix() {
    let limiter = Limiter::<(u64, String)>::new(Quota::per_hour(2)).unwrap();
    assert!(limiter.try_acquire((7, "x")).is_admitted());
    assert!(limiter.try_acquire((&7, String::from("x").as_str())).is_admitted());
    assert!(limiter.try_acquire(&(7, String::from("x"))).is_denied());
    let limiter = Limiter::<u8>::new(Quota::per_hour(1)).unwrap();
    assert!(limiter.try_acquire(7).is_admitted());
    assert!(limiter.try_acquire(&7).is_denied());
    let limiter = Limiter::<[u8; 2]>::new(Quota::per_hour(1)).unwrap();
    assert!(limiter.try_acquire([1, 2]).is_admitted());
    assert!(limiter.try_acquire(&[1, 2]).is_denied());
}

#[test]
fn many_keys_at_once_come_by_value_or_by_reference() {
    let limiter = Limiter::<(u32, String)>::new(Quota::per_hour(1)).unwrap();
    let decisions = limiter.try_acquire_many([(1, "a"), (2, "a"), (1, "a")]);
    assert_eq!(decisions.iter().map(|it| it.is_admitted()).collect::<Vec<_>>(), [true, true, false]);
    let owned = [(1, String::from("a")), (3, String::from("a"))];
    let decisions = limiter.try_acquire_many(&owned);
    assert_eq!(decisions.iter().map(|it| it.is_admitted()).collect::<Vec<_>>(), [false, true]);
    let limiter = Limiter::<u32>::new(Quota::per_hour(1)).unwrap();
    assert_eq!(limiter.try_acquire_many(0..100).iter().filter(|it| it.is_admitted()).count(), 100);
}

/// Every method that takes a key takes every form of it.
#[test]
fn every_method_takes_the_forms() {
    let builder = Limiter::<(u32, String)>::builder(Quota::per_hour(3)).list_cap(10).keys_with_quotas(10);
    let limiter = builder.build().unwrap();
    let key = (1, "a");
    assert!(limiter.try_acquire_n(key, 1).unwrap().is_admitted());
    assert_eq!(limiter.try_acquire_status(key).remaining(), 1);
    assert_eq!(limiter.peek(key).remaining(), 1);
    assert_eq!(limiter.peek_n(key, 1).unwrap().remaining(), 1);
    limiter.reserve(key, 1, std::time::Duration::ZERO).unwrap().commit();
    assert!(limiter.try_acquire(key).is_denied());
    limiter.set_quotas_of(key, &[Quota::per_hour(4)]).unwrap();
    assert_eq!(*limiter.quotas_of(key), [Quota::per_hour(4)]);
    assert!(limiter.try_acquire(key).is_admitted());
    assert!(limiter.forget(key));
    assert!(limiter.deny(key).unwrap());
    assert!(limiter.try_acquire(key).is_denied());
    assert!(limiter.unlist(key));
    assert!(limiter.allow(key).unwrap());
    let admission = limiter.try_acquire(key).into_result().unwrap();
    assert!(!admission.is_counted());
}
