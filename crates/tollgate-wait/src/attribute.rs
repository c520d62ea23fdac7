//! The calls of a function with the attribute `#[rate_limit(.., wait = "2s")]`. Its expansion names
//! these items; they are for no other use.

use core::hash::{BuildHasher as _, Hash};
use core::time::Duration;
use std::hash::RandomState;

use tollgate::{Admission, AsKey, Clock, Decision, DirectLimiter, Fingerprinter, Limiter};

use crate::blocking::{ThreadTimer, block_on};
use crate::error::WaitError;
use crate::limit::{Limit, earliest, granted};
use crate::line::Lines;
use crate::timer::Timer;

/// The lines of a function's calls, by the hashes of their keys.
#[derive(Debug)]
pub struct Calls {
    lines: Lines<u64>,
    hashes: RandomState,
}

/// A call of the function: its limiter, and its key by reference, or `()`.
#[derive(Debug)]
pub struct Call<'a, L, Q>(pub &'a L, pub Q);

impl Default for Calls {
    fn default() -> Self {
        Self { lines: Lines::new(10_000, 100_000), hashes: RandomState::new() }
    }
}

impl Calls {
    /// Waits at most so long for the permits of a call.
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits.
    pub async fn within<'a, L, Q: Hash>(
        &self,
        call: Call<'a, L, Q>,
        cost: u32,
        within: Duration,
        timer: &impl Timer,
    ) -> Result<Admission, WaitError>
    where
        Call<'a, L, Q>: Limit<Key = u64, Grant = Admission>,
    {
        if cost == 0 {
            // It is free, as without a wait.
            return call.decide(&0, 0)?.map_err(|wait| WaitError::TooLong { wait });
        }
        let line = self.hashes.hash_one(&call.1);
        self.lines.wait(&call, line, cost, within, timer).await
    }

    /// As [`within`](Self::within), in a thread that sleeps.
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits.
    pub fn block_within<'a, L, Q: Hash>(
        &self,
        call: Call<'a, L, Q>,
        cost: u32,
        within: Duration,
    ) -> Result<Admission, WaitError>
    where
        Call<'a, L, Q>: Limit<Key = u64, Grant = Admission>,
    {
        block_on(self.within(call, cost, within, &ThreadTimer))
    }
}

impl<C: Clock> Limit for Call<'_, DirectLimiter<C>, ()> {
    type Key = u64;
    type Grant = Admission;

    fn look(&self, _: &u64, cost: u32) -> Result<Decision, WaitError> {
        Ok(self.0.peek_n(cost)?.decision())
    }

    fn decide(&self, _: &u64, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.0.try_acquire_n(cost)?))
    }

    fn earliest(&self, _: &u64, permits: u64) -> Duration {
        earliest(&self.0.peek(), &self.0.quotas(), permits)
    }

    fn reading(&self) -> u64 {
        self.0.clock().now()
    }
}

impl<K, Q, C: Clock, F: Fingerprinter> Limit for Call<'_, Limiter<K, C, F>, &Q>
where
    K: Hash,
    Q: Hash,
    for<'b> &'b Q: AsKey<K>,
{
    type Key = u64;
    type Grant = Admission;

    fn look(&self, _: &u64, cost: u32) -> Result<Decision, WaitError> {
        Ok(self.0.peek_n(self.1, cost)?.decision())
    }

    fn decide(&self, _: &u64, cost: u32) -> Result<Result<Admission, Duration>, WaitError> {
        Ok(granted(self.0.try_acquire_n(self.1, cost)?))
    }

    fn earliest(&self, _: &u64, permits: u64) -> Duration {
        earliest(&self.0.peek(self.1), &self.0.quotas(), permits)
    }

    fn reading(&self) -> u64 {
        self.0.clock().now()
    }
}
