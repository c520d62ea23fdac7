//! [`Listen`]: where a server listens.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use std::path::PathBuf;

use crate::error::ServeError;

/// Where a server listens.
///
/// ```
/// use tollgate_serve::Listen;
///
/// let tcp: Listen = "127.0.0.1:7117".parse()?;
/// assert_eq!(tcp.to_string(), "127.0.0.1:7117");
/// let unix: Listen = "unix:/run/tollgate.sock".parse()?;
/// assert_eq!(unix, Listen::Unix("/run/tollgate.sock".into()));
/// assert!("localhost".parse::<Listen>().is_err());
/// # Ok::<(), tollgate_serve::ServeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listen {
    /// On an address and port of TCP; port 0 is any that is free.
    Tcp(SocketAddr),
    /// On a Unix socket. A socket that a server has left behind is replaced.
    Unix(PathBuf),
}

impl Default for Listen {
    /// Port 7117 of the loopback address, which other machines do not reach.
    ///
    /// ```
    /// assert_eq!(tollgate_serve::Listen::default().to_string(), "127.0.0.1:7117");
    /// ```
    fn default() -> Self {
        Self::Tcp(([127, 0, 0, 1], 7117).into())
    }
}

impl FromStr for Listen {
    type Err = ServeError;

    fn from_str(text: &str) -> Result<Self, ServeError> {
        match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(_) => Err(ServeError::Listen { text: text.to_owned() }),
            None => text.parse().map(Self::Tcp).map_err(|_| ServeError::Listen { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
