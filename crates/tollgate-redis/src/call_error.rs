//! Why a call has no reply of the script.

use redis::{ErrorKind, RedisError};

use crate::error::{Cause, Unavailable};

/// Why a call has no reply of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    Unavailable(Unavailable),
    /// The script refused a value: its words.
    Refused(String),
}

pub(crate) fn of_error(error: &RedisError) -> CallError {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => of_code(error.code().unwrap_or_default(), error.detail()),
        _ if error.is_io_error() => CallError::Unavailable(Unavailable::perhaps_charged(Cause::Disconnected)),
        _ => CallError::Unavailable(Unavailable::perhaps_charged(Cause::Protocol)),
    }
}

/// An error that the server answered. With these codes it has not run the script, or the script has
/// stopped before its first write. With any other it is not certain.
pub(crate) fn of_code(code: &str, details: Option<&str>) -> CallError {
    let cause = match code {
        "TOLLGATE" => return CallError::Refused(details.unwrap_or_default().to_owned()),
        "NOSCRIPT" | "OOM" | "READONLY" | "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "NOREPLICAS"
        | "MISCONF" => Cause::ServerNotReady,
        "MOVED" | "ASK" | "TRYAGAIN" => Cause::OtherNode,
        // The script may have written something before.
        _ if details.is_some_and(is_right_of_a_script) => {
            return CallError::Unavailable(Unavailable::perhaps_charged(Cause::NotPermitted));
        }
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Cause::NotPermitted,
        "CROSSSLOT" => Cause::OtherSlot,
        _ => return CallError::Unavailable(Unavailable::perhaps_charged(Cause::Protocol)),
    };
    CallError::Unavailable(Unavailable::not_charged(cause))
}

/// Whether a command of the script was refused: in the words of Redis 7.0, and of later ones.
fn is_right_of_a_script(details: &str) -> bool {
    details.contains("user executing the script") || details.contains("ACL failure in script")
}
