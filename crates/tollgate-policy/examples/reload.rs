//! A policy file that is edited while the service runs, well and badly.
//!
//! ```text
//! 2 requests a minute
//! raised: the policy was applied, 5 requests a minute
//! on trial: the policy was applied, no request is denied
//! broken: refused at line 4, 5 requests a minute
//! ```

use std::sync::Arc;
use std::time::Duration;

use tempfile::tempdir;
use tollgate_policy::{LoadError, OfDimension, Policy, ReloadError, Reloaded, Reloader, Watcher};

const FILE: &str = r#"
[[dimension]]
name = "user"
quota = [{ limit = 2, per = "1m" }]
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempdir()?;
    let path = folder.path().join("limits.toml");
    std::fs::write(&path, FILE)?;

    let policy = Policy::load(&path)?;
    let limiter = Arc::new(policy.builder_of::<String>("user")?.build()?);
    let target = OfDimension::new("user", Arc::clone(&limiter));
    // A service logs and counts what becomes of the file in `on_reload`.
    // `Watcher::EVERY` suits a service. This program asks after each edit.
    let watcher = Watcher::start(Reloader::new(&path, policy, target), Duration::from_secs(3600))?;
    let limit = || format!("{} requests a minute", limiter.peek("alice").limit());
    println!("{}", limit());

    let edit = |text: String| std::fs::write(&path, text).map(|()| watcher.reloader().reload_now());
    println!("raised: {}, {}", edit(FILE.replace('2', "5"))?, limit());

    let on_trial = edit(format!("shadow = true{}", FILE.replace('2', "5")))?;
    let none_is_denied = limiter.try_acquire_many(["alice"; 9]).iter().all(|decision| decision.is_admitted());
    println!("on trial: {on_trial}, {}", if none_is_denied { "no request is denied" } else { "some are denied" });

    match edit(FILE.replace("1m", "1x"))? {
        Reloaded::Refused(ReloadError::Load(LoadError::Policy { error, .. })) => {
            println!("broken: refused at line {}, {}", error.line(), limit());
        }
        other => println!("broken: {other}"),
    }
    Ok(())
}
