//! The charge of a handler.

/// The charge of a handler, with an example. `Fields` have a field `told`, `Rejected` has a field
/// `problem`, and `Rejected::of` makes the answer.
#[doc(hidden)]
#[macro_export]
macro_rules! handler_charge {
    ($(#[$example:meta])* $Limit:ident, in $krate:literal for $W:ty) => {
        impl<L, X: KeyExtractor> $Limit<L, X> {
            /// Charges one permit to a key that only a handler knows, such as a name in the body. The
            /// options of this limit count, but for those that need the head of a request.
            ///
            /// It charges first. [`Charge::refund`] refunds the permit, for example after a successful
            /// log-in. A client that hangs up drops the handler, and with it the charge: then the permit
            /// stays charged, so hanging up does not save it.
            ///
            /// The key of a [`DirectLimiter`](crate::DirectLimiter) is `()`. That of a
            /// [`JointLimiter`](crate::JointLimiter) is a tuple of `Option`s, with `None` for a dimension
            /// that is not asked.
            ///
            /// # Errors
            ///
            /// [`Rejected`], the answer, when the limiter denies the call.
            ///
            $(#[$example])*
            pub fn charge<K>(&self, key: K) -> Result<Charge<L, K>, Rejected>
            where
                L: $crate::middleware::AskedWith<K> + $crate::middleware::AtOnce,
            {
                self.charge_n(key, 1)
            }

            /// As [`charge`](Self::charge), with a cost. A cost of zero charges nothing.
            ///
            /// # Errors
            ///
            /// [`Rejected`] when the limiter denies the call, or `cost` is more than the limit.
            pub fn charge_n<K>(&self, key: K, cost: u32) -> Result<Charge<L, K>, Rejected>
            where
                L: $crate::middleware::AskedWith<K> + $crate::middleware::AtOnce,
            {
                let charge = self.limits().charge(key, cost);
                charge.map(|charge| Charge { charge }).map_err(|denied| self.rejected(&denied))
            }

            /// As [`charge`](Self::charge), by a limiter that may decide on a store: a
            #[doc = concat!("[`PolicyLimiter`](", $krate, "::PolicyLimiter). (Feature `redis`.)")]
            /// It waits for the answer of the store. A limiter in process decides at once.
            ///
            /// [`Charge::settle`] and [`Charge::refund`] do not wait for the store: a task settles the
            /// charge, as
            /// [`spawn_settle`](https://docs.rs/tollgate-redis/latest/tollgate_redis/struct.RedisJointLimiter.html#method.spawn_settle)
            /// does. If the store does not answer, the call stays charged what it was, and the
            /// limiter counts it as `unsettled`. A call that was admitted while the store was away
            /// is not settled.
            ///
            /// ```
            /// # #[cfg(feature = "redis")]
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// use std::sync::Arc;
            /// use tollgate_policy::Policy;
            #[doc = concat!("use ", $krate, "::{PolicyLimiter, ", stringify!($Limit), "};")]
            ///
            /// // With a `[store]` in the file, all instances share the tokens.
            /// let policy = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 1000, per = \"1m\" }]")?;
            /// let limiter = PolicyLimiter::<(String,)>::new(&policy)?;
            #[doc = concat!("let tokens = ", stringify!($Limit), "::new(Arc::new(limiter));")]
            /// let alice = || (Some("alice".to_owned()),);
            /// let estimated = tokens.charge_n_async(alice(), 300).await?;
            /// // The model has answered, in more tokens than there are.
            /// let _ = estimated.settle(1_900);
            /// assert!(tokens.charge_async(alice()).await.is_err());
            /// # Ok(())
            /// # }
            /// # #[cfg(not(feature = "redis"))]
            /// # fn main() {}
            /// ```
            ///
            /// # Errors
            ///
            /// [`Rejected`] when the limiter denies the call, or the store did not decide.
            pub async fn charge_async<K>(&self, key: K) -> Result<Charge<L, K>, Rejected>
            where
                L: $crate::middleware::AskedWith<K> + Send + Sync + 'static,
                K: Send + Sync + 'static,
            {
                self.charge_n_async(key, 1).await
            }

            /// As [`charge_async`](Self::charge_async), with a cost. A cost of zero charges
            /// nothing.
            ///
            /// # Errors
            ///
            /// As [`charge_async`](Self::charge_async), and if `cost` is more than the limit.
            pub async fn charge_n_async<K>(&self, key: K, cost: u32) -> Result<Charge<L, K>, Rejected>
            where
                L: $crate::middleware::AskedWith<K> + Send + Sync + 'static,
                K: Send + Sync + 'static,
            {
                let charge = self.limits().charge_async(key, cost).await;
                charge.map(|charge| Charge { charge }).map_err(|denied| self.rejected(&denied))
            }

            fn rejected(
                &self,
                denied: &$crate::middleware::Denied<<$W as $crate::middleware::Middleware>::Field>,
            ) -> Rejected {
                let headers = self.limits().options().headers;
                denied.answer(|problem, policies| Rejected::of(problem, policies, headers))
            }
        }

        /// The charge of a call that a handler has made by
        #[doc = concat!("[`", stringify!($Limit), "::charge`].")]
        ///
        /// If it is dropped, the permits stay charged. By a [concurrency
        /// limit](::tollgate::Quota::concurrent), the call is in flight until it is settled, kept or dropped.
        ///
        /// ```
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{Limiter, Quota, ", stringify!($Limit), "};")]
        ///
        /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(5))?);
        #[doc = concat!("let attempts = ", stringify!($Limit), "::new(Arc::clone(&limiter));")]
        /// let _ = attempts.charge("alice".to_owned())?.refund();
        /// assert_eq!(limiter.peek("alice").remaining(), 5);
        /// let _ = attempts.charge("alice".to_owned())?.keep();
        /// assert_eq!(limiter.peek("alice").remaining(), 4);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[must_use = "`refund`, `settle` or `keep` returns the header fields of the answer"]
        pub struct Charge<L: $crate::middleware::AskedWith<K>, K> {
            /// `None` if nothing was charged.
            charge: Option<$crate::middleware::Charge<L, K, <$W as $crate::middleware::Middleware>::Field>>,
        }

        impl<L: $crate::middleware::AskedWith<K>, K> Charge<L, K> {
            /// Refunds the permits. Returns the header fields of the answer.
            pub fn refund(self) -> Fields {
                self.settle(0)
            }

            /// Keeps the permits charged. Returns the header fields of the answer.
            pub fn keep(self) -> Fields {
                Fields { told: self.charge.and_then($crate::middleware::Charge::told) }
            }

            /// Charges what the call has cost in fact, and not what it was charged: what is less is
            /// refunded, and what is more is debt that the next calls wait for, as by
            /// [`Limiter::settle`](::tollgate::Limiter::settle). Returns the header fields of the answer.
            ///
            /// Does nothing for a call that was charged nothing: its cost was zero, or the limiter is
            /// in shadow mode. On a store a task does it, after
            #[doc = concat!("[`charge_async`](", stringify!($Limit), "::charge_async);")]
            /// then the fields tell what was left before, or nothing if more is charged.
            ///
            /// ```
            /// use std::sync::Arc;
            #[doc = concat!("use ", $krate, "::{Limiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(1_000))?);
            #[doc = concat!("let tokens = ", stringify!($Limit), "::new(Arc::clone(&limiter));")]
            /// let estimated = tokens.charge_n("alice".to_owned(), 300)?;
            /// // The model has answered, in more tokens than there are.
            /// let _ = estimated.settle(1_900);
            /// assert!(limiter.try_acquire("alice").is_denied());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn settle(self, actual: u32) -> Fields {
                let told = self.charge.and_then(|mut charge| {
                    charge.costs(actual);
                    charge.told()
                });
                Fields { told }
            }

            /// The header fields of the answer as of now, for a charge that is settled later: when the
            /// body of the answer ends. They tell what is left after the estimate.
            ///
            /// Move the charge into the stream of the body. A client that hangs up drops the stream, so
            /// let its end settle the charge, whichever it is:
            ///
            /// ```
            /// use std::sync::Arc;
            #[doc = concat!("use ", $krate, "::{Charge, Limiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// /// The tokens of an answer, as they go out. It is a part of the stream.
            /// struct Tokens {
            ///     sent: u32,
            ///     charge: Option<Charge<Limiter<String>, String>>,
            /// }
            ///
            /// impl Drop for Tokens {
            ///     fn drop(&mut self) {
            ///         if let Some(charge) = self.charge.take() {
            ///             // The head of the answer is gone, and its fields with it.
            ///             let _ = charge.settle(self.sent);
            ///         }
            ///     }
            /// }
            ///
            /// let limiter = Arc::new(Limiter::new(Quota::per_minute(1_000))?);
            #[doc = concat!("let tokens = ", stringify!($Limit), "::new(Arc::clone(&limiter));")]
            /// let charge = tokens.charge_n("alice".to_owned(), 300)?;
            /// let fields = charge.fields();
            /// let mut stream = Tokens { sent: 0, charge: Some(charge) };
            /// stream.sent += 20;
            /// assert_eq!(limiter.peek("alice").remaining(), 700);
            /// drop(stream);
            /// assert_eq!(limiter.peek("alice").remaining(), 980);
            /// # let _ = fields;
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn fields(&self) -> Fields {
                Fields { told: self.charge.as_ref().and_then($crate::middleware::Charge::told_now) }
            }

            /// Charges more permits to the same key: a cost that is known only now. If fewer are left,
            /// takes those; the rest is not owed, as it is by [`settle`](Self::settle).
            ///
            /// ```
            /// use std::sync::Arc;
            #[doc = concat!("use ", $krate, "::{Limiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// let limiter = Arc::new(Limiter::<String>::new(Quota::per_minute(1_000))?);
            #[doc = concat!("let tokens = ", stringify!($Limit), "::new(Arc::clone(&limiter));")]
            /// let mut charge = tokens.charge("alice".to_owned())?;
            /// charge.more(99);
            /// drop(charge);
            /// assert_eq!(limiter.peek("alice").remaining(), 900);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn more(&mut self, cost: u32)
            where
                L: $crate::middleware::AtOnce,
            {
                if let Some(charge) = &mut self.charge {
                    charge.more(cost);
                }
            }
        }

        impl<L: $crate::middleware::AskedWith<K>, K> ::core::fmt::Debug for Charge<L, K> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct("Charge").field("is_counted", &self.charge.is_some()).finish()
            }
        }

        impl Fields {
            /// Writes the fields into those of an answer.
            pub fn write_to(self, fields: &mut <$W as $crate::middleware::Middleware>::Fields) {
                if let Some(told) = self.told {
                    $crate::middleware::write_told::<$W>(fields, told);
                }
            }
        }

        impl Rejected {
            /// Why the call is denied.
            #[must_use]
            pub const fn kind(&self) -> $crate::DenialKind {
                self.problem.kind()
            }

            /// The value of `Retry-After`, in seconds; `None` if no wait helps.
            #[must_use]
            pub fn retry_after(&self) -> Option<u64> {
                self.problem.retry_after()
            }
        }

        impl ::core::fmt::Display for Rejected {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                self.problem.put_denied_call(f)
            }
        }

        impl ::core::error::Error for Rejected {}
    };
}
