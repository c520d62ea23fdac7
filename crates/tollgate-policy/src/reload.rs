//! [`Reloader`]: a policy file whose changes are applied to what is in use.

use core::fmt;
use core::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::apply_error::ApplyError;
use crate::load::{LoadError, text_of};
use crate::model::Policy;
use crate::read::line_of;
use crate::reloaded::{ReloadError, Reloaded};
use crate::target::Target;

/// A policy file, and the limiters that follow it.
///
/// A changed file is applied as a whole, or refused with the file, the line and what to do. Then the
/// old policy stays in force, until the contents change again.
///
/// Contents are compared, not times, but for the lists of values that are in files of their own. The file may be written in place, replaced by a rename, or
/// behind symbolic links that are swapped. A file with other comments is unchanged. If a writer stops
/// in the middle, and the half is a policy, it is applied: a rename rules that out.
///
/// Who looks at the file: a [`Watcher`](crate::Watcher) from a thread of its own;
/// [`reload_now`](Self::reload_now) when the program says so, as after a signal; or the program
/// calls [`poll`](Self::poll) on a schedule of its own.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_policy::{Policy, Reloaded, Reloader};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limits.toml");
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// std::fs::write(&path, text)?;
///
/// let policy = Policy::load(&path)?;
/// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
/// let log = |reloaded: &Reloaded| eprintln!("limits: {reloaded}");
/// let reloader = Reloader::new(&path, policy, limiter.clone()).on_reload(log);
/// assert_eq!(reloader.path(), path);
///
/// std::fs::write(&path, text.replace("limit = 5", "limit = 50"))?;
/// assert!(matches!(reloader.reload_now(), Reloaded::Applied));
/// assert_eq!(limiter.peek(("alice",))?.tightest().map(|it| it.limit()), Some(50));
///
/// std::fs::write(&path, text.replace("limit = 5", "limit = 0"))?;
/// let refused = reloader.reload_now();
/// assert_eq!(refused.result(), "refused");
/// assert!(refused.to_string().contains("limits.toml: line 3, column 10: dimension \"user\": "));
/// assert_eq!(reloader.policy().dimensions()[0].quotas()[0].limit(), 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a file is looked at when `poll` or `reload_now` is called, or by a `Watcher`"]
pub struct Reloader {
    path: PathBuf,
    state: Mutex<State>,
    on_reload: Option<Box<OnReload>>,
    rebuild: Option<Box<Rebuild>>,
}

/// Is told what became of the file.
type OnReload = dyn Fn(&Reloaded) + Send + Sync;

/// Makes new limiters for a policy that those in use can't take on.
type Rebuild = dyn Fn(&Policy) -> Result<Box<dyn Target>, Box<dyn core::error::Error>> + Send + Sync;

struct State {
    target: Box<dyn Target>,
    policy: Arc<Policy>,
    /// What was judged last, if anything was.
    judged: Option<Seen>,
    /// What was seen last, if it is not judged yet.
    waiting: Option<Seen>,
}

/// The text of the file, or why it can't be read; and of each list beside it that the policy in force
/// has, its length and the time of its last change.
type Seen = (Result<String, String>, Vec<Option<(u64, SystemTime)>>);

impl Reloader {
    /// For this file and these limiters, which have this policy. Reads no file yet.
    pub fn new(path: impl AsRef<Path>, policy: Policy, target: impl Target + 'static) -> Self {
        let target: Box<dyn Target> = Box::new(target);
        let state = State { target, policy: Arc::new(policy), judged: None, waiting: None };
        Self { path: path.as_ref().to_owned(), state: Mutex::new(state), on_reload: None, rebuild: None }
    }

    /// Calls this after each change of the file, and after each [`reload_now`](Self::reload_now),
    /// with what became of it: for a line in the log, and for a counter by
    /// [`Reloaded::result`]. It may call this reloader.
    pub fn on_reload(mut self, callback: impl Fn(&Reloaded) + Send + Sync + 'static) -> Self {
        self.on_reload = Some(Box::new(callback));
        self
    }

