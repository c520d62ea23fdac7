//! What users of each framework write in the same way: the options of a limit, the charge of a
//! handler, and the trait of a key. A macro writes it for the types of a crate.

/// The trait `KeyExtractor` of a framework, whose heads are `Head`.
#[doc(hidden)]
#[macro_export]
macro_rules! key_extractor {
    ($(#[$about:meta])* in $krate:literal for $W:ty) => {
        $(#[$about])*
        #[diagnostic::on_unimplemented(
            message = "`{Self}` does not extract a key",
            label = "not an extractor",
            note = "write a closure as `.key(from_head(|head| ..))`; other extractors are `ClientIp`, \
                    `header(..)`, `extension(..)` and tuples of extractors"
        )]
        pub trait KeyExtractor: Send + Sync {
            /// The key.
            type Key: ::core::hash::Hash + Clone;

            /// The key of the request with this head.
            ///
            /// # Errors
            ///
            /// [`KeyError`](crate::KeyError) when there is no key. [`Missing`](crate::Missing) is the
            /// treatment of such requests.
            fn extract(&self, head: &Head<'_>) -> Result<Self::Key, $crate::middleware::KeyError>;

            /// Words for the key, which follow "The request needs". The answer to a request with 400
            /// has them. Without words, as by default, the answer does not tell which key is missing.
            ///
            /// Words never hold a part of a request.
            ///
            /// ```
            #[doc = concat!("use ", $krate, "::{KeyExtractor, header};")]
            ///
            /// assert_eq!(header("x-api-key").wants().as_deref(), Some("the header field x-api-key"));
            /// ```
            fn wants(&self) -> Option<::std::borrow::Cow<'_, str>> {
                None
            }

            /// Words for the key, or for the part of it, that has this error in this head.
            #[doc(hidden)]
            fn lacks(&self, _: &Head<'_>, _: $crate::middleware::KeyError) -> Option<::std::borrow::Cow<'_, str>> {
                self.wants()
            }

            /// The same extractor, with its own treatment of a missing key. It comes before that of
            /// the limit.
            ///
            /// ```
            #[doc = concat!("use ", $krate, "::{ClientIp, KeyExtractor, Missing, extension};")]
            ///
            /// #[derive(Clone)]
            /// struct User(u64);
            ///
            /// // Over a joint limiter: without a user, only the address is asked.
            /// let user = extension(|user: &User| user.0).on_missing(Missing::Skip);
            /// let key = (user, ClientIp::peer());
            /// # let _ = key;
            /// ```
            fn on_missing(
                self,
                missing: $crate::middleware::Missing<Self::Key>,
            ) -> $crate::middleware::OnMissing<Self, Self::Key>
            where
                Self: Sized,
            {
                $crate::middleware::OnMissing::new(self, missing)
            }
        }

        impl<X: $crate::middleware::Extractor<$W>> KeyExtractor for X {
            type Key = X::Key;

            fn extract(&self, head: &Head<'_>) -> Result<X::Key, $crate::middleware::KeyError> {
                $crate::middleware::Extractor::extract(self, head)
            }

            fn wants(&self) -> Option<::std::borrow::Cow<'_, str>> {
                $crate::middleware::Extractor::wants(self)
            }

            fn lacks(&self, head: &Head<'_>, error: $crate::middleware::KeyError) -> Option<::std::borrow::Cow<'_, str>> {
                $crate::middleware::Extractor::lacks(self, head, error)
            }
        }

        impl<X: KeyExtractor + ?Sized> $crate::middleware::Extracts<X> for $W {
            type Key = X::Key;

            fn extract(extractor: &X, head: &Head<'_>) -> Result<X::Key, $crate::middleware::KeyError> {
                extractor.extract(head)
            }

            fn wants(extractor: &X) -> Option<::std::borrow::Cow<'_, str>> {
                extractor.wants()
            }

            fn lacks<'x>(
                extractor: &'x X,
                head: &Head<'_>,
                error: $crate::middleware::KeyError,
            ) -> Option<::std::borrow::Cow<'x, str>> {
                extractor.lacks(head, error)
            }
        }
    };
}

