//! [`Watcher`]: a thread that looks at a policy file.

use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::reload::Reloader;

/// A thread that [polls](Reloader::poll) a policy file until the watcher is dropped.
///
/// A change is applied once two looks in a row have seen the same contents: after one to two
/// intervals. A panic of the program's callback ends neither the thread nor the watch.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::mpsc::channel;
/// use std::time::Duration;
/// use tollgate_policy::{Policy, Reloader, Watcher};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limits.toml");
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// std::fs::write(&path, text)?;
/// let policy = Policy::load(&path)?;
/// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
///
/// let (tell, told) = channel();
/// let reloader = Reloader::new(&path, policy, limiter.clone()).on_reload(move |reloaded| {
///     let _ = tell.send(reloaded.result());
/// });
/// // `Watcher::EVERY` is two seconds.
/// let watcher = Watcher::start(reloader, Duration::from_millis(5))?;
///
/// let new = path.with_extension("new");
/// std::fs::write(&new, text.replace("limit = 5", "limit = 50"))?;
/// std::fs::rename(&new, &path)?;
/// assert_eq!(told.recv()?, "applied");
/// assert_eq!(limiter.peek(("alice",))?.tightest().map(|it| it.limit()), Some(50));
/// let _ = watcher.reloader().reload_now();
/// assert_eq!(told.recv()?, "unchanged");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the thread ends when the watcher is dropped"]
pub struct Watcher {
    reloader: Arc<Reloader>,
    /// Both are there until the drop.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// An interval that suits a file which an operator edits: two seconds.
    pub const EVERY: Duration = Duration::from_secs(2);

    /// Starts the thread, which looks at the file at these intervals, of at least a millisecond.
    ///
    /// # Errors
    ///
    /// That of the system when it has no thread left.
    pub fn start(reloader: impl Into<Arc<Reloader>>, every: Duration) -> io::Result<Self> {
        let (reloader, (stop, stopped)) = (reloader.into(), channel());
        let polled = Arc::clone(&reloader);
        let every = every.max(Duration::from_millis(1));
        let thread = thread::Builder::new().name("tollgate-policy".into());
        let thread = thread.spawn(move || poll_until(&stopped, every, &polled))?;
        Ok(Self { reloader, stop: Some(stop), thread: Some(thread) })
    }

    /// The reloader, for [`reload_now`](Reloader::reload_now).
    #[must_use]
    pub const fn reloader(&self) -> &Arc<Reloader> {
        &self.reloader
    }
}

fn poll_until(stopped: &Receiver<()>, every: Duration, reloader: &Reloader) {
    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        // Its message has been printed, unless the program has chosen otherwise.
        let _ = catch_unwind(AssertUnwindSafe(|| reloader.poll()));
    }
}

/// Ends the thread, and waits for the look at the file that is under way.
impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take().filter(|it| it.thread().id() != thread::current().id()) {
            // It ends by itself.
            let _ = thread.join();
        }
    }
}
