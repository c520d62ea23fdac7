//! The options of a limit.

/// The options of a limit that are the same in all frameworks, with an example of `tell_handlers`. The
/// limit has a field `shared` of type `Arc<Shared<_, L, X>>`, where `Head` and `KeyExtractor` are those
/// of the framework.
#[doc(hidden)]
#[macro_export]
macro_rules! limit_options {
    ($(#[$example:meta])* $Limit:ident, $Answer:ty, in $krate:literal for $W:ty) => {
        impl<L> $Limit<L> {
            /// A limit by this limiter, without a key yet.
            pub fn new(limiter: ::std::sync::Arc<L>) -> Self {
                let limits = $crate::middleware::Limits::new(limiter, $crate::middleware::Options::default());
                let shared = $crate::middleware::Shared::new(limits, $crate::middleware::NoKey, Default::default());
                Self { shared: ::std::sync::Arc::new(shared) }
            }
        }

        impl<L, X: KeyExtractor> $Limit<L, X> {
            /// The treatment of a request without a key; [`Missing::Reject`](crate::Missing::Reject)
            /// by default.
            pub fn on_missing(self, missing: $crate::middleware::Missing<X::Key>) -> Self {
                self.with(|shared| shared.missing = missing)
            }

            /// The cost of a request; 1 by default. A request of cost 0 is not limited. To a
            /// [concurrency limit](tollgate::Quota::concurrent), each other request is one.
            ///
            /// The answer to a request that costs more than the limit is 422, or 413 where
            /// [`unit`](Self::unit) is bytes. [`shadow`](Self::shadow) and a limiter in
            /// [shadow mode](tollgate::LimiterBuilder::shadow) let the request pass. If `cost` panics,
            /// nothing is charged.
            pub fn cost(self, cost: impl Fn(&Head<'_>) -> u32 + Send + Sync + 'static) -> Self {
                self.with(|shared| shared.settings.cost = Some(::std::sync::Arc::new(cost)))
            }

            /// The requests that are not limited; none by default. If `skip` panics, nothing is
            /// charged. [`ClientIp`](crate::ClientIp) has an example for own networks.
            pub fn skip(self, skip: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static) -> Self {
                self.with(|shared| shared.settings.skip = Some(::std::sync::Arc::new(skip)))
            }

            /// Whether CORS preflights are not limited; `false` by default.
            ///
            /// A preflight is `OPTIONS` with `Origin` and `Access-Control-Request-Method`. Any client
            /// can send such requests, so use `true` only where the service does no work for them.
            /// CORS middleware outside this one is better: it answers preflights, and pages can read
            /// denials.
            pub fn skip_preflights(self, skip: bool) -> Self {
                self.with(|shared| shared.settings.skip_preflights = skip)
            }

            /// The answers after which the permits are refunded, by their status, header fields and
            /// extensions; none by default. The permits are charged before the service works, so a
            /// client that hangs up keeps its charge.
            ///
            /// If `refund` panics, the permits are refunded. See
            /// [`refund_unanswered`](Self::refund_unanswered) for a request without an answer. On a
            /// store a task refunds them, so the answer does not wait for it, and tells what was
            /// left before.
            ///
            /// ```
            /// use std::sync::Arc;
            #[doc = concat!("use ", $krate, "::{DirectLimiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// /// A handler puts it into the extensions of an answer that is to cost nothing.
            /// #[derive(Clone)]
            /// struct Free;
            ///
            /// // Failed log-ins count, and successful ones do not.
            /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(5))?);
            #[doc = concat!("let limit = ", stringify!($Limit), "::new(limiter).refund_when(|answer| {")]
            ///     answer.status.as_u16() != 401 || answer.extensions.get::<Free>().is_some()
            /// });
            /// # let _ = limit;
            #[doc = concat!("# Ok::<(), ", $krate, "::BuildError>(())")]
            /// ```
            pub fn refund_when(self, refund: impl Fn(&$Answer) -> bool + Send + Sync + 'static) -> Self {
                self.with_answers(|on_answer| on_answer.refund_when = Some(::std::sync::Arc::new(refund)))
            }

            /// A further cost of a request, known by its answer: rows read, tokens generated. It is
            /// charged to the same keys when the answer is there, after
            /// [`refund_when`](Self::refund_when).
            ///
            /// If fewer permits are left, those are taken, and the next request is denied. The rest is
            /// not owed. So let [`cost`](Self::cost) be an estimate if answers cost much. A request
            /// without an answer keeps the charge of its `cost`.
            ///
            /// ```
            /// use std::sync::Arc;
            #[doc = concat!("use ", $krate, "::{DirectLimiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// /// A handler puts it into the extensions of its answer.
            /// #[derive(Clone)]
            /// struct Tokens(u32);
            ///
            /// let limiter = Arc::new(DirectLimiter::new(Quota::per_minute(10_000))?);
            #[doc = concat!("let limit = ", stringify!($Limit), "::new(limiter)")]
            ///     .cost_after(|answer| answer.extensions.get().map_or(0, |&Tokens(tokens)| tokens));
            /// # let _ = limit;
            #[doc = concat!("# Ok::<(), ", $krate, "::BuildError>(())")]
            /// ```
            pub fn cost_after(self, cost: impl Fn(&$Answer) -> u32 + Send + Sync + 'static) -> Self
            where
                L: $crate::middleware::AtOnce,
            {
                self.with_answers(|on_answer| on_answer.cost_after = Some(::std::sync::Arc::new(cost)))
            }

            /// How long a request over the limit waits for its permits; zero by default. (Feature
            /// `wait`.)
            ///
            /// Requests of one key wait in one line: first come, first served. A request whose permits
            /// are further away is answered at once, as any denied request, as far as the quotas tell:
            /// by a sliding counter it waits for the whole time. The answer to a request that has
            /// waited tells the permits left after the wait. A request that is cancelled leaves the
            /// line, and is charged nothing. [`max_waiters`](Self::max_waiters) bounds the lines.
            ///
            /// A request beyond those that may be in flight waits until one has ended. Nothing tells
            /// when: the first of a line looks every 5 milliseconds.
            ///
            /// The clones of a limit share the lines. Another limit with the same limiter has lines of
            /// its own. The timers are those of tokio. Each request takes an allocation.
            ///
            /// ```
            /// use std::sync::Arc;
            /// use std::time::Duration;
            #[doc = concat!("use ", $krate, "::{DirectLimiter, Quota, ", stringify!($Limit), "};")]
            ///
            /// // 10 requests a second. Others wait for at most 2 seconds: about 20 at a time.
            /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(10))?);
            #[doc = concat!("let limit = ", stringify!($Limit), "::new(limiter).wait(Duration::from_secs(2));")]
            /// # let _ = limit;
            #[doc = concat!("# Ok::<(), ", $krate, "::BuildError>(())")]
            /// ```
            #[cfg(feature = "wait")]
            pub fn wait(self, within: ::core::time::Duration) -> Self
            where
                L: $crate::middleware::AtOnce,
            {
                self.with(|shared| shared.settings.waits = ::std::sync::Arc::new(shared.settings.waits.within(within)))
            }

            /// How many requests may [wait](Self::wait) for one key, and for all keys; 100 and 10,000
            /// by default. One more over the limit is answered at once.
            #[cfg(feature = "wait")]
            pub fn max_waiters(self, of_key: usize, of_all: usize) -> Self {
                self.with(|shared| {
                    shared.settings.waits = ::std::sync::Arc::new(shared.settings.waits.max_waiters(of_key, of_all));
                })
            }

            /// Whether an admitted request gets the extension [`Admitted`](crate::Admitted), which tells
            /// handlers the permits left; `false` by default. It costs a few allocations. A request that
            /// a concurrency limit counts gets [`RequestInFlight`](crate::RequestInFlight), too, for work
            /// that outlives the answer.
            ///
            $(#[$example])*
            pub fn tell_handlers(self, tell: bool) -> Self {
                self.with_options(|options| options.left = tell)
            }

            /// Lets denied requests pass while this switch is on, also those that cost more than the
            /// limit.
            pub fn shadow(self, switch: $crate::middleware::ShadowSwitch) -> Self {
                self.with_options(|options| options.shadow = Some(switch))
            }

            /// The header fields that tell clients their limits;
            /// [`Headers::Draft11`](crate::Headers::Draft11) by default. `Retry-After` is always
            /// written.
            pub fn headers(self, headers: $crate::Headers) -> Self {
                self.with_options(|options| options.headers = headers)
            }

            /// Whether `RateLimit` shows each quota in the response to an admitted request; by default
            /// only the tightest. [`Headers::XRateLimit`](crate::Headers::XRateLimit) always shows the
            /// tightest.
            ///
            /// A list of several quotas costs an allocation.
            pub fn all_limits(self, all: bool) -> Self {
                self.with_options(|options| options.all_limits = all)
            }

            /// Whether `RateLimit-Policy`, which is the same in each answer, is only in answers to
            /// denied requests; `false` by default. An admitted request then costs less.
            pub fn policy_on_denial(self, on_denial: bool) -> Self {
                self.with_options(|options| options.policy_on_denial = on_denial)
            }

            /// The name that clients see of quotas without a
            /// [name of their own](tollgate::Quota::named); `default` by default, and `default-2` and
            /// so on inside of others without a name. If a key has several quotas, the window of each
            /// is appended, such as `default-1m`. Quotas of a joint limiter have the names of their
            /// dimensions. A name that a header field cannot hold is replaced by `dimension-1` and so
            /// on. A name that two limits of one answer have is logged, once.
            ///
            /// # Errors
            ///
            /// [`PolicyError`](crate::PolicyError) when the name is empty, longer than 32 bytes or not
            /// printable ASCII.
            pub fn name(self, name: &str) -> Result<Self, $crate::PolicyError> {
                let mut named = Ok(());
                let limit = self.with_options(|options| named = options.set_name(name));
                named.map(|()| limit)
            }

            /// The unit of permits; [`QuotaUnit::Requests`](crate::QuotaUnit::Requests) by default.
            pub fn unit(self, unit: $crate::QuotaUnit) -> Self {
                self.with_options(|options| options.unit = unit)
            }

            /// The limiter.
            #[must_use]
            pub fn limiter(&self) -> &::std::sync::Arc<L> {
                self.shared.limits.limiter()
            }

            pub(crate) fn limits(
                &self,
            ) -> &$crate::middleware::Limits<L, <$W as $crate::middleware::Middleware>::Field> {
                &self.shared.limits
            }

            fn set_refund_unanswered(self, refund: bool) -> Self {
                let refunds = refund || self.shared.settings.on_answer.is_some();
                self.with_options(|options| {
                    options.refund_unanswered = refund;
                    options.refunds = refunds;
                })
            }

            fn with_answers(self, change: impl FnOnce(&mut $crate::middleware::OnAnswer<$W>)) -> Self {
                self.with(|shared| {
                    change(::std::sync::Arc::make_mut(shared.settings.on_answer.get_or_insert_default()));
                    shared.limits = shared.limits.with(|options| options.refunds = true);
                })
            }

            fn with_options(self, change: impl FnOnce(&mut $crate::middleware::Options)) -> Self {
                self.with(|shared| shared.limits = shared.limits.with(change))
            }

            fn with(mut self, change: impl FnOnce(&mut $crate::middleware::Shared<$W, L, X>)) -> Self {
                change(::std::sync::Arc::make_mut(&mut self.shared));
                self
            }
        }

        impl<L, X: KeyExtractor> Clone for $Limit<L, X> {
            fn clone(&self) -> Self {
                Self { shared: ::std::sync::Arc::clone(&self.shared) }
            }
        }

        impl<L: ::core::fmt::Debug, X: KeyExtractor> ::core::fmt::Debug for $Limit<L, X> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($Limit)).field("limiter", self.limiter()).finish_non_exhaustive()
            }
        }

        /// ```compile_fail,E0277
        /// use std::net::IpAddr;
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{ClientIp, PolicyLimiter, ", stringify!($Limit), "};")]
        ///
        /// fn more(limiter: Arc<PolicyLimiter<(IpAddr,)>>) {
        #[doc = concat!("    let limit = ", stringify!($Limit), "::new(limiter).key((ClientIp::peer(),));")]
        ///     let _ = limit.cost_after(|_| 1);
        /// }
        /// ```
        ///
        /// ```
        /// use std::net::IpAddr;
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{ClientIp, PolicyLimiter, ", stringify!($Limit), "};")]
        ///
        /// fn refunds(limiter: Arc<PolicyLimiter<(IpAddr,)>>) {
        #[doc = concat!("    let limit = ", stringify!($Limit), "::new(limiter).key((ClientIp::peer(),));")]
        ///     let _ = limit.refund_when(|_| true);
        /// }
        /// ```
        #[cfg(all(doctest, feature = "redis"))]
        struct OnAStoreNoMoreIsCharged;
    };
}
