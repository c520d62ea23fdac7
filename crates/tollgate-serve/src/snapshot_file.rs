//! The file of a snapshot, looked at before the server starts.

use core::time::Duration;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The least age of a file that a killed save has left: another server of the folder may be saving.
const LEFT: Duration = Duration::from_secs(60);

/// Writes and removes a file beside the snapshot, and removes those that killed saves have left.
///
/// # Errors
///
/// That of the file system, with the path: no snapshot could be written there.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if path.is_dir() {
        return Err(named(io::ErrorKind::IsADirectory.into()));
    }
    let trial = folder.join(format!(".tollgate-check-{}", std::process::id()));
    File::create(&trial).and_then(|_| fs::remove_file(&trial)).map_err(named)?;
    remove_left(folder);
    Ok(())
}

/// Removes what killed saves have left. What can't be removed does no harm.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_old = || entry.metadata().is_ok_and(|file| file.is_file() && file.modified().is_ok_and(is_left));
        if is_of_save(&entry.file_name()) && is_old() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_left(modified: std::time::SystemTime) -> bool {
    modified.elapsed().is_ok_and(|age| age >= LEFT)
}

/// Whether a save gives a file such a name: `.tollgate-` and six letters or digits.
fn is_of_save(name: &OsStr) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(".tollgate-"));
    rest.is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
