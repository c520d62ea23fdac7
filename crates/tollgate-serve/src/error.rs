//! [`ServeError`]: why a server does not start, or ends otherwise than it should.

use core::fmt;
use std::io;
use std::path::PathBuf;

use tollgate::{BuildError, RestoreError};
use tollgate_http::PolicyError;
use tollgate_policy::BuilderError;

/// Why a server does not start, or could not save its snapshot.
///
/// ```
/// use tollgate_policy::Policy;
/// use tollgate_serve::{ServeError, Server};
///
/// let policy = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]")?;
/// let error = Server::new(policy).optional("usr").unwrap_err();
/// assert!(matches!(error, ServeError::UnknownField { .. }));
/// assert_eq!(error.to_string(), "the policy has no field \"usr\", only \"user\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The policy has no field of this name.
    UnknownField {
        /// The name.
        field: String,
        /// The fields of the policy, in quotes.
        known: String,
    },
    /// No header field can have this name.
    HeaderName {
        /// The name.
        name: String,
    },
    /// No host can have this name.
    Host {
        /// The name.
        name: String,
    },
    /// A field has no header field, since its name can't be part of one.
    NoHeader {
        /// The name of the field.
        field: String,
    },
    /// A key has a network of a field that is no address, of no bit, or of more than the key of a
    /// client has.
    Network {
        /// The name of the field.
        field: String,
    },
    /// The text is neither an address with a port nor `unix:` and a path.
    Listen {
        /// The text.
        text: String,
    },
    /// There is nothing to listen on.
    NothingToListenOn,
    /// The most connections are zero, or more than can be counted.
    Connections {
        /// The number.
        connections: usize,
    },
    /// The limiter could not be built.
    Build(BuildError),
    /// The policy has a store, and this server decides in process.
    InProcess(BuilderError),
    /// The limiter could not be built on the store of the policy.
    #[cfg(feature = "redis")]
    Store(tollgate_redis::BuildError),
    /// The policy has a store and a queue, which would make requests wait after they are charged.
    QueueOnStore {
        /// The dimension with the queue.
        dimension: String,
    },
    /// The policy has a store, which keeps the state, and there is a snapshot for it as well.
    SnapshotOfStore,
    /// A quota can't be told to clients.
    Policy(PolicyError),
    /// The snapshot could not be read.
    SnapshotUnread(io::Error),
    /// The snapshot is of another policy.
    Restore {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: RestoreError,
    },
    /// The snapshot could not be written.
    SnapshotUnwritten(io::Error),
    /// An address can't be listened on.
    Bind {
        /// The address.
        address: String,
        /// The reason.
        error: io::Error,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { field, known } => write!(f, "the policy has no field {field:?}, only {known}"),
            Self::HeaderName { name } => write!(f, "no header field can have the name {name:?}"),
            Self::Host { name } => write!(
                f,
                "no host can have the name {name:?}: write tollgate.example.com, .example.com for all names under it, or *"
            ),
            Self::NoHeader { field } => {
                write!(f, "the field {field:?} can't be part of the name of a header field: name one for it")
            }
            Self::Network { field } => write!(
                f,
                "a key has a network of the field {field:?}: that must be an address, and a network has 1 bit or more, up \
                 to the `ipv6_prefix` of `[client]`, 64 by default"
            ),
            Self::Listen { text } => {
                write!(f, "{text:?} can't be listened on: write 127.0.0.1:7117, [::1]:7117 or unix:/run/tollgate.sock")
            }
            Self::NothingToListenOn => f.write_str("there is nothing to listen on: give at least one address"),
            Self::Connections { connections } => {
                write!(f, "{connections} connections can't be served: at least 1 and at most 1000000")
            }
            Self::Build(error) => error.fmt(f),
            Self::InProcess(error) => error.fmt(f),
            #[cfg(feature = "redis")]
            Self::Store(error) => error.fmt(f),
            Self::QueueOnStore { dimension } => write!(
                f,
                "dimension {dimension:?}: a queue on a store charges what has to wait, and nobody waits here: take a leaky-bucket"
            ),
            Self::SnapshotOfStore => f.write_str("the store of the policy keeps the state: leave out the snapshot"),
            Self::Policy(error) => error.fmt(f),
            Self::SnapshotUnread(error) => write!(f, "the snapshot can't be read: {error}"),
            Self::Restore { path, error } => {
                write!(f, "{}: {error}; remove the file to start afresh", path.display())
            }
            Self::SnapshotUnwritten(error) => write!(f, "the snapshot can't be written: {error}"),
            Self::Bind { address, error } => write!(f, "{address} can't be listened on: {error}"),
        }
    }
}

impl core::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::SnapshotUnread(error) | Self::SnapshotUnwritten(error) | Self::Bind { error, .. } => Some(error),
            Self::Restore { error, .. } => Some(error),
            _ => None,
        }
    }
}
