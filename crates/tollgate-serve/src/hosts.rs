//! [`Hosts`]: the names by which requests may call a server.
//!
//! A page in a browser reaches a server of the machine or of its network when the page's own name
//! points there (DNS rebinding). Such requests have the name of the page as their host, whatever
//! else the page writes, so that a name which the operator did not list is refused.

use core::net::IpAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Version};

use crate::error::ServeError;
use crate::trouble::Trouble;

/// The names by which requests may call a server: `localhost` and names under it, IP addresses, which
/// no name server can point elsewhere, and those that the operator lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// In lower case. One that begins with a dot stands for the names under it, too.
    names: Vec<String>,
    is_any: bool,
}

impl Hosts {
    /// Adds a name, a name and all names under it (`.example.com`), or any name (`*`).
    pub(crate) fn add(&mut self, name: &str) -> Result<(), ServeError> {
        if name == "*" {
            self.is_any = true;
            return Ok(());
        }
        let bare = name.strip_prefix('.').unwrap_or(name);
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if bare.is_empty() || !bare.bytes().all(is_fit) {
            return Err(ServeError::Host { name: name.to_owned() });
        }
        self.names.push(name.to_ascii_lowercase());
        Ok(())
    }

    /// Whether the server is called by a name that it has.
    ///
    /// # Errors
    ///
    /// [`Trouble::Misdirected`] for another name; [`Trouble::NoHost`] where HTTP/1.1 has not exactly
    /// one `Host`. A browser always names a host, so that a request of another version may lack it.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Trouble> {
        let mut lines = request.headers().get_all(HOST).iter();
        let line = match (lines.next(), lines.next()) {
            (None, _) if request.version() == Version::HTTP_11 => return Err(Trouble::NoHost),
            (line, None) => line,
            (_, Some(_)) => return Err(Trouble::NoHost),
        };
        if self.is_any {
            return Ok(());
        }
        // A request may name it in both places.
        let of_line = line.map(|line| Authority::try_from(line.as_bytes()).ok());
        let of_target = request.uri().authority().map(|target| Some(target.clone()));
        let are_known = of_line.iter().chain(&of_target).all(|host| host.as_ref().is_some_and(|host| self.has(host)));
        if are_known { Ok(()) } else { Err(Trouble::Misdirected) }
    }

    fn has(&self, host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host();
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        if address.parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let mut names = self.names.iter().map(String::as_str).chain([".localhost"]);
        names.any(|known| match known.strip_prefix('.') {
            Some(bare) => name == bare || name.ends_with(known),
            None => name == known,
        })
    }
}
