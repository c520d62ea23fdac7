//! [`Policy::load`]: policies from files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::PolicyError;
use super::model::Policy;
use crate::texts::texts;

impl Policy {
    /// Reads and checks a policy file.
    ///
    /// ```
    /// use tollgate::policy::Policy;
    ///
    /// let path = std::env::temp_dir().join(format!("tollgate-{}.toml", std::process::id()));
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// std::fs::write(&path, text)?;
    /// assert_eq!(Policy::load(&path)?, Policy::from_toml(text)?);
    /// std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LoadError`], with the path, when the file can't be read or is not a policy.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|error| LoadError::Read { path: path.to_owned(), error })?;
        Self::from_toml(&text).map_err(|error| LoadError::Policy { path: path.to_owned(), error })
    }
}

/// Why a policy was not read from a file.
///
/// ```
/// use std::path::Path;
/// use tollgate::policy::{LoadError, Policy};
///
/// let error = Policy::load("no/such/policy.toml").unwrap_err();
/// assert!(matches!(error, LoadError::Read { .. }));
/// assert_eq!(error.path(), Path::new("no/such/policy.toml"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The file can't be read.
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        error: io::Error,
    },
    /// The file is not a policy.
    Policy {
        /// The path of the file.
        path: PathBuf,
        /// The problem, and its place.
        error: PolicyError,
    },
}

impl LoadError {
    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. } | Self::Policy { path, .. } => path,
        }
    }
}

texts! { LoadError {
    Read { path, error } => "the policy {} can't be read: {error}", path.display();
    Policy { path, error } => "{}: {error}", path.display();
} }

impl core::error::Error for LoadError {}
