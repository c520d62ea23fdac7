//! [`Policy::load`]: policies from files.

use core::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::PolicyError;
use crate::model::Policy;

impl Policy {
    /// Reads and checks a policy file.
    ///
    /// ```
    /// use tollgate_policy::Policy;
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
    /// [`LoadError`], with the path, when the file can't be read, is no regular file, is not a policy,
    /// or has more than a MiB (1,048,576 bytes).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        Self::of_file(path, &text_of(path)?)
    }

    /// The policy in a file that has been read.
    pub(crate) fn of_file(path: &Path, text: &str) -> Result<Self, LoadError> {
        // A list is beside the policy, unless its path says otherwise.
        let beside = path.parent().unwrap_or(Path::new(""));
        let read = Self::read(text, &|list| {
            text_of_list(&beside.join(list)).map_err(|error| match error {
                LoadError::Read { error, .. } => error.to_string(),
                other => other.to_string(),
            })
        });
        read.map_err(|error| LoadError::Policy { path: path.to_owned(), error })
    }
}

/// The most bytes of a policy file.
const MOST_BYTES: u64 = 1 << 20;

/// The most bytes of a list of values: some million networks.
const MOST_BYTES_OF_A_LIST: u64 = 32 << 20;

/// The text of a policy file.
pub(crate) fn text_of(path: &Path) -> Result<String, LoadError> {
    text_up_to(path, MOST_BYTES)
}

fn text_of_list(path: &Path) -> Result<String, LoadError> {
    text_up_to(path, MOST_BYTES_OF_A_LIST)
}

fn text_up_to(path: &Path, most: u64) -> Result<String, LoadError> {
    let unread = |error| LoadError::Read { path: path.to_owned(), error };
    // The end of a FIFO or a terminal may never come.
    if !std::fs::metadata(path).map_err(unread)?.is_file() {
        return Err(LoadError::NotRegular { path: path.to_owned() });
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_string(&mut text));
    read.map_err(unread)?;
    if text.len() as u64 > most {
        return Err(LoadError::TooLarge { path: path.to_owned(), most });
    }
    Ok(text)
}

/// Why a policy was not read from a file.
///
/// ```
/// use std::path::Path;
/// use tollgate_policy::{LoadError, Policy};
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
    /// The path is that of a directory, a FIFO or a device: not of a regular file.
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than any policy.
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The most bytes.
        most: u64,
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
            Self::Read { path, .. }
            | Self::NotRegular { path }
            | Self::TooLarge { path, .. }
            | Self::Policy { path, .. } => path,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Self::Read { error, .. } => write!(f, "the policy {path} can't be read: {error}"),
            Self::NotRegular { .. } => write!(f, "the policy {path} is not a regular file"),
            Self::TooLarge { most, .. } => {
                write!(f, "the policy {path} has more than {most} bytes: is it the right file?")
            }
            Self::Policy { error, .. } => write!(f, "{path}: {error}"),
        }
    }
}

impl core::error::Error for LoadError {}
