//! Threads that decide while the file changes, each decision checked against what was in force.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;
use tollgate::{JointLimiter, MockClock};
use tollgate_policy::{Policy, Reloader};

const THREADS: u32 = 3;
const RELOADS: usize = 100;
/// The last call that takes a permit. Every second one does.
const MOST_GRANTED: usize = 200_000;
/// More than any limit: admitted in shadow mode alone.
const TOO_MUCH: u32 = 1_000_000;

type Keys = (u32, u32);

/// The policy of this number: its limits tell the number, and every second one is in shadow mode.
fn text(number: usize) -> String {
    let shadow = number % 2 == 1;
    format!(
        "shadow = {shadow}\n\
         [[dimension]]\nname = \"user\"\nquota = [{{ limit = {}, per = \"1h\" }}, {{ limit = {}, per = \"1d\" }}]\n\
         [[dimension]]\nname = \"address\"\nquota = [{{ limit = {}, per = \"1h\" }}]\n",
        500_000 + number,
        600_000 + number,
        700_000 + number
    )
}

/// What a decision has shown.
struct Seen {
    /// The number of the last policy that was in force before the call, and of the last that was
    /// about to be when it had returned.
    between: (usize, usize),
    /// The policy of each quota, or whether shadow mode was on.
    shown: Shown,
}

enum Shown {
    Quotas(Vec<usize>),
    Shadow(bool),
}

/// Which policies are in force: between these two numbers.
#[derive(Default)]
struct Progress {
    /// This one was applied.
    done: AtomicUsize,
    /// This one is about to be applied.
    begun: AtomicUsize,
}

/// Ends the threads, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn decide(limiter: &JointLimiter<Keys, MockClock>, progress: &Progress, thread: u32, call: usize) -> Seen {
    let after = progress.done.load(Ordering::SeqCst);
    let shown = if call % 2 == 0 {
        // Far fewer than the limits, however fast the machine is. The others look.
        let status =
            if call < MOST_GRANTED { limiter.try_acquire_status((thread, 0)) } else { limiter.peek((thread, 0)) };
        let status = status.expect("both keys are there");
        assert!(status.is_admitted());
        let number = |limit: u32| usize::try_from(limit % 100_000).expect("small");
        Shown::Quotas(status.quotas().map(|quota| number(quota.limit())).collect())
    } else {
        Shown::Shadow(limiter.try_acquire_n((thread, 0), TOO_MUCH).is_ok())
    };
    Seen { between: (after, progress.begun.load(Ordering::SeqCst)), shown }
}

/// What no policy that was in force allows.
fn fault(seen: &Seen) -> Option<String> {
    let (after, before) = seen.between;
    match &seen.shown {
        Shown::Quotas(numbers) => {
            let [hour, day, address] = numbers[..] else { return Some(format!("{} quotas", numbers.len())) };
            let in_time = numbers.iter().all(|number| (after..=before).contains(number));
            (hour != day || !in_time).then(|| format!("{hour}, {day} and {address} between {after} and {before}"))
        }
        // While one is applied, either mode may be on.
        Shown::Shadow(is_on) => {
            (after == before && *is_on != (after % 2 == 1)).then(|| format!("shadow {is_on} under {after}"))
        }
    }
}

/// The decisions of a thread. They are checked as they are made: a slow machine makes any number.
#[derive(Default)]
struct Record {
    decisions: u64,
    between_reloads: u64,
    granted: u32,
    /// The first.
    fault: Option<String>,
}

impl Record {
    fn add(&mut self, seen: &Seen) {
        self.decisions += 1;
        self.between_reloads += u64::from(seen.between.0 == seen.between.1);
        self.fault = self.fault.take().or_else(|| fault(seen));
    }
}

/// Puts a text in the place of the file in one of several ways.
fn replace(folder: &Path, way: usize, text: &str) {
    let (path, new) = (folder.join("limits.toml"), folder.join("new"));
    match way % 3 {
        0 => fs::write(path, text).unwrap(),
        1 => {
            fs::write(&new, text).unwrap();
            fs::rename(new, path).unwrap();
        }
        _ => link(folder, way, text),
    }
}

#[cfg(unix)]
fn link(folder: &Path, way: usize, text: &str) {
    let (target, new) = (folder.join(format!("version-{way}")), folder.join("new"));
    fs::write(&target, text).unwrap();
    std::os::unix::fs::symlink(target, &new).unwrap();
    fs::rename(new, folder.join("limits.toml")).unwrap();
}

#[cfg(not(unix))]
fn link(folder: &Path, _: usize, text: &str) {
    fs::write(folder.join("limits.toml"), text).unwrap();
}

#[test]
fn each_request_is_decided_by_what_is_in_force() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("limits.toml");
    fs::write(&path, text(0)).unwrap();
    let policy = Policy::load(&path).unwrap();
    let limiter: Arc<JointLimiter<Keys, MockClock>> =
        Arc::new(policy.builder().unwrap().clock(MockClock::new()).build().unwrap());
    let reloader = Reloader::new(&path, policy, Arc::clone(&limiter));
    let (progress, ends) = (Progress::default(), AtomicBool::new(false));

    let threads: Vec<Record> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (limiter, progress, ends) = (&limiter, &progress, &ends);
                scope.spawn(move || {
                    let mut record = Record::default();
                    for call in (0..).take_while(|_| !ends.load(Ordering::Relaxed)) {
                        record.add(&decide(limiter, progress, thread, call));
                        record.granted += u32::from(call % 2 == 0 && call < MOST_GRANTED);
                    }
                    record
                })
            })
            .collect();
        let ending = Ends(&ends);
        for number in 1..=RELOADS {
            let whole = text(number);
            // A broken file, half of a file, and one that the limiter can't take on come between.
            for broken in [
                whole.replace("1h", "1x"),
                whole[..whole.len() / 2].to_owned(),
                whole.replace("address", "adress"),
                format!("key_cap = 5\n{whole}"),
            ] {
                replace(folder.path(), number, &broken);
                assert_eq!(reloader.reload_now().result(), "refused", "{broken}");
            }
            replace(folder.path(), number + 1, &whole);
            progress.begun.store(number, Ordering::SeqCst);
            assert!(reloader.poll().is_none());
            assert_eq!(reloader.poll().map(|reloaded| reloaded.result()), Some("applied"));
            progress.done.store(number, Ordering::SeqCst);
        }
        drop(ending);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    for (thread, record) in (0..).zip(threads) {
        assert_eq!(record.fault, None, "thread {thread}, of {} decisions", record.decisions);
        println!("{} decisions, {} of them between two reloads", record.decisions, record.between_reloads);
        // What each key has been granted has stayed.
        let status = limiter.peek((thread, 0)).unwrap();
        let user = status.quotas().next().unwrap();
        assert_eq!(user.limit() - user.remaining(), record.granted, "thread {thread}");
    }
}
