//! The types of a version of `http`: how a head is read, and how answers are written.

/// The items of [`Framework`](crate::middleware::Framework) that are the same in each version of
/// `http`. `Head` has fields `method`, `uri` and `headers`.
#[doc(hidden)]
#[macro_export]
macro_rules! head_of_http {
    () => {
        type Head<'a> = Head<'a>;
        type Uri = Uri;
        type Name = HeaderName;
        type Value = HeaderValue;

        fn method<'h>(head: &'h Head<'_>) -> &'h str {
            head.method.as_str()
        }

        fn uri<'h>(head: &'h Head<'_>) -> &'h Uri {
            head.uri
        }

        fn path(uri: &Uri) -> &str {
            uri.path()
        }

        fn host<'h>(head: &'h Head<'_>) -> Option<&'h str> {
            let of_field = || head.headers.get(HOST)?.to_str().ok();
            head.uri.host().or_else(of_field)
        }

        fn name(text: &str) -> Option<HeaderName> {
            HeaderName::try_from(text).ok()
        }
    };
}

/// The items of [`Middleware`](crate::middleware::Middleware) that are the same in each version of
/// `http`, with the `Value` of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! fields_of_http {
    () => {
        type Field = Value;
        type Fields = HeaderMap;

        // The names are checked at compile time.
        const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
        const POLICIES: HeaderName = HeaderName::from_static("ratelimit-policy");
        const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
        const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
        const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

        fn field_name(name: &'static str) -> HeaderName {
            HeaderName::from_static(name)
        }

        fn get<'f>(fields: &'f HeaderMap, name: &HeaderName) -> Option<&'f HeaderValue> {
            fields.get(name)
        }

        fn insert(fields: &mut HeaderMap, name: HeaderName, Value(value): Value) {
            fields.insert(name, value);
        }
    };
}

/// What a `Rejection` with fields `problem` and `head` tells in each version of `http`.
#[doc(hidden)]
#[macro_export]
macro_rules! rejection_of_http {
    () => {
        impl<'a> Rejection<'a> {
            /// The head of the request.
            #[must_use]
            pub const fn head(&self) -> &Head<'a> {
                &self.head
            }

            /// The status code: 400, 403, 413, 422, 429, 500 or 503. [The crate](crate) tells when.
            #[must_use]
            pub fn status(&self) -> StatusCode {
                StatusCode::from_u16(self.problem.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
            }
        }

        impl<'a> ::core::ops::Deref for Rejection<'a> {
            type Target = $crate::Problem<'a>;

            fn deref(&self) -> &$crate::Problem<'a> {
                self.problem
            }
        }
    };
}
