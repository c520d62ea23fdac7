//! Methods and generic functions: one limiter for all types and all values.

#![deny(warnings)]

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

use tollgate::{Denial, rate_limit};

struct Shop<T> {
    name: String,
    sold: Vec<T>,
}

impl<T: Clone> Shop<T> {
    const NAME: &'static str = "shop";

    fn named(name: &str) -> Self {
        Self { name: name.into(), sold: Vec::new() }
    }

    #[rate_limit(limit = 2, per = "1h", key = (self.name, Self::NAME))]
    fn look<'a>(&'a self, at: &'a str) -> Result<&'a str, Denial> {
        Ok(if at.is_empty() { &self.name } else { at })
    }

    #[rate_limit(limit = 2, per = "1h", key = self.name)]
    fn sell(&mut self, item: &T) -> Result<usize, Denial>
    where
        T: PartialEq,
    {
        self.sold.push(item.clone());
        Ok(self.sold.iter().filter(|sold| *sold == item).count())
    }

    #[rate_limit(limit = 1, per = "1h", on_denied = |_| Err(self))]
    fn close(self) -> Result<Vec<T>, Self> {
        Ok(self.sold)
    }

    #[rate_limit(limit = 1, per = "1h")]
    #[allow(clippy::boxed_local, reason = "it is a receiver")]
    fn boxed(self: Box<Self>) -> Result<String, Denial> {
        Ok(self.name)
    }
}

#[test]
fn methods_of_all_values_and_types_share_one_limiter() {
    let (numbers, texts) = (Shop::<u8>::named("a"), Shop::<String>::named("a"));
    assert_eq!(numbers.look("x"), Ok("x"));
    assert_eq!(texts.look(""), Ok("a"));
    assert!(numbers.look("x").is_err() && texts.look("x").is_err());
    assert!(Shop::<u8>::named("b").look("x").is_ok());

    let mut shop = Shop::named("a");
    assert_eq!(shop.sell(&1), Ok(1));
    assert_eq!(shop.sell(&1), Ok(2));
    assert!(shop.sell(&1).is_err());
    assert!(Shop::named("a").sell(&"text").is_err(), "another type, and the same limiter");
    assert_eq!(shop.sold, [1, 1]);

    assert!(shop.close().is_ok());
    let open = Shop { name: String::new(), sold: vec![3] }.close();
    assert!(open.is_err_and(|shop| shop.sold == [3]), "the closure is given what was not consumed");

    assert!(Box::new(Shop::<u8>::named("c")).boxed().is_ok());
    assert!(Box::new(Shop::<u8>::named("d")).boxed().is_err());
}

#[rate_limit(limit = 2, per = "1h", key = (key, N))]
fn generic<K: Hash, V, const N: usize>(key: &K, values: [V; N]) -> Result<V, Denial>
where
    V: Default,
{
    Ok(values.into_iter().next().unwrap_or_default())
}

#[rate_limit(limit = 2, per = "1h", key = name.to_string())]
fn opaque_arguments(name: impl Display, mut visit: impl FnMut(&str)) -> Result<(), Denial> {
    visit(&name.to_string());
    Ok(())
}

#[rate_limit(limit = 2, per = "1h", key = map.get("id").copied())]
fn patterns((map, [first, ..]): (&HashMap<&str, u8>, [u8; 3]), _: ()) -> Result<u8, Denial> {
    Ok(first)
}

#[test]
fn arguments_can_be_generic_or_opaque_or_patterns() {
    assert_eq!(generic(&1_u8, [7, 8]), Ok(7));
    assert_eq!(generic(&1_u8, ["x", "y"]), Ok("x"));
    assert!(generic(&1_u8, [7, 8]).is_err());
    assert!(generic(&1_u8, [7]).is_ok());

    let mut visited = Vec::new();
    let mut call = |name: &dyn Display| opaque_arguments(name, |name| visited.push(name.to_owned())).is_ok();
    assert_eq!([call(&"7"), call(&7), call(&'7'), call(&8)], [true, true, false, true]);
    assert_eq!(visited, ["7", "7", "8"]);

    let map = HashMap::from([("id", 1)]);
    assert_eq!([(); 3].map(|()| patterns((&map, [5, 6, 7]), ())).map(Result::ok), [Some(5), Some(5), None]);
}

trait Greeter {
    fn greet(&self) -> Result<String, Denial>;

    #[rate_limit(limit = 1, per = "1h")]
    fn wave(&self) -> Result<(), Denial> {
        Ok(())
    }
}

impl Greeter for u8 {
    #[rate_limit(limit = 1, per = "1h", key = self)]
    fn greet(&self) -> Result<String, Denial> {
        Ok(self.to_string())
    }
}

impl Greeter for &str {
    #[rate_limit(limit = 1, per = "1h", key = self)]
    fn greet(&self) -> Result<String, Denial> {
        Ok((*self).to_owned())
    }
}

#[test]
fn methods_of_traits_are_limited_where_their_bodies_are() {
    let greet = |greeter: &dyn Greeter| greeter.greet().is_ok();
    assert_eq!([greet(&1), greet(&1), greet(&2), greet(&"1"), greet(&"1")], [true, false, true, true, false]);
    assert!(1.wave().is_ok());
    assert!("1".wave().is_err(), "the body is one for all types");
}

/// Documented.
#[must_use = "it is limited"]
#[allow(clippy::mixed_attributes_style, reason = "both kinds are to stay")]
#[rate_limit(limit = 1, per = "1h")]
#[inline]
#[cfg_attr(test, track_caller)]
fn with_attributes() -> Result<u32, Denial> {
    //! Inside as well.
    #![allow(unused_variables)]
    let unused = 1;
    Ok(std::panic::Location::caller().line())
}

#[rate_limit(limit = 1, per = "1h", key = key)]
#[rate_limit(limit = 2, per = "1h")]
fn twice(key: u8) -> Result<u8, Denial> {
    Ok(key)
}

#[test]
fn attributes_above_and_below_stay() {
    assert_eq!(with_attributes(), Ok(line!()), "tracked");
    assert!(with_attributes().is_err());
    let admitted = [1, 1, 2, 3].map(|key| twice(key).is_ok());
    assert_eq!(admitted, [true, false, false, false], "the lower one is asked first, and keeps its charge");
}
