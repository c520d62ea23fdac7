//! The thread that looks at the file. Tests wait for what it tells, as long as that takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_policy::{Policy, Reloader, Watcher};

use crate::reload::folder::{Folder, text};

const EVERY: Duration = Duration::from_millis(1);
/// So that a watch that has ended fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reloader of the folder's file.
fn reloader(folder: &Folder) -> Reloader {
    Reloader::new(folder.path(), text(1).parse::<Policy>().unwrap(), Arc::clone(&folder.limiter))
}

#[test]
fn a_panic_of_the_program_does_not_end_the_watch() {
    let (folder, _) = Folder::new();
    let (tell, told) = channel();
    let calls = AtomicUsize::new(0);
    let reloader = reloader(&folder).on_reload(move |reloaded| {
        let _ = tell.send(reloaded.result());
        assert!(calls.fetch_add(1, Ordering::Relaxed) != 0, "the first call panics");
    });
    let watcher = Watcher::start(reloader, EVERY).unwrap();
    folder.replace(text(2));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "applied");
    folder.replace("no policy");
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "refused");
    folder.replace(text(3));
    assert_eq!((told.recv_timeout(PATIENCE).unwrap(), folder.limits()), ("applied", vec![3, 6]));
    drop(watcher);
    assert!(told.recv().is_err(), "the thread has ended, and its callback with it");
}

#[test]
fn nothing_is_applied_after_the_watcher_was_dropped() {
    let (folder, _) = Folder::new();
    let shared = Arc::new(reloader(&folder));
    let watcher = Watcher::start(Arc::clone(&shared), Duration::from_secs(3600)).unwrap();
    assert_eq!(Arc::strong_count(&shared), 3);
    // It does not wait for an hour.
    drop(watcher);
    assert_eq!(Arc::strong_count(&shared), 1, "the thread has ended");
    folder.replace(text(2));
    assert_eq!(folder.limits(), [1, 2]);
    assert_eq!((shared.reload_now().result(), folder.limits()), ("applied", vec![2, 4]), "by hand it goes on");
}

#[test]
fn a_callback_may_reload_and_may_drop_the_watcher() {
    let (folder, _) = Folder::new();
    let watcher: Arc<Mutex<Option<Watcher>>> = Arc::default();
    let (tell, told) = channel();
    let its_own = Arc::clone(&watcher);
    let reloader = reloader(&folder).on_reload(move |reloaded| {
        if reloaded.result() == "applied" {
            let watcher = its_own.lock().unwrap().take().expect("it is there before the file changes");
            let result = watcher.reloader().reload_now().result();
            drop(watcher);
            let _ = tell.send(result);
        }
    });
    *watcher.lock().unwrap() = Some(Watcher::start(reloader, EVERY).unwrap());
    folder.replace(text(2));
    assert_eq!((told.recv_timeout(PATIENCE).unwrap(), folder.limits()), ("unchanged", vec![2, 4]));
}
