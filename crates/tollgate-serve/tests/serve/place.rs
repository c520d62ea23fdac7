//! Where servers of tests decide: in process, or on a store.

use tollgate::MockClock;
#[cfg(feature = "redis")]
use tollgate_kit::redis::PolicyStore;
use tollgate_serve::Server;

use crate::support::{self, Running};

/// A place where servers decide.
pub(crate) struct Place {
    #[cfg(feature = "redis")]
    store: Option<PolicyStore>,
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
        Some(Self { store: Some(PolicyStore::start()?) })
    }

    /// The text of the policy there.
    #[cfg(feature = "redis")]
    pub(crate) fn policy(&self, policy: &str, more: &str) -> String {
        self.store.as_ref().map_or_else(|| policy.to_owned(), |store| store.policy(more, policy))
    }

    /// A server of this policy. A busy machine takes its time.
    pub(crate) fn server(&self, policy: &str) -> Server {
        #[cfg(feature = "redis")]
        let policy = &self.policy(policy, "");
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
        drop(self.store.take());
    }
}
