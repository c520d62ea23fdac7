//! [`key_text`]: the text of a key, read from what the key tells a hasher.

use core::hash::Hasher;
use std::net::{Ipv4Addr, Ipv6Addr};

use tollgate::ObservedKey;

/// The text of a key, as far as the key tells a hasher, at most 128 bytes.
///
/// A limiter keeps no keys, and an observer gets no text. This passes a hasher to the key that
/// writes down what it is told:
///
/// | key | text |
/// |---|---|
/// | a string | the string, control characters escaped |
/// | an integer | the number; of a `bool` 0 or 1, of a `char` its code |
/// | an `IpAddr` | the address |
/// | bytes | hexadecimal: `0x0a00` |
/// | a tuple, or a type that derives `Hash` | its parts: `"alice", 7`; the second variant of an enum as `#1` |
///
/// Two readings can go wrong, because a hasher is told no types. An enum whose first variant holds
/// a `u32`, or whose second holds a `u128`, is read as an address. An `Ipv4Addr` or `Ipv6Addr`
/// alone is read as a number: take `IpAddr`.
///
/// The text may hold what a client sent, such as a name. Show it to operators, and put it into no
/// label of a metric.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tollgate::{Limiter, Observation, Quota};
/// use tollgate_observe::key_text;
///
/// let texts = Arc::new(Mutex::new(Vec::new()));
/// let list = Arc::clone(&texts);
/// let observer = move |seen: &Observation<'_>| {
///     let text = seen.key(0).map(|key| key_text(&key));
///     list.lock().unwrap().extend(text);
/// };
/// let builder = Limiter::<(String, u64)>::builder(Quota::per_minute(5)).observer(observer);
/// assert!(builder.build()?.try_acquire(("alice", 7)).is_admitted());
/// assert_eq!(*texts.lock().unwrap(), [r#""alice", 7"#]);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[must_use]
pub fn key_text(key: &ObservedKey<'_>) -> String {
    let mut writes = Writes::default();
    key.hash_into(&mut writes);
    writes.text()
}

/// The longest text, in bytes.
const MOST: usize = 128;

/// What a key told a hasher.
#[derive(Default)]
struct Writes {
    parts: Vec<Part>,
    /// At most the length of the text of `parts`. Beyond [`MOST`] nothing more is kept.
    length: usize,
}

enum Part {
    Number(i128),
    /// Also an IPv4 address, after the first variant of an enum.
    U32(u32),
    /// Also an IPv6 address, after the second variant of an enum.
    U128(u128),
    /// Also the number of bytes or parts that follow.
    Usize(usize),
    /// Also the variant of an enum.
    Isize(isize),
    /// The first bytes of so many.
    Bytes(Vec<u8>, usize),
    Text(String),
}

/// What `Hash` for `str` writes after the bytes.
const END_OF_TEXT: u8 = 0xff;

impl Writes {
    fn push(&mut self, part: Part) {
        if self.length <= MOST {
            self.length += if let Part::Bytes(bytes, _) = &part { bytes.len().max(1) } else { 1 };
            self.parts.push(part);
        }
    }

    fn text(&self) -> String {
        let mut text = match &self.parts[..] {
            [Part::Text(text)] => text.escape_debug().to_string(),
            [Part::Isize(number)] => number.to_string(),
            parts => joined(parts),
        };
        if text.len() > MOST {
            let mut end = MOST - '…'.len_utf8();
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push('…');
        }
        text
    }
}

/// The parts, with commas between them.
fn joined(mut parts: &[Part]) -> String {
    let mut texts = Vec::new();
    while let [first, rest @ ..] = parts {
        let (text, taken) = match (first, rest) {
            (Part::Isize(0), [Part::U32(address), ..]) => (Ipv4Addr::from(address.to_ne_bytes()).to_string(), 2),
            (Part::Isize(1), [Part::U128(address), ..]) => (Ipv6Addr::from(address.to_ne_bytes()).to_string(), 2),
            (Part::Usize(size), [Part::Bytes(bytes, length), ..]) if size == length => (hexadecimal(bytes), 2),
            (Part::Number(number), _) => (number.to_string(), 1),
            (Part::U32(number), _) => (number.to_string(), 1),
            (Part::U128(number), _) => (number.to_string(), 1),
            (Part::Usize(number), _) => (number.to_string(), 1),
            (Part::Isize(variant), _) => (format!("#{variant}"), 1),
            (Part::Bytes(bytes, _), _) => (hexadecimal(bytes), 1),
            (Part::Text(text), _) => (format!("{text:?}"), 1),
        };
        texts.push(text);
        parts = &parts[taken..];
    }
    texts.join(", ")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}"))
}

