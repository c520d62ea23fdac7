//! Where servers of tests decide: in process, or on a store.

use tollgate::MockClock;
use tollgate_serve::Server;

use crate::support::{self, Running};

/// A place where servers decide.
pub(crate) struct Place {
    #[cfg(feature = "redis")]
    store: Option<OnStore>,
}

/// A server of Redis, and the secret of those who ask it.
#[cfg(feature = "redis")]
struct OnStore {
    redis: tollgate_kit::redis::Server,
    folder: tempfile::TempDir,
}

/// Plays a test in process, and then on a store, if this machine has one.
pub(crate) fn by_both(test: impl Fn(&Place)) {
    test(&Place::in_process());
    #[cfg(feature = "redis")]
    if let Some(place) = Place::on_store() {
        // Shown if the test fails.
        println!("in process it went well, now on a store");
        test(&place);
    }
}

impl Place {
    pub(crate) fn in_process() -> Self {
        Self {
            #[cfg(feature = "redis")]
            store: None,
        }
    }

    /// A store of its own; `None`, and a loud line, if there is no program for it.
    #[cfg(feature = "redis")]
    pub(crate) fn on_store() -> Option<Self> {
        let redis = tollgate_kit::redis::Server::start(&[])?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "the secret of all nodes\n").unwrap();
        Some(Self { store: Some(OnStore { redis, folder }) })
    }

    /// The text of the policy there.
    #[cfg(feature = "redis")]
    pub(crate) fn policy(&self, policy: &str, more: &str) -> String {
        let Some(OnStore { redis, folder }) = &self.store else { return policy.to_owned() };
        let (url, secret) = (redis.address(), folder.path().join("secret"));
        let secret = secret.display();
        format!("[store]\nurl = \"{url}\"\nsecret = {{ file = \"{secret}\" }}\n{more}\n{policy}")
    }

    /// A server of this policy. A busy machine takes its time.
    pub(crate) fn server(&self, policy: &str) -> Server {
        #[cfg(feature = "redis")]
        let policy = &self.policy(policy, "timeout = \"20s\"");
        support::server(policy)
    }

    pub(crate) fn of(&self, policy: &str) -> Running {
        Running::start(self.server(policy))
    }

    /// A clock that stands still, at a time that a store may have.
    pub(crate) fn clock(&self) -> MockClock {
        let clock = MockClock::new();
        clock.set(1_800_000_000_000_000_000);
        clock
    }

    /// The server of Redis ends.
    #[cfg(feature = "redis")]
    pub(crate) fn goes_away(&mut self) {
        if let Some(OnStore { redis, folder }) = self.store.take() {
            drop(redis);
            drop(folder);
        }
    }
}