/// The extractors that name the types of a framework, whose heads are `Head`.
#[doc(hidden)]
#[macro_export]
macro_rules! extractors {
    ($HeaderName:ty, $Limit:ident, in $krate:literal for $W:ty) => {
        /// The key of a [`path`](crate::path).
        pub type PathKey = $crate::middleware::PathKey<$W>;

        /// The text of a header field. [`header`] makes it.
        pub type Header = $crate::middleware::Header<$HeaderName>;

        /// The text of the header field with this name, such as an API key. It is a key of a
        /// `Limiter<String>`.
        ///
        /// **A client can invent such keys, and each has a quota of its own.** Use it for keys that
        /// outer middleware has checked, or together with the client's address: as another dimension
        /// of a [`JointLimiter`](tollgate::JointLimiter), not in a tuple for one key.
        ///
        /// A request is rejected with 400 if the field comes twice, is not UTF-8, or is longer than
        /// [`MAX_BYTES`](tollgate_http::middleware::Header::MAX_BYTES). Without the field, or if it is
        /// empty, the key is [not sent](crate::KeyError::not_sent). The answers name the field. The
        /// text costs an allocation.
        ///
        /// # Panics
        ///
        /// If no field can have this name, such as `"x api key"`. A name from a configuration is better
        /// parsed as a `HeaderName` first, which is accepted as well.
        ///
        /// ```
        /// use std::net::IpAddr;
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{ClientIp, JointLimiter, Quota, ", stringify!($Limit), ", header};")]
        ///
        /// let limiter = JointLimiter::<(String, IpAddr)>::builder()
        ///     .dimension("key", [Quota::per_minute(100)])
        ///     .dimension("address", [Quota::per_minute(300)])
        ///     .build()?;
        #[doc = concat!("let limit = ", stringify!($Limit), "::new(Arc::new(limiter));")]
        /// let limit = limit.key((header("x-api-key"), ClientIp::peer()));
        /// # let _ = limit;
        #[doc = concat!("# Ok::<(), ", $krate, "::BuildError>(())")]
        /// ```
        #[must_use]
        #[track_caller]
        pub fn header(name: impl TryInto<$HeaderName, Error: ::core::fmt::Display>) -> Header {
            match name.try_into() {
                Ok(name) => Header::new(name),
                Err(error) => panic!("no header field can have this name: {error}"),
            }
        }

        /// The key that a function returns for the head.
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::{KeyError, from_head};")]
        ///
        /// let tenant = from_head(|head| {
        ///     let tenant = head.uri.path().strip_prefix("/tenants/").ok_or(KeyError::not_sent())?;
        ///     tenant.parse::<u32>().map_err(|_| KeyError::malformed())
        /// });
        /// // "The request needs the number of a tenant in the path."
        /// let tenant = tenant.naming("the number of a tenant in the path");
        /// # let _ = tenant;
        /// ```
        pub const fn from_head<T, K>(function: T) -> $crate::middleware::FromHead<T>
        where
            T: Fn(&Head<'_>) -> Result<K, $crate::middleware::KeyError> + Send + Sync,
            K: ::core::hash::Hash + Clone,
        {
            $crate::middleware::FromHead::new(function)
        }
    };
}

/// The options of a limit that are the same in all frameworks. The limit has a field `shared` of
/// type `Arc<Shared<_, L, X>>`, where `Head` and `KeyExtractor` are those of the framework.
#[doc(hidden)]
#[macro_export]
macro_rules! limit_options {
    ($Limit:ident, $Answer:ty, in $krate:literal for $W:ty) => {
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
    };
}

/// The charge of a handler. `Fields` have a field `told`, `Rejected` has a field `problem`, and
/// `Rejected::of` makes the answer.
#[doc(hidden)]
#[macro_export]
macro_rules! handler_charge {
    ($Limit:ident, in $krate:literal for $W:ty) => {
        impl<L, X: KeyExtractor> $Limit<L, X> {
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
