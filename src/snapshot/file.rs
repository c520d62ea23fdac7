//! Snapshots in files: the old one or the new one, whole, at any time.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::contents::Snapshot;

impl Snapshot {
    /// Writes the snapshot to a file. If the process, or the machine, stops at any point of it, the file is what it was before or
    /// what it is to be, whole: it is written under another name next to it and takes its place once it is on the disk.
    ///
    /// A process that was killed may leave such a file, whose name begins with `.tollgate-`, behind.
    ///
    /// # Errors
    ///
    /// What the file system says; the file is then what it was.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut file = tempfile::Builder::new().prefix(".tollgate-").tempfile_in(folder)?;
        file.write_all(&self.to_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The name has to reach the disk, too. Where folders can't be opened as files the system sees to it itself.
        match File::open(folder) {
            Ok(folder) => folder.sync_all(),
            Err(_) => Ok(()),
        }
    }

    /// Reads a snapshot from a file.
    ///
    /// # Errors
    ///
    /// What the file system says, or, as [`io::ErrorKind::InvalidData`], the [`SnapshotError`](super::SnapshotError).
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_bytes(&fs::read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
