//! What an Application Load Balancer of AWS writes: values set apart by spaces, some in quotes.

use super::proxy::{Layout, Values, address_of, parts_of};
use crate::errors::LineError;
use crate::times::Times;

/// Its lines, up to the time at which the request came. What follows is not looked at: newer versions
/// add values there. The `time` is that of the answer.
pub(super) const ALB: Layout = Layout {
    names: &[
        "type",
        "time",
        "elb",
        "client",
        "target",
        "request_processing_time",
        "target_processing_time",
        "response_processing_time",
        "status",
        "target_status_code",
        "received_bytes",
        "sent_bytes",
        "request",
        "user_agent",
        "ssl_cipher",
        "ssl_protocol",
        "target_group_arn",
        "trace_id",
        "domain_name",
        "chosen_cert_arn",
        "matched_rule_priority",
        "request_creation_time",
        // The parts of the request.
        "method",
        "path",
        "protocol",
    ],
    time: "request_creation_time",
    split,
};

/// The values that a line has itself.
const VALUES: usize = 22;
const CLIENT: usize = 3;
const REQUEST: usize = 12;

/// Whether the line is one of a load balancer, and no other line of text.
pub(super) fn is_line(line: &[u8]) -> bool {
    split(line).is_ok_and(|values| {
        let value = |column: usize| values[column].unwrap_or_default();
        value(2).starts_with(b"app/") && Times::default().read(&String::from_utf8_lossy(value(1))).is_ok()
    })
}

fn split(line: &[u8]) -> Result<Values<'_>, LineError> {
    let mut values = Vec::with_capacity(ALB.names.len());
    let mut rest = line;
    while values.len() < VALUES {
        let (value, after) = next(rest).ok_or(LineError::Lacks("it ends before the time at which the request came"))?;
        values.push(Some(value));
        rest = after;
    }
    values[CLIENT] = values[CLIENT].map(address_of);
    values.extend(values[REQUEST].map_or([None; 3], parts_of));
    Ok(values)
}

/// The next value, and what follows it. A quote in a value is written as `\x22`, or with a backslash.
fn next(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let is_end = |at: &usize| *at == 0 || quoted[at - 1] != b'\\';
        let end = memchr::memchr_iter(b'"', quoted).find(is_end)?;
        let after = &quoted[end + 1..];
        return Some((&quoted[..end], after.strip_prefix(b" ").unwrap_or(after)));
    }
    // The last value may be cut off unless a space follows.
    let end = memchr::memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "h2 2018-07-02T22:23:00.186641Z app/lb/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.000 0.001 \
                        0.000 200 204 34 366 \"GET https://example.com:443/a?b HTTP/2.0\" \"a \\\"b\\\" c\" - - \
                        arn:aws:x \"Root=1-58337262\" \"-\" \"-\" 0 2018-07-02T22:22:48.364000Z \"forward\" \"-\" \"-\"";

    #[test]
    fn every_column_has_its_value() {
        let values = split(LINE.as_bytes()).unwrap();
        assert_eq!(values.len(), ALB.names.len());
        for (name, expected) in [
            ("type", "h2"),
            ("client", "192.0.2.7"),
            ("target", "10.0.0.1:80"),
            ("status", "200"),
            ("sent_bytes", "366"),
            ("user_agent", "a \\\"b\\\" c"),
            ("trace_id", "Root=1-58337262"),
            ("request_creation_time", "2018-07-02T22:22:48.364000Z"),
            ("method", "GET"),
            ("path", "/a?b"),
            ("protocol", "HTTP/2.0"),
        ] {
            let column = ALB.names.iter().position(|other| *other == name).unwrap();
            assert_eq!(values[column], Some(expected.as_bytes()), "{name}");
        }
        assert!(is_line(LINE.as_bytes()));
        assert!(!is_line(LINE.replace("app/", "net/").as_bytes()), "another kind of balancer has other values");
    }

    #[test]
    fn a_line_that_is_cut_before_its_time_is_no_event() {
        for cut in 0..=LINE.find(" \"forward\"").unwrap() {
            assert!(split(&LINE.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
    }
}
