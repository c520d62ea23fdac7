//! The trait of a key, and the extractors.

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

/// The extractors that name the types of a framework, whose heads are `Head`. The text before them is
/// that of `ClientIp`.
#[doc(hidden)]
#[macro_export]
macro_rules! extractors {
    ($(#[$clients:meta])* $HeaderName:ty, $Limit:ident, in $krate:literal for $W:ty) => {
        $(#[$clients])*
        ///
        /// Own networks and `/health` are not limited:
        ///
        /// ```
        /// use std::net::IpAddr;
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{ClientIp, Limiter, Quota, ", stringify!($Limit), ", TrustedProxies};")]
        ///
        /// let (clients, own) = (ClientIp::peer(), TrustedProxies::new(["10.0.0.0/8", "2001:db8:7::/48"])?);
        /// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(60))?);
        #[doc = concat!("let limit = ", stringify!($Limit), "::new(limiter)")]
        ///     .key(clients.clone())
        ///     .skip(move |head| {
        ///         let is_own = clients.address(head).is_ok_and(|address| own.contains(address));
        ///         is_own || head.uri.path() == "/health"
        ///     });
        /// # let _ = limit;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// The rules of a policy file, which `tollgate serve` and `tollgate replay` take clients by, too:
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::ClientIp;")]
        /// use tollgate_policy::Policy;
        ///
        /// let policy = Policy::from_toml(r#"
        ///     [client]
        ///     trusted_proxies = ["10.0.0.0/8"]
        ///
        ///     [[dimension]]
        ///     name = "client"
        ///     quota = [{ limit = 5, per = "1m" }]
        /// "#)?;
        /// let clients = ClientIp::new(policy.client().clone());
        /// # let _ = clients;
        /// # Ok::<(), tollgate_policy::PolicyError>(())
        /// ```
        pub type ClientIp = $crate::middleware::ClientIp<$W>;

        /// The keys of a request as a policy file names them: its fields, rules, matches and tiers.
        /// [`PolicyKey`](tollgate_http::middleware::PolicyKey) has the rules. (Feature `policy`.)
        ///
        /// ```
        /// use std::sync::Arc;
        /// use tollgate_policy::Policy;
        #[doc = concat!("use ", $krate, "::{PolicyKey, ", stringify!($Limit), "};")]
        ///
        /// let policy = Policy::from_toml(r#"
        ///     [[rule]]
        ///     match = { path = "/health" }
        ///     action = "admit"
        ///
        ///     [[dimension]]
        ///     name = "tenant"
        ///     quota = [{ limit = 100, per = "1m" }]
        ///     tier_by = "header.x-plan"
        ///
        ///     [[dimension.tier]]
        ///     name = "premium"
        ///     quota = [{ limit = 1000, per = "1m" }]
        /// "#)?;
        /// let limiter = policy.request_limiter()?;
        /// let key = PolicyKey::new(&limiter).field("tenant", |head| {
        ///     let host = head.headers.get("host")?.to_str().ok()?;
        ///     host.split('.').next().map(str::to_owned)
        /// });
        #[doc = concat!("let limit = ", stringify!($Limit), "::new(Arc::clone(limiter.limiter())).key(key);")]
        /// # let _ = limit;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[cfg(feature = "policy")]
        pub type PolicyKey = $crate::middleware::PolicyKey<$W>;

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
