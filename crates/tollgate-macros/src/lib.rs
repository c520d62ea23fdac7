#![doc = include_str!("../README.md")]

mod args;
mod expand;
mod function;
mod quota;

use proc_macro::TokenStream;
use syn::Error;

/// Limits how often a function or a method is called.
///
/// A call asks a limiter first. If it is admitted, the body runs. If it is denied, the body does
/// not run, and the call returns `Err(denial.into())`.
///
/// ```
/// use tollgate::{Denial, rate_limit};
///
/// struct User {
///     id: u64,
/// }
///
/// #[derive(Debug)]
/// enum TransferError {
///     TooMany(Denial),
/// }
///
/// impl From<Denial> for TransferError {
///     fn from(denial: Denial) -> Self {
///         Self::TooMany(denial)
///     }
/// }
///
/// /// Five transfers in any ten seconds, for each user and currency.
/// #[rate_limit(limit = 5, per = "10s", key = (user.id, currency))]
/// async fn transfer(user: User, currency: String) -> Result<u64, TransferError> {
///     Ok(user.id)
/// }
/// # fn main() {
/// #     use std::task::{Context, Poll, Waker};
/// #     let call = || {
/// #         let call = std::pin::pin!(transfer(User { id: 7 }, "EUR".into()));
/// #         match call.poll(&mut Context::from_waker(Waker::noop())) {
/// #             Poll::Ready(result) => result,
/// #             Poll::Pending => panic!("it waits for nothing"),
/// #         }
/// #     };
/// #     assert!((0..5).all(|_| call().is_ok()));
/// #     assert!(matches!(call(), Err(TransferError::TooMany(_))));
/// # }
/// ```
///
/// It works on sync and async functions, on methods, and on functions with generics, lifetimes,
/// `where` clauses and `impl Trait` arguments. Other attributes may stand above or below it. It
/// does not change the signature.
///
/// # Arguments
/// | argument | value |
/// |---|---|
/// | `limit`, `per` | a sliding window log: at most `limit` calls in any interval as long as `per`, which is a text such as `"500ms"`, `"10s"`, `"1m"` or `"1h30m"`. Both can also be constants, a `u32` and a [`Duration`](std::time::Duration) |
/// | `policy` | in place of these: a constant [`Quota`](https://docs.rs/tollgate/latest/tollgate/struct.Quota.html) by its path, or several as `[A, B]` |
/// | `limiter` | in place of these: an expression for your own limiter |
/// | `store` | in place of these: an expression for your own [`PolicyLimiter`](#a-store), in process or on a store |
/// | `key` | an expression over the arguments; each value has a quota of its own. Without it the function has one quota |
/// | `keys` | the keys for your own `JointLimiter` or `PolicyLimiter`, as its `try_acquire` takes them |
/// | `cost` | an expression for the permits that a call takes, a `u32`; 1 by default. A cost of 0 is free. A cost that is not a literal needs [another error type](#cost) than `Denial`, such as `ReserveError` |
/// | `wait` | how long a call [waits](#waits) for its permits: a text as for `per`, or a `Duration`; no wait by default |
/// | `on_denied` | a closure or a function that makes the returned value of a [`Denial`](https://docs.rs/tollgate/latest/tollgate/struct.Denial.html) |
/// | `on_error` | the same for a call that can never be admitted |
/// | `crate` | the path of the `tollgate` crate, if it is not `::tollgate` |
///
/// # The quota
/// The compiler checks the limit and the window: a zero, an invalid window and a value past the
/// maxima of the library are compile errors.
///
/// A quota for several functions, or of another algorithm, is a constant. `policy` names it by its
/// path, so the compiler checks that it exists and is valid. Each function still counts its own
/// calls.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Denial, Quota, rate_limit};
///
/// const BURST: Quota = Quota::per_second(10);
/// const DAILY: Quota = Quota::per_day(1_000);
/// const SEARCH: Quota = Quota::token_bucket(20, 5, Duration::from_secs(1));
///
/// #[rate_limit(policy = [BURST, DAILY], key = user)]
/// fn read(user: u64) -> Result<(), Denial> {
///     Ok(())
/// }
///
/// #[rate_limit(policy = SEARCH, key = user)]
/// fn search(user: u64) -> Result<(), Denial> {
///     Ok(())
/// }
/// # assert!(read(1).is_ok() && search(1).is_ok());
/// ```
///
/// # The limiter
/// With `limit` and `per`, or `policy`, each function has one static limiter. It is made at the
/// first call. All threads share it, and so do all instances of a generic function and all values
/// that a method is called on.
///
/// With `limiter` you pass your own limiter: in a static, from a function (`limiter = limiter()`)
/// or in an argument (`limiter = self.limiter`). Several functions can share it, its quotas can
/// change, and a test can give it a `MockClock`. It can also come from a policy file:
///
/// ```
/// use std::sync::LazyLock;
/// use tollgate::{Denial, JointError, JointLimiter, rate_limit};
/// use tollgate_policy::Policy;
///
/// static LIMITER: LazyLock<JointLimiter<(u64, String)>> = LazyLock::new(|| {
///     // A service reads a file here.
///     let file = r#"
///         [[dimension]]
///         name = "user"
///         quota = [{ limit = 10, per = "1s" }, { limit = 100, per = "1m" }]
///
///         [[dimension]]
///         name = "path"
///         quota = [{ limit = 1000, per = "1s" }]
///     "#;
///     Policy::from_toml(file).unwrap().builder().unwrap().build().unwrap()
/// });
///
/// #[derive(Debug)]
/// enum Error {
///     Denied(Denial),
///     Keys(JointError),
/// }
///
/// #[rate_limit(
///     limiter = LIMITER,
///     keys = (&user, path),
///     on_denied = |denial| Err(Error::Denied(denial)),
///     on_error = |error| Err(Error::Keys(error)),
/// )]
/// fn open(user: u64, path: &str) -> Result<usize, Error> {
///     Ok(path.len())
/// }
/// # assert!(open(7, "/").is_ok());
/// ```
///
/// Several functions can share a file, each with a dimension of its own. The compiler checks the
/// field. The name of the dimension is checked when the file is read: at the first call, or at
/// start-up by `LazyLock::force(&LIMITS)`.
///
/// ```
/// use std::sync::LazyLock;
/// use tollgate::{Denial, Limiter, rate_limit};
/// use tollgate_policy::Policy;
///
/// struct Limits {
///     upload: Limiter<String>,
///     search: Limiter<String>,
/// }
///
/// static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
///     // A service reads a file here.
///     let file = r#"
///         dimension = [
///             { name = "upload", quota = [{ limit = 1, per = "1m" }] },
///             { name = "search", quota = [{ limit = 10, per = "1s" }, { limit = 100, per = "1m" }] },
///         ]
///     "#;
///     let policy = Policy::from_toml(file).unwrap();
///     let limiter = |name: &str| {
///         let dimension = policy.dimensions().iter().find(|dimension| dimension.name() == name);
///         let (first, more) = dimension.unwrap().quotas().split_first().unwrap();
///         more.iter().fold(Limiter::builder(*first), |builder, quota| builder.and(*quota)).build().unwrap()
///     };
///     Limits { upload: limiter("upload"), search: limiter("search") }
/// });
///
/// #[rate_limit(limiter = LIMITS.upload, key = user)]
/// fn upload(user: &str) -> Result<(), Denial> {
///     Ok(())
/// }
///
/// #[rate_limit(limiter = LIMITS.search, key = user)]
/// fn search(user: &str) -> Result<(), Denial> {
///     Ok(())
/// }
///
/// assert!(upload("alice").is_ok() && upload("alice").is_err());
/// assert!(search("alice").is_ok() && search("alice").is_ok());
/// ```
///
/// Without [`wait`](#waits) the attribute ignores delays, so a leaky queue as a `policy` is a compile
/// error. The attribute does not know the quotas of a `limiter`, so a leaky queue in one compiles.
/// Calls that should wait in it run at once. Use a token bucket or a leaky bucket there.
///
/// Two attributes on one function are two decisions. The lower attribute decides first, and its
/// charge stays even if the upper attribute denies the call. A `policy` of several quotas, or a
/// `JointLimiter`, makes one decision.
///
/// # Keys
/// A `key` is any expression whose type implements `Hash`. It is borrowed and not moved, so the
/// body keeps all its arguments. A tuple is one key of several values, each of which is borrowed.
/// Keys are hashed and not stored. A key of literals only is the same for each call: it is a
/// compile error.
///
/// With `limiter`, the key is a form of a key of that limiter. Pass a `String` or a `&str` to a
/// `Limiter<String>`. The parts of a tuple are then moved: clone the parts that are not `Copy`. Such
/// a key may be a literal, which tells the functions that share the limiter apart.
///
/// # Denied calls
/// - A function that returns `Result<T, E>` returns `Err(denial.into())`, so `E` has to implement
///   `From<Denial>`.
/// - Any other function needs `on_denied`. The closure can use the arguments of the function.
///
/// ```
/// use tollgate::rate_limit;
///
/// #[rate_limit(limit = 1, per = "1m", on_denied = |denial| format!("wait {:?} s", denial.retry_after_secs()))]
/// fn greet(name: &str) -> String {
///     format!("hello {name}")
/// }
///
/// assert_eq!(greet("alice"), "hello alice");
/// assert_eq!(greet("alice"), "wait Some(60) s");
/// ```
///
/// # Cost
/// The compiler checks a literal `cost` against the limit. Any other cost can be more than the
/// limit at run time, and no wait would help. Such a call is not denied, and charges nothing. It
/// returns `Err(error.into())` for a `CostExceedsLimit`, or the result of `on_error`.
///
/// So `Result<T, Denial>` does not compile with a cost such as `cost = n`. These error types do:
/// - [`ReserveError`](https://docs.rs/tollgate/latest/tollgate/enum.ReserveError.html), which every
///   error of the attribute converts into;
/// - `tollgate_http::Problem<'static>` and `tollgate_actix::Denied`, in an HTTP handler;
/// - a type of yours with `From<Denial>` and `From<CostExceedsLimit>`.
///
/// With a `limiter`, a literal cost can be more than the limit as well. With `keys` the error is a
/// `JointError`, which converts into a `ReserveError`, too.
///
/// ```
/// use tollgate::{CostExceedsLimit, Denial, ReserveError, rate_limit};
///
/// // Both errors convert into a `ReserveError`.
/// #[rate_limit(limit = 1_000, per = "1m", cost = rows.len() as u32)]
/// fn insert(rows: &[u64]) -> Result<(), ReserveError> {
///     Ok(())
/// }
///
/// assert!(insert(&[1; 1_000]).is_ok());
/// assert!(matches!(insert(&[1]), Err(ReserveError::Denied(_))));
/// assert!(matches!(insert(&[1; 1_001]), Err(ReserveError::CostExceedsLimit(_))));
/// ```
///
/// # Async functions
/// A call is charged when its future is polled for the first time. A future that is dropped before
/// that charges nothing. If it is dropped later, the charge stays: otherwise a client could call
/// for free by disconnecting.
///
/// It works on functions inside `#[async_trait]`, too.
///
/// # Waits
/// With `wait = "2s"`, a call over the limit waits for its permits for up to so long: first come,
/// first served, for each key. A call that would wait for longer fails at once, as far as the quota
/// tells. An async function waits as a task does; any other function blocks its thread. A future
/// that is dropped while it waits is charged nothing. At most 10,000 calls wait for one key, and
/// 100,000 for all keys.
///
/// This needs the crate [`tollgate-wait`](https://docs.rs/tollgate-wait) beside `tollgate`, and for
/// async functions its feature `tokio`: the timers are those of tokio. The error is a
/// `tollgate_wait::WaitError`, also for `on_denied`, so `E` has to implement `From<WaitError>`.
/// There is no `on_error`.
///
/// ```sh
/// cargo add tollgate-wait --features tokio
/// ```
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tollgate_wait::WaitError> {
/// use tollgate::rate_limit;
/// use tollgate_wait::WaitError;
///
/// #[rate_limit(limit = 100, per = "1s", key = host, wait = "2s")]
/// async fn fetch(host: &str, page: u32) -> Result<String, WaitError> {
///     Ok(format!("https://{host}/{page}"))
/// }
///
/// assert_eq!(fetch("example.org", 7).await?, "https://example.org/7");
/// # Ok(())
/// # }
/// ```
///
/// A `limiter` is then a `tollgate_wait::WaitingLimiter`, with the timer that you choose. The key is
/// passed as without a wait: `key = host`.
///
/// # A store
/// With `store`, the limiter is a `tollgate_redis::PolicyLimiter`. Its policy file says where calls
/// are decided: in process, or on a Redis or Valkey server that several nodes share. The code is the
/// same. This needs the crate [`tollgate-redis`](https://docs.rs/tollgate-redis) beside `tollgate`:
///
/// ```sh
/// cargo add tollgate-redis --features policy
/// ```
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::sync::LazyLock;
/// use tollgate::rate_limit;
/// use tollgate_policy::Policy;
/// use tollgate_redis::{AcquireError, PolicyLimiter};
///
/// static LIMITER: LazyLock<PolicyLimiter<(String,)>> = LazyLock::new(|| {
///     // A service reads a file here. With a `[store]`, all nodes share the limit.
///     let file = r#"
///         [[dimension]]
///         name = "user"
///         quota = [{ limit = 1, per = "1m" }]
///     "#;
///     PolicyLimiter::new(&Policy::from_toml(file).unwrap()).unwrap()
/// });
///
/// #[rate_limit(store = LIMITER, keys = (user,))]
/// async fn search(user: &str) -> Result<String, AcquireError> {
///     Ok(format!("results for {user}"))
/// }
///
/// assert!(search("alice").await.is_ok());
/// assert_eq!(search("alice").await.unwrap_err().retry_after_secs(), Some(60));
/// # }
/// ```
///
/// A store is asked by `.await`, so any other function than an async one is a compile error. The
/// keys are `tollgate_redis::StoreKey`s, which all nodes write alike. The error is a
/// `tollgate_redis::AcquireError`, also for `on_denied`, so `E` has to implement
/// `From<AcquireError>`. There is no `on_error`, and no `wait`. While the store is away, calls fail,
/// pass, or are decided by a share of the limits, as the policy says. A future that is dropped while
/// it waits for the store may have been charged.
///
/// # HTTP handlers
/// On a handler, the denial becomes the same answer as from the project's middleware: the same
/// status, `Retry-After` and problem details (RFC 9457).
///
/// | framework | error of the handler, alone or as a part of yours | in a handler that returns a response |
/// |---|---|---|
/// | axum | [`tollgate_http::Problem<'static>`](https://docs.rs/tollgate-http), feature `axum` | `on_denied = \|denial\| Problem::from(denial).into_response()` |
/// | actix-web | [`tollgate_actix::Denied`](https://docs.rs/tollgate-actix) | `on_denied = \|denial\| Denied::from(denial).error_response()` |
///
/// With `store` both types take an `AcquireError` as well, with their feature `redis`. Both have
/// compiled examples. Attributes above and below (`#[axum::debug_handler]`,
/// `#[get("/")]`) stay as they are.
///
/// The answer shows the limit that denied the call, in `RateLimit-Policy`, `RateLimit` and
/// `violated-policies`, beside those of layers outside. Its name is that of the function, unless the
/// quota or its dimension has a name. `r` is 0, also where a call of a smaller cost would pass. An
/// admitted call adds no fields. A denial shows no limit with `store` or `wait`, nor where keys have
/// tiers or quotas of their own.
///
/// # Panics
/// The expansion does not panic. The limiter of the function itself is made of checked constants.
#[proc_macro_attribute]
pub fn rate_limit(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let unlimited = item.clone();
    let limited = syn::parse(item).and_then(|function| expand::expand(&syn::parse(arguments)?, function));
    limited.map_or_else(|error| refuse(&error, unlimited), TokenStream::from)
}

/// The error messages, and the unchanged function, so that the compiler adds no others.
fn refuse(error: &Error, unlimited: TokenStream) -> TokenStream {
    let mut tokens = TokenStream::from(error.to_compile_error());
    tokens.extend(unlimited);
    tokens
}
