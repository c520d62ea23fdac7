//! Values of header fields without an allocation for each.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Room for the values of a few dozen responses.
const CHUNK: usize = 2048;

thread_local! {
    /// The rest of a chunk of memory whose parts are the values that this thread has made.
    static ROOM: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// The type of a framework for the value of a header field.
pub trait FieldValue: Clone {
    /// The value with this text of printable ASCII; `None` if a value cannot have it.
    fn of(text: Bytes) -> Option<Self>;
}

impl FieldValue for Bytes {
    fn of(text: Bytes) -> Option<Self> {
        Some(text)
    }
}

/// These bytes, in memory that the values of a thread share.
///
/// Values of responses are dropped soon. A chunk of memory is used again once all of its values are
/// dropped. So a thread allocates only while many of its responses are in progress. A value that is
/// kept keeps its chunk of 2 KiB.
///
/// ```
/// use tollgate_http::middleware::bytes_of;
///
/// assert_eq!(bytes_of(b"120"), "120");
/// ```
#[must_use]
pub fn bytes_of(value: &[u8]) -> Bytes {
    written(value.len(), |room| room.extend_from_slice(value))
}

/// The digits of a number, as [`bytes_of`].
///
/// ```
/// use tollgate_http::middleware::digits_of;
///
/// assert_eq!(digits_of(120), "120");
/// ```
#[must_use]
pub fn digits_of(number: u64) -> Bytes {
    bytes_of(itoa::Buffer::new().format(number).as_bytes())
}

/// The output of `write`, of at most `most` bytes, in memory that the values of a thread share.
pub(crate) fn written(most: usize, write: impl Fn(&mut BytesMut)) -> Bytes {
    let shared = ROOM.try_with(|room| {
        let mut room = room.try_borrow_mut().ok()?;
        if room.capacity() < most {
            // Uses the chunk again if all of its values are dropped.
            room.reserve(most.max(CHUNK));
        }
        write(&mut room);
        Some(room.split().freeze())
    });
    // The thread is ending.
    shared.ok().flatten().unwrap_or_else(|| {
        let mut room = BytesMut::with_capacity(most);
        write(&mut room);
        room.freeze()
    })
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, bytes_of};

    #[test]
    fn values_keep_their_bytes_while_others_come_and_go() {
        let mut kept = Vec::new();
        for n in 0..1_000_usize {
            let text = n.to_string().repeat(1 + n % 7);
            let value = bytes_of(text.as_bytes());
            assert_eq!(value, text);
            if n % 3 == 0 {
                kept.push((text, value));
            }
            if n % 100 == 0 {
                kept.drain(..kept.len() / 2);
            }
        }
        for (text, value) in kept {
            assert_eq!(value, text);
        }
    }

    #[test]
    fn a_value_may_be_longer_than_a_chunk() {
        let long = vec![b'x'; 3 * CHUNK];
        assert_eq!(bytes_of(&long), long);
        assert_eq!(bytes_of(b""), "");
    }
}
