//! A folder with a policy file, and what follows it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tollgate::{JointLimiter, MockClock};
use tollgate_policy::{Policy, Reloader};

pub(crate) type Users = JointLimiter<(u32,), MockClock>;

/// A policy of one dimension with this limit a minute, and two an hour.
pub(crate) fn text(limit: u32) -> String {
    format!(
        "[[dimension]]\nname = \"user\"\n\n[[dimension.quota]]\nlimit = {limit}\nper = \"1m\"\n\n\
         [[dimension.quota]]\nlimit = {}\nper = \"1h\"\n",
        2 * limit
    )
}

/// A limiter, and the file that it was built of.
pub(crate) struct Folder {
    pub(crate) folder: TempDir,
    pub(crate) limiter: Arc<Users>,
    /// What the reloader has told, in words.
    pub(crate) told: Arc<Mutex<Vec<String>>>,
}

impl Folder {
    /// A folder, and the reloader of its file, which has a limit of 1.
    pub(crate) fn new() -> (Self, Reloader) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("limits.toml");
        fs::write(&path, text(1)).unwrap();
        let policy = Policy::load(&path).unwrap();
        let limiter: Arc<Users> = Arc::new(policy.builder().unwrap().clock(MockClock::new()).build().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let reloader = Reloader::new(&path, policy, Arc::clone(&limiter))
            .on_reload(move |reloaded| kept.lock().unwrap().push(reloaded.to_string()));
        assert!(reloader.poll().is_none() && reloader.poll().is_none(), "the file that the policy was read from");
        (Self { folder, limiter, told }, reloader)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("limits.toml")
    }

    pub(crate) fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(self.path(), text).unwrap();
    }

    /// Puts a file with this text in its place: none sees half of it.
    pub(crate) fn replace(&self, text: impl AsRef<[u8]>) {
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> Vec<u32> {
        let status = self.limiter.peek((1,)).unwrap();
        status.quotas().map(|quota| quota.limit()).collect()
    }

    /// What the reloader has told since the last call.
    pub(crate) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}
