//! What a client gets, and what header fields say.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// What a client gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// All values of a field, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// The value of a field that comes once.
    pub(crate) fn one(&self, name: &str) -> &str {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name} in {self:?}");
        all[0]
    }
}

/// The parameters of one item of a list, read by an implementation of RFC 9651.
pub(crate) fn items(value: &str) -> Vec<(String, Vec<(String, String)>)> {
    let list: sfv::List = sfv::Parser::new(value).parse().unwrap_or_else(|error| panic!("{value}: {error}"));
    let item = |entry: &sfv::ListEntry| {
        let sfv::ListEntry::Item(item) = entry else { panic!("{value}: no inner lists") };
        let name = item.bare_item.as_string().unwrap_or_else(|| panic!("{value}: no string")).as_str().to_owned();
        let parameters = item.params.iter().map(|(key, value)| {
            let number = value.as_integer().map(|number| number.to_string());
            (key.as_str().to_owned(), number.unwrap_or_else(|| format!("{value:?}")))
        });
        (name, parameters.collect())
    };
    list.iter().map(item).collect()
}

/// One item: a name and numbers.
pub(crate) fn item(name: &str, parameters: [(&str, u64); 2]) -> (String, Vec<(String, String)>) {
    (name.to_owned(), parameters.map(|(key, number)| (key.to_owned(), number.to_string())).to_vec())
}
