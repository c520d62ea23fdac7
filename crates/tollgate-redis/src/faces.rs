//! What both limiters and both builders have in the same way: a macro writes it for each.

/// The methods of a limiter with a field `engine`, and of its builder with a field `settings`.
macro_rules! limiter_face {
    ($Limiter:ident, $Builder:ident) => {
        impl $Limiter {
            /// Ends the request in flight of a [token](crate::InFlight::into_token), which may have
            /// entered by another process. Returns whether it was in flight.
            ///
            /// ```
            #[doc = concat!("use tollgate_redis::{", stringify!($Limiter), ", StoreError};")]
            ///
            /// async fn job_is_done(
            #[doc = concat!("    limiter: &", stringify!($Limiter), ",")]
            ///     token: &str,
            /// ) -> Result<(), StoreError> {
            ///     if !limiter.release(token).await? {
            ///         println!("it took too long, or is released already");
            ///     }
            ///     Ok(())
            /// }
            /// ```
            ///
            /// # Errors
            ///
            /// [`StoreError`] if the store did not answer. The request may have ended.
            pub async fn release(&self, token: &str) -> Result<bool, StoreError> {
                self.engine.release(token).await
            }

            /// Settles a receipt as [`settle`](Self::settle) does, in a task of its own: for code that
            /// cannot wait, such as `Drop`. What becomes of it is told by [`StoreCounts::unsettled`]
            /// alone.
            ///
            /// ```
            #[doc = concat!("use tollgate_redis::{Receipt, ", stringify!($Limiter), "};")]
            ///
            /// struct Streaming<'a> {
            #[doc = concat!("    limiter: &'a ", stringify!($Limiter), ",")]
            ///     receipt: Option<Receipt>,
            ///     tokens: u32,
            /// }
            ///
            /// impl Drop for Streaming<'_> {
            ///     /// The answer has ended, or the client has hung up.
            ///     fn drop(&mut self) {
            ///         if let Some(receipt) = self.receipt.take() {
            ///             let _ = self.limiter.spawn_settle(receipt, self.tokens);
            ///         }
            ///     }
            /// }
            /// ```
            ///
            /// # Errors
            ///
            /// [`StoreError::OtherLimiter`] if the receipt is of another limiter. Outside of a tokio
            /// runtime the receipt is not settled, and counted as such.
            pub fn spawn_settle(&self, receipt: Receipt, actual: u32) -> Result<(), StoreError> {
                self.engine.spawn_settle(receipt, actual)
            }

            #[doc = concat!("Ends all [leases](", stringify!($Builder), "::lease) and gives back what they")]
            /// have left, for a service that stops. Returns how many permits. Without it they count until
            /// their window is over.
            ///
            /// ```
            #[doc = concat!("use tollgate_redis::{", stringify!($Limiter), ", StoreError};")]
            ///
            #[doc = concat!("async fn stop(limiter: &", stringify!($Limiter), ") -> Result<(), StoreError> {")]
            ///     let permits = limiter.give_back_leases().await?;
            ///     println!("{permits} permits are free for the other nodes");
            ///     Ok(())
            /// }
            /// ```
            ///
            /// # Errors
            ///
            /// [`StoreError`] if the store did not answer; the other leases stay as they are then. It
            /// makes a call for each lease, one after another.
            pub async fn give_back_leases(&self) -> Result<u32, StoreError> {
                self.engine.give_back_all().await
            }

            /// The numbers of requests by what became of them.
            #[must_use]
            pub fn counts(&self) -> StoreCounts {
                self.engine.counters.read()
            }
        }

        impl $Builder {
            /// Keeps denials in so many slots, and denies by them without a round trip, as long as it
            /// is certain that the store would deny: until shortly before the wait is over, for costs
            /// at least as large. None if it is not set.
            ///
            /// After a refund, a forgotten key or a loss of data elsewhere, requests may be denied for
            /// longer. Never more are admitted.
            pub fn cache_denials(mut self, slots: usize) -> Self {
                self.settings.cached_denials = slots;
                self
            }

            /// What to do with requests that the store does not decide: an error if it is not set.
            pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
                self.settings.on_failure = on_failure;
                self
            }
        }
    };
}

pub(crate) use limiter_face;
