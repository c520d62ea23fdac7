//! [`Trouble`]: why a request can't be decided, as problem details (RFC 9457).

use core::fmt::Write as _;

use http::StatusCode;

use crate::whole::Unread;

/// The most bytes of a body, and of a message of gRPC.
pub(crate) const MAX_BODY: usize = 64 * 1024;

/// What to do where the host is not among those of the server.
pub(crate) const MISDIRECTED: &str =
    "The host of the request is not among those of this server. `tollgate serve --host NAME` adds it.";

/// Why a request can't be decided. Nothing is charged then.
///
/// Texts have names of the policy and numbers, and no part of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There is nothing at this path.
    NoSuchPath,
    /// The path takes other methods.
    Method { allowed: &'static str },
    /// The body is of another content type.
    ContentType { wanted: &'static str },
    /// gRPC over another version than HTTP/2.
    GrpcVersion,
    /// The host is not among those of the server.
    Misdirected,
    /// HTTP/1.1 without a host, or with several.
    NoHost,
    /// The body is longer than [`MAX_BODY`].
    BodyTooLarge,
    /// The body did not come in time.
    BodyTooSlow,
    /// The body ended early, or its framing is wrong.
    BodyBroken,
    /// The body is not what the path takes.
    Body(String),
    /// No request in flight has the token.
    NotInFlight,
    /// The store did not say whether a request in flight has the token.
    #[cfg(feature = "redis")]
    StoreAway,
    /// The bodies that come on the connection take all of its room.
    NoRoom,
    /// There are too many connections.
    TooManyConnections,
}

impl Trouble {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyBroken | Self::Body(_) | Self::NoHost => StatusCode::BAD_REQUEST,
            Self::NotInFlight => StatusCode::GONE,
            Self::GrpcVersion => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            #[cfg(feature = "redis")]
            Self::StoreAway => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoRoom | Self::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let (status, detail) = (self.status(), quoted(&self.detail()));
        let title = match status {
            // RFC 9110 has other names than the library.
            StatusCode::PAYLOAD_TOO_LARGE => "Content Too Large",
            status => status.canonical_reason().unwrap_or_default(),
        };
        format!("{{\"title\":\"{title}\",\"status\":{},\"detail\":{detail}}}", status.as_u16())
    }

    fn detail(&self) -> String {
        match self {
            Self::NoSuchPath => {
                "The paths are /acquire, /release, /auth_request, /authz, /health and /metrics.".to_owned()
            }
            Self::Method { allowed } => format!("This path takes {allowed}."),
            Self::ContentType { wanted } => format!("The content type must be {wanted}."),
            Self::GrpcVersion => "gRPC needs HTTP/2.".to_owned(),
            Self::Misdirected => MISDIRECTED.to_owned(),
            Self::NoHost => "HTTP/1.1 needs the field Host, once.".to_owned(),
            Self::BodyTooLarge => format!("The body has more than {MAX_BODY} bytes."),
            Self::BodyTooSlow => "The body did not come in time.".to_owned(),
            Self::BodyBroken => "The body did not come whole.".to_owned(),
            Self::Body(detail) => detail.clone(),
            Self::NotInFlight => {
                "No request in flight has this token: it is released, or its time is over, or none had it.".to_owned()
            }
            #[cfg(feature = "redis")]
            Self::StoreAway => "The store did not answer. Release the token again.".to_owned(),
            Self::NoRoom => "The bodies that come on this connection are too many or too long.".to_owned(),
            Self::TooManyConnections => "There are too many connections. Close those that are idle.".to_owned(),
        }
    }

    /// The value of `Allow`.
    pub(crate) const fn allowed(&self) -> Option<&'static str> {
        match self {
            Self::Method { allowed } => Some(allowed),
            _ => None,
        }
    }

    /// Whether the rest of the connection can't be, or is not to be, read.
    pub(crate) const fn ends_connection(&self) -> bool {
        matches!(self, Self::BodyTooLarge | Self::BodyTooSlow | Self::BodyBroken | Self::TooManyConnections)
    }
}

impl From<Unread> for Trouble {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::TooLarge => Self::BodyTooLarge,
            Unread::TooSlow => Self::BodyTooSlow,
            Unread::Broken => Self::BodyBroken,
            Unread::NoRoom => Self::NoRoom,
        }
    }
}

/// A text as a string of JSON, in ASCII.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            _ => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                // Writing to a `String` never fails.
                let _ = write!(out, "\\u{unit:04x}");
            }),
        }
    }
    out.push('"');
    out
}
