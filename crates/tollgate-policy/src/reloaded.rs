//! [`Reloaded`]: what became of a policy file that was looked at.

use core::fmt;
use std::path::{Path, PathBuf};

use crate::apply_error::ApplyError;
use crate::load::LoadError;

/// What became of a policy file that a [`Reloader`](crate::Reloader) has read.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::{Policy, Reloaded, Reloader};
///
/// let policy = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]")?;
/// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
/// let reloader = Reloader::new("no/such/policy.toml", policy, limiter);
/// let reloaded = reloader.reload_now();
/// assert_eq!(reloaded.result(), "refused");
/// match reloaded {
///     Reloaded::Refused(error) => println!("{error}"),
///     other => unreachable!("{other}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Reloaded {
    /// The policy was applied to the limiters in use.
    Applied,
    /// The limiters in use could not take the policy on. The program has made
    /// [new ones](crate::Reloader::rebuild_with).
    Rebuilt,
    /// The file has the policy that is in force.
    Unchanged,
    /// The file was refused. The old policy stays in force.
    Refused(ReloadError),
}

impl Reloaded {
    /// A word for a label of a metric: `applied`, `rebuilt`, `unchanged` or `refused`.
    #[must_use]
    pub const fn result(&self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Rebuilt => "rebuilt",
            Self::Unchanged => "unchanged",
            Self::Refused(_) => "refused",
        }
    }
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => f.write_str("the policy was applied"),
            Self::Rebuilt => f.write_str("new limiters were built of the policy"),
            Self::Unchanged => f.write_str("the policy is unchanged"),
            Self::Refused(error) => write!(f, "the old policy stays: {error}"),
        }
    }
}

/// Why a policy file was refused.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use tollgate_policy::{Policy, ReloadError, Reloaded, Reloader};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limits.toml");
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let policy = Policy::from_toml(text)?;
/// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
/// let reloader = Reloader::new(&path, policy, limiter);
/// std::fs::write(&path, text.replace("user", "tenant"))?;
/// match reloader.reload_now() {
///     Reloaded::Refused(error @ ReloadError::Apply { line: 2, .. }) => assert_eq!(error.path(), path),
///     other => unreachable!("{other}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file can't be read, or is not a policy.
    Load(LoadError),
    /// The limiters in use can't take the policy on.
    Apply {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The reason, and what to do.
        error: ApplyError,
    },
    /// The program could not build new limiters.
    Rebuild {
        /// The path of the file.
        path: PathBuf,
        /// What the program says.
        reason: String,
    },
}

impl ReloadError {
    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Load(error) => error.path(),
            Self::Apply { path, .. } | Self::Rebuild { path, .. } => path,
        }
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Apply { path, line, error } => write!(f, "{}: line {line}: {error}", path.display()),
            Self::Rebuild { path, reason } => write!(f, "{}: no new limiter: {reason}", path.display()),
        }
    }
}

impl core::error::Error for ReloadError {}
