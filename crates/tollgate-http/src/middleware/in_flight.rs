//! [`RequestInFlight`]: the place of an admitted request in a concurrency limit.

use core::fmt;
use std::sync::Arc;

/// An admitted request of a limiter with a [concurrency limit](tollgate::Quota::concurrent). While it
/// or a clone of it lives, the request is in flight.
///
/// Middleware keeps it in the body of the response. The option `tell_handlers` of middleware puts a
/// clone into the request's extensions, for work that outlives the response: a task, or a connection
/// after an upgrade.
///
/// ```
/// use tollgate_http::middleware::RequestInFlight;
///
/// /// A handler starts a task. The request is in flight until the task has ended.
/// fn start(in_flight: RequestInFlight) {
///     std::thread::spawn(move || {
///         println!("the work");
///         drop(in_flight);
///     });
/// }
/// # let _ = start;
/// ```
#[derive(Clone)]
pub struct RequestInFlight {
    // A thin pointer: bodies without a limit have room for it, too.
    _guard: Arc<Guard>,
}

/// The guard of a limiter whose type the body of a response does not know.
struct Guard {
    _in_flight: Box<dyn Send + Sync>,
}

impl RequestInFlight {
    /// Of a guard, in process or on a store.
    pub(super) fn new(in_flight: impl Send + Sync + 'static) -> Self {
        Self { _guard: Arc::new(Guard { _in_flight: Box::new(in_flight) }) }
    }
}

impl fmt::Debug for RequestInFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestInFlight").finish_non_exhaustive()
    }
}
