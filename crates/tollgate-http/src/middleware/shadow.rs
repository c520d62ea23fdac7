//! [`ShadowSwitch`]: a switch to try a limit out.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// While the switch is on, requests pass that would be denied. It can be turned while requests
/// come. Clones are the same switch.
///
/// While it is on, requests are decided and charged as usual, and then each passes, even without a
/// key. Requests that pass only because of the switch have no header fields about limits.
///
/// ```
/// use tollgate_http::middleware::ShadowSwitch;
///
/// let shadow = ShadowSwitch::on();
/// // The middleware has a clone. A week later, this is the number of requests to be denied.
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
    /// A switch that is on: no request is denied.
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

    /// Turns the switch on or off for all later requests.
    pub fn set(&self, on: bool) {
        self.state.is_on.store(on, Ordering::Relaxed);
    }

    /// Whether the switch is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state.is_on.load(Ordering::Relaxed)
    }

    /// The number of requests that have passed only because of the switch.
    #[must_use]
    pub fn overruled(&self) -> u64 {
        self.state.overruled.load(Ordering::Relaxed)
    }

    /// Whether the switch is on; if so, counts a request that passes because of it. For middleware.
    #[must_use = "whether the request passes"]
    pub fn overrule(&self) -> bool {
        let is_on = self.is_on();
        if is_on {
            self.state.overruled.fetch_add(1, Ordering::Relaxed);
        }
        is_on
    }
}