    /// Makes new limiters where those in use can't take on the policy, because it has other
    /// dimensions, algorithms or another key cap. Without this, such a policy is refused.
    ///
    /// The program puts the new limiter where its requests find it, and returns it. It must not call
    /// the reloader meanwhile. What the old one has granted is in its
    /// [snapshot](https://docs.rs/tollgate/latest/tollgate/struct.Snapshot.html), if its dimensions
    /// are the same.
    ///
    /// ```
    /// use std::sync::{Arc, RwLock};
    /// use tollgate_policy::{Policy, Reloaded, Reloader};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limits.toml");
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let limiter = Arc::new(policy.builder::<[String]>()?.build()?);
    /// let current = Arc::new(RwLock::new(Arc::clone(&limiter)));
    ///
    /// let of_requests = Arc::clone(&current);
    /// let reloader = Reloader::new(&path, policy, limiter).rebuild_with(move |policy| {
    ///     let limiter = Arc::new(policy.builder::<[String]>()?.build()?);
    ///     *of_requests.write().expect("no writer panics") = Arc::clone(&limiter);
    ///     Ok(Box::new(limiter))
    /// });
    /// std::fs::write(&path, text.replace("user", "tenant"))?;
    /// assert!(matches!(reloader.reload_now(), Reloaded::Rebuilt));
    /// assert_eq!(current.read().expect("no writer panics").dimension(0), "tenant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild_with(
        mut self,
        rebuild: impl Fn(&Policy) -> Result<Box<dyn Target>, Box<dyn core::error::Error>> + Send + Sync + 'static,
    ) -> Self {
        self.rebuild = Some(Box::new(rebuild));
        self
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.state().policy)
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file and applies it now. It waits for the file system.
    pub fn reload_now(&self) -> Reloaded {
        // Read under the lock: who comes later has read later.
        let mut state = self.state();
        let read = text_of(&self.path);
        let reloaded = self.judge(&mut state, read);
        drop(state);
        self.tell(reloaded)
    }

    /// Looks at the file: applies it if its contents have changed since they were judged last, and
    /// two calls in a row have seen them so. A file that is being written is not judged, then.
    ///
    /// The answer is `None` if there was nothing to judge. It waits for the file system.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_policy::{Policy, Reloader};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limits.toml");
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let policy = Policy::from_toml(text)?;
    /// let limiter = Arc::new(policy.builder::<(String,)>()?.build()?);
    /// let reloader = Reloader::new(&path, policy, limiter);
    /// std::fs::write(&path, text.replace("limit = 5", "limit = 50"))?;
    /// assert!(reloader.poll().is_none(), "it may be half written");
    /// assert_eq!(reloader.poll().map(|reloaded| reloaded.result()), Some("applied"));
    /// assert!(reloader.poll().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll(&self) -> Option<Reloaded> {
        let mut state = self.state();
        let read = text_of(&self.path);
        let seen = self.seen(&read, &state.policy);
        if state.judged.as_ref() == Some(&seen) {
            state.waiting = None;
            return None;
        }
        if state.waiting.as_ref() != Some(&seen) {
            state.waiting = Some(seen);
            return None;
        }
        let is_first = state.judged.is_none();
        let reloaded = self.judge(&mut state, read);
        drop(state);
        // The file that the policy in force was read from is no news.
        if is_first && matches!(reloaded, Reloaded::Unchanged) { None } else { Some(self.tell(reloaded)) }
    }

    fn judge(&self, state: &mut State, read: Result<String, LoadError>) -> Reloaded {
        // First, so that a target that panics is not asked again and again.
        state.judged = Some(self.seen(&read, &state.policy));
        state.waiting = None;
        let loaded = read.and_then(|text| Ok((Policy::of_file(&self.path, &text)?, text)));
        let (policy, text) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return Reloaded::Refused(ReloadError::Load(error)),
        };
        if policy == *state.policy {
            return Reloaded::Unchanged;
        }
        // Layers have the rules of clients that they began with.
        let is_same_client = policy.client == state.policy.client;
        let applied = if is_same_client { policy.apply(&*state.target) } else { Err(ApplyError::Client) };
        let reloaded = match (applied, &self.rebuild) {
            (Ok(()), _) => Reloaded::Applied,
            (Err(_), Some(rebuild)) => match rebuild(&policy) {
                Ok(target) => {
                    // Dropped here: to end a limiter takes as long as it has keys.
                    drop(mem::replace(&mut state.target, target));
                    Reloaded::Rebuilt
                }
                Err(error) => {
                    let (path, reason) = (self.path.clone(), error.to_string());
                    return Reloaded::Refused(ReloadError::Rebuild { path, reason });
                }
            },
            (Err(error), None) => return Reloaded::Refused(self.not_applied(&text, error)),
        };
        if !policy.lists(&self.path).eq(state.policy.lists(&self.path)) {
            // Not seen before they were read: they may have changed since, so they are judged again.
            state.judged = None;
        }
        state.policy = Arc::new(policy);
        reloaded
    }

    fn seen(&self, read: &Result<String, LoadError>, policy: &Policy) -> Seen {
        let text = match read {
            Ok(text) => Ok(text.clone()),
            Err(error) => Err(error.to_string()),
        };
        let state_of = |list: PathBuf| {
            let file = std::fs::metadata(list).ok()?;
            Some((file.len(), file.modified().ok()?))
        };
        (text, policy.lists(&self.path).map(state_of).collect())
    }

    fn not_applied(&self, text: &str, error: ApplyError) -> ReloadError {
        ReloadError::Apply { path: self.path.clone(), line: line_of(text, &error), error }
    }

    fn tell(&self, reloaded: Reloaded) -> Reloaded {
        if let Some(on_reload) = &self.on_reload {
            on_reload(&reloaded);
        }
        reloaded
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic of a target the state is what it was before, with the file judged.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("path", &self.path).finish_non_exhaustive()
    }
}
