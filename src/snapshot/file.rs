//! Snapshots in files. A file is replaced as a whole: it has the old snapshot or the new one.

use core::error::Error;
use core::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::contents::Snapshot;

impl Snapshot {
    /// Writes the snapshot to a file. Whenever the process or the machine stops, the file is whole:
    /// the old one or the new one.
    ///
    /// The snapshot is written to a file beside it, whose name begins with `.tollgate-`. That file
    /// replaces the old one when all of it is on the disk. A process that is killed may leave it
    /// behind.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, Snapshot};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limits");
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// limiter.snapshot().save(&path)?;
    /// assert_eq!(Snapshot::load(&path)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the file system, with the path. The old file is unchanged then.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        self.write(path).map_err(|error| naming(path, error))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut file = tempfile::Builder::new().prefix(".tollgate-").tempfile_in(folder)?;
        file.write_all(&self.to_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The folder's entry must reach the disk, too. Systems that can't open a folder as a file
        // need no sync for that.
        match File::open(folder) {
            Ok(folder) => folder.sync_all(),
            Err(_) => Ok(()),
        }
    }

    /// Reads a snapshot from a file.
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use tollgate::{Limiter, Quota, Snapshot};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limits");
    /// // The first start finds no file.
    /// let builder = Limiter::<String>::builder(Quota::per_hour(5));
    /// let limiter = match Snapshot::load(&path) {
    ///     Ok(snapshot) => builder.restore(&snapshot)?,
    ///     Err(error) if error.kind() == ErrorKind::NotFound => builder.build()?,
    ///     Err(error) => return Err(error.into()),
    /// };
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the file system, with the path. If the file is no snapshot, the kind is
    /// [`io::ErrorKind::InvalidData`], and the source is a [`SnapshotError`](super::SnapshotError).
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let read =
            || Self::from_bytes(&fs::read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        read().map_err(|error| naming(path, error))
    }
}

/// An error of the same kind, whose text begins with the path.
fn naming(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), AtPath { path: path.into(), error })
}

/// An error about a file.
#[derive(Debug)]
struct AtPath {
    path: Box<Path>,
    error: io::Error,
}

impl fmt::Display for AtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl Error for AtPath {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // If the error only wraps another, that one.
        self.error.get_ref().map_or(Some(&self.error), |inner| Some(inner))
    }
}
