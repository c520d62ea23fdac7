//! The elements of `Forwarded` (RFC 7239, section 4).

use core::net::IpAddr;

use crate::node::{self, trim};

/// The last comma that is not in a quoted string.
///
/// A list is read from the right. So text that a client wrote in front, such as a quote that is
/// never closed, does not change how the elements of the proxies are read. From the right, a quoted
/// string begins at the first quote after an even number of backslashes.
pub(crate) fn last_comma(list: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (at, &byte) in list.iter().enumerate().rev() {
        match byte {
            b'"' if quoted => quoted = is_escaped(&list[..at]),
            b'"' => quoted = true,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// The address in the `for` of an element. `None` if there is not exactly one `for`, if it has no
/// address, or if the element is not as RFC 7239 defines it.
pub(crate) fn node(element: &[u8]) -> Option<IpAddr> {
    let mut address = None;
    let mut rest = element;
    loop {
        rest = trim(rest);
        if !matches!(rest, [] | [b';', ..]) {
            let (name, value, after) = pair(rest)?;
            if name.eq_ignore_ascii_case(b"for") && address.replace(node::in_forwarded(value)?).is_some() {
                return None;
            }
            rest = trim(after);
        }
        match rest {
            [] => return address,
            [b';', after @ ..] => rest = after,
            _ => return None,
        }
    }
}

/// The name and the value of a pair, and the rest of the text. The value of a quoted string is the
/// text between the quotes, with its backslashes: an address never needs one.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, text) = token(text)?;
    let text = text.strip_prefix(b"=")?;
    let Some(string) = text.strip_prefix(b"\"") else {
        let (value, after) = token(text)?;
        return Some((name, value, after));
    };
    let mut at = 0;
    loop {
        match string.get(at)? {
            b'"' => return Some((name, &string[..at], &string[at + 1..])),
            // A backslash and the byte that it escapes.
            b'\\' if is_text(*string.get(at + 1)?) => at += 2,
            &byte if byte != b'\\' && is_text(byte) => at += 1,
            _ => return None,
        }
    }
}

/// A token of at least one byte, and the rest of the text.
fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = text.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(text.len());
    (length > 0).then(|| text.split_at(length))
}

/// Whether a token may have this byte (`tchar` of RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a quoted string may have this byte, by itself or after a backslash.
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
