//! Answers to gRPC calls: "trailers only", all in the response's header fields, without a body.

use core::fmt;
use core::fmt::Write as _;

/// The content type of the answer to a gRPC call, by the content type of the request; `None` when
/// the request is not a gRPC call. No part of the request is echoed.
///
/// ```
/// use tollgate_http::grpc_content_type;
///
/// assert_eq!(grpc_content_type(b"application/grpc+proto"), Some("application/grpc"));
/// assert_eq!(grpc_content_type(b"application/json"), None);
/// ```
#[must_use]
pub fn grpc_content_type(request: &[u8]) -> Option<&'static str> {
    let essence = request.split(|&byte| byte == b';').next().unwrap_or_default();
    let kind = essence.split(|&byte| byte == b'+').next().unwrap_or_default().trim_ascii();
    ["application/grpc", "application/grpc-web", "application/grpc-web-text"]
        .into_iter()
        .find(|known| kind.eq_ignore_ascii_case(known.as_bytes()))
}

/// Writes a message as a value of `grpc-message`: UTF-8, with percent signs and bytes that are not
/// printable ASCII percent-encoded.
///
/// # Errors
///
/// Those of `out`.
///
/// ```
/// let mut value = String::new();
/// tollgate_http::write_grpc_message("50 % für alle", &mut value)?;
/// assert_eq!(value, "50 %25 f%C3%BCr alle");
/// # Ok::<(), std::fmt::Error>(())
/// ```
pub fn write_grpc_message(message: &str, out: &mut impl fmt::Write) -> fmt::Result {
    PercentEncoded(out).write_str(message)
}

/// Writes everything percent-encoded.
pub(crate) struct PercentEncoded<'a, W>(pub(crate) &'a mut W);

impl<W: fmt::Write> fmt::Write for PercentEncoded<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_plain = |c: char| matches!(c, ' '..='~') && c != '%';
        for part in text.split_inclusive(|c| !is_plain(c)) {
            let plain = part.trim_end_matches(|c| !is_plain(c));
            self.0.write_str(plain)?;
            for byte in part[plain.len()..].bytes() {
                write!(self.0, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
