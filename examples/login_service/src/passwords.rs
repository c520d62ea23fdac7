//! Passwords, and whether one is right.

use std::future::{Future, ready};

/// Checks passwords. A real service reads a hash and computes another, which takes a while.
pub trait Passwords: Clone + Send + Sync + 'static {
    /// Whether this is the user's password.
    fn is_right(&self, user: &str, password: &str) -> impl Future<Output = bool> + Send;
}

/// One user, `alice`, with the password `open sesame`.
#[derive(Debug, Clone, Copy)]
pub struct OneUser;

impl Passwords for OneUser {
    fn is_right(&self, user: &str, password: &str) -> impl Future<Output = bool> + Send {
        ready((user, password) == ("alice", "open sesame"))
    }
}