/// Integers that need no part of their own.
macro_rules! numbers {
    ($($write:ident $type:ty),+) => {
        $(fn $write(&mut self, number: $type) {
            self.push(Part::Number(number.into()));
        })+
    };
}

impl Hasher for Writes {
    fn write(&mut self, bytes: &[u8]) {
        self.push(Part::Bytes(bytes[..bytes.len().min(MOST + 1)].to_vec(), bytes.len()));
    }

    fn write_u8(&mut self, number: u8) {
        match self.parts.last_mut() {
            Some(last) if number == END_OF_TEXT => {
                if let Part::Bytes(bytes, _) = last {
                    *last = Part::Text(String::from_utf8_lossy(bytes).into_owned());
                    return;
                }
            }
            _ => {}
        }
        self.push(Part::Number(number.into()));
    }

    numbers!(write_u16 u16, write_u64 u64, write_i8 i8, write_i16 i16, write_i32 i32, write_i64 i64, write_i128 i128);

    fn write_u32(&mut self, number: u32) {
        self.push(Part::U32(number));
    }

    fn write_u128(&mut self, number: u128) {
        self.push(Part::U128(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.push(Part::Usize(number));
    }

    fn write_isize(&mut self, number: isize) {
        self.push(Part::Isize(number));
    }

    /// For implementations of `Hash` that call it. A text needs no hash.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::hash::Hash;
    use std::net::{IpAddr, SocketAddr};

    fn text(key: impl Hash) -> String {
        let mut writes = Writes::default();
        // As an observer's hasher is called.
        let mut state: &mut dyn Hasher = &mut writes;
        key.hash(&mut state);
        writes.text()
    }

    #[test]
    fn common_keys_are_read_as_they_are_written() {
        assert_eq!(text("alice"), "alice");
        assert_eq!(text(String::from("")), "");
        assert_eq!(text("žluťoučký 🐎"), "žluťoučký 🐎");
        let numbers = [text(7_u8), text(7_u16), text(7_u32), text(7_u64), text(7_u128), text(7_usize)];
        assert!(numbers.iter().all(|text| text == "7"), "{numbers:?}");
        let numbers = [text(-7_i8), text(-7_i16), text(-7_i32), text(-7_i64), text(-7_i128), text(-7_isize)];
        assert!(numbers.iter().all(|text| text == "-7"), "{numbers:?}");
        assert_eq!(
            (text(u8::MAX), text(u64::MAX), text(u128::MAX)),
            ("255".to_owned(), u64::MAX.to_string(), u128::MAX.to_string())
        );
        for address in ["0.0.0.0", "203.0.113.7", "::", "2001:db8::1", "::ffff:1.2.3.4"] {
            assert_eq!(text(address.parse::<IpAddr>().unwrap()), address);
        }
        assert_eq!(text("203.0.113.7:80".parse::<SocketAddr>().unwrap()), "203.0.113.7, 80");
        assert_eq!(text((1_u64, "/cart")), r#"1, "/cart""#);
        assert_eq!(text(("a, b", "c")), r#""a, b", "c""#);
        assert_eq!(text((IpAddr::from([10, 0, 0, 1]), "x", 3_u32)), r#"10.0.0.1, "x", 3"#);
        assert_eq!(text(vec![10_u8, 0]), "0x0a00");
        assert_eq!(text([0xff_u8; 2]), "0xffff");
        assert_eq!(text(["a", "b"]), r#"2, "a", "b""#);
        assert_eq!(text((Some(7_u32), None::<u32>)), "#1, 7, #0");
        assert_eq!(text(()), "");
    }

    #[test]
    fn no_control_character_reaches_a_terminal() {
        assert_eq!(text("a\n\u{1b}[31m"), "a\\n\\u{1b}[31m");
        assert_eq!(text(("a\n", 1)), r#""a\n", 1"#);
    }

    #[test]
    fn long_keys_are_cut_and_marked() {
        assert_eq!(text("x".repeat(MOST)), "x".repeat(MOST));
        let cut = text("x".repeat(MOST + 1));
        assert_eq!((cut.len(), cut.ends_with("x…")), (MOST, true));
        assert_eq!(text("🐎".repeat(MOST)).chars().last(), Some('…'));
        assert!(text(vec![7_u8; 10_000]).ends_with('…'));
        assert!(text(vec![7_u64; 10_000]).ends_with('…'));
        let mut writes = Writes::default();
        (0..10_000).for_each(|_| "xxxxxxxxxx".hash(&mut writes));
        assert!(writes.parts.len() < MOST, "what is not shown is not kept");
    }
}
