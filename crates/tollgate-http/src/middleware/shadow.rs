//! A switch to try a limit out.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// Lets requests pass that would be denied, as long as it is on. It can be flipped while requests
/// come; clones are the same switch.
///
/// On, all is decided and charged as ever, and then each request passes: also one without a key.
/// Requests that pass for that reason have no header fields about limits.
///
/// ```
/// use tollgate_http::middleware::ShadowSwitch;
///
/// let shadow = ShadowSwitch::on();
/// // The middleware has a clone of it. A week later: how many requests would have been denied?
/// println!("{}", shadow.overruled());
/// shadow.set(false);
/// ```
#[derive(Debug, Clone)]
pub struct ShadowSwitch {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    is_on: AtomicBool,
    overruled: AtomicU64,
}

impl ShadowSwitch {
    /// A switch that is on: nothing is denied.
    #[must_use]
    pub fn on() -> Self {
        Self { state: Arc::new(State { is_on: AtomicBool::new(true), overruled: AtomicU64::new(0) }) }
    }

    /// A switch that is off.
    #[must_use]
    pub fn off() -> Self {
        let switch = Self::on();
        switch.set(false);
        switch
    }

    /// Turns it on or off, for the requests that come from now on.
    pub fn set(&self, on: bool) {
        self.state.is_on.store(on, Ordering::Relaxed);
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state.is_on.load(Ordering::Relaxed)
    }

    /// How many requests have passed that would have been denied, or had no key.
    #[must_use]
    pub fn overruled(&self) -> u64 {
        self.state.overruled.load(Ordering::Relaxed)
    }

    /// Whether a request passes that would be denied or has no key; counts it if so. For middleware.
    #[must_use = "whether the request passes"]
    pub fn overrule(&self) -> bool {
        let is_on = self.is_on();
        if is_on {
            self.state.overruled.fetch_add(1, Ordering::Relaxed);
        }
        is_on
    }
}
