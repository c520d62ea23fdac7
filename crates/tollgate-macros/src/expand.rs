//! Expands a limited function: the same function, which asks its limiter first.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, Path, Result};

use crate::args::{Args, Cost, Key, Limits};
use crate::function::Function;
use crate::quota::{Quotas, bare, from};

/// The function with the request in front of its body.
///
/// ```text
/// fn f(..) -> R {
///     {
///         let outcome = { items; limiter.try_acquire(key) };
///         if let Err(denial) = outcome { return answer; }
///     }
///     { body }
/// }
/// ```
///
/// Names of items begin with `__tollgate`, and variables have the hygiene of the expansion. So the
/// caller's expressions mean the same here as in the body.
pub(crate) fn expand(args: &Args, function: Function) -> Result<TokenStream> {
    let here = from(Span::call_site());
    let tollgate = &args.tollgate;
    let with_one_error = match (&args.wait, &args.limits) {
        (Some((wait, place)), _) => {
            let asked = waited(args, wait, from(*place), function.is_async());
            Some((asked, quote!(::tollgate_wait::WaitError)))
        }
        (None, Limits::Store(store)) if !function.is_async() => {
            let message = "a store is asked by `.await`: make the function `async`, or decide in process by `limiter`";
            return Err(Error::new(store.span(), message));
        }
        (None, Limits::Store(_)) => Some((asked(args, &function), quote!(::tollgate_redis::AcquireError))),
        (None, Limits::Own(_) | Limits::Limiter(_)) => None,
    };
    if let Some((asked, refused)) = with_one_error {
        let by = args.on_denied.as_ref();
        let refused = Answer { refused, name: "on_denied", by, returned: function.returned() };
        let on_error = refused.tokens(function.returns_no_result(), &quote_spanned!(here=> error))?;
        let prologue = quote_spanned! {here=>
            {
                let outcome = #asked;
                if let ::core::result::Result::Err(error) = outcome {
                    return #on_error;
                }
            }
        };
        return Ok(function.with(&prologue));
    }
    let asked = asked(args, &function);
    let denied = Answer {
        refused: quote!(#tollgate::Denial),
        name: "on_denied",
        by: args.on_denied.as_ref(),
        returned: function.returned(),
    };
    let is_sure = function.returns_no_result();
    let on_denied = denied.tokens(is_sure, &quote_spanned!(here=> denial))?;
    let refusal = quote_spanned! {here=>
        if let ::core::result::Result::Err(denial) = #tollgate::Decision::into_result(decision) {
            return #on_denied;
        }
    };
    let prologue = match failure(args) {
        Failure::Never => quote_spanned! {here=> { let decision = #asked; #refusal } },
        // The constants have ruled this out.
        Failure::Impossible => quote_spanned! {here=>
            {
                let outcome = #asked;
                let decision = match outcome {
                    ::core::result::Result::Ok(decision) => decision,
                    ::core::result::Result::Err(error) => ::core::unreachable!("{error}"),
                };
                #refusal
            }
        },
        Failure::With(refused) => {
            let failed = Answer { refused, name: "on_error", by: args.on_error.as_ref(), ..denied };
            let on_error = failed.tokens(is_sure, &quote_spanned!(here=> error))?;
            quote_spanned! {here=>
                {
                    // Bound first, so that the borrows of the key have ended when the answer is
                    // made.
                    let outcome = #asked;
                    match outcome {
                        ::core::result::Result::Ok(decision) => { #refusal }
                        ::core::result::Result::Err(error) => return #on_error,
                    }
                }
            }
        }
    };
    Ok(function.with(&prologue))
}

/// The results of a request that are not decisions.
enum Failure {
    /// None: the limiter returns no `Result`.
    Never,
    /// None, but the limiter returns a `Result`.
    Impossible,
    /// An error of this type.
    With(TokenStream),
}

fn failure(args: &Args) -> Failure {
    let tollgate = &args.tollgate;
    match (&args.key, &args.cost) {
        (Key::PerDimension(_), _) => Failure::With(quote!(#tollgate::JointError)),
        (_, Cost::One) => Failure::Never,
        _ if args.can_fail() => Failure::With(quote!(#tollgate::CostExceedsLimit)),
        _ => Failure::Impossible,
    }
}

/// The expression that asks the limiter. A denial tells the quotas of the limiter.
fn asked(args: &Args, function: &Function) -> TokenStream {
    let here = from(Span::call_site());
    let Args { limits, key, cost, tollgate, .. } = args;
    let (method, cost_tokens) = match cost {
        Cost::One => (quote_spanned!(here=> try_acquire), None),
        Cost::Literal(cost, span) => (quote_spanned!(here=> try_acquire_n), Some(quote_spanned!(from(*span)=> #cost))),
        Cost::Computed(cost) => (quote_spanned!(here=> try_acquire_n), Some(typed(cost))),
    };
    let cost_tokens = cost_tokens.into_iter();
    let answer = match failure(args) {
        Failure::Never => quote!(#tollgate::Decision),
        Failure::Impossible | Failure::With(_) => quote!(::core::result::Result<#tollgate::Decision, _>),
    };
    match limits {
        Limits::Own(quotas) => {
            let known = if let Cost::Literal(cost, span) = cost { Some((*cost, *span)) } else { None };
            let mut items = quotas.items(known, false, tollgate);
            items.extend(own_limiter(quotas, key, Waits::None, tollgate));
            let key = own_key(key);
            let arguments = key.into_iter().chain(cost_tokens);
            let named = named(args, function, here);
            quote_spanned! {here=>
                {
                    #items
                    let limiter = &*__TOLLGATE_LIMITER;
                    let outcome: #answer = limiter.#method(#(#arguments),*);
                    #named
                }
            }
        }
        Limits::Limiter(limiter) => {
            let place = from(limiter.span());
            let (items, key) = callers_key(key);
            let arguments = key.into_iter().chain(cost_tokens);
            let named = named(args, function, place);
            quote_spanned! {place=>
                {
                    #items
                    let limiter = &#limiter;
                    let outcome: #answer = limiter.#method(#(#arguments),*);
                    #named
                }
            }
        }
        Limits::Store(limiter) => {
            let keys = match key {
                Key::None => None,
                Key::One(keys) | Key::PerDimension(keys) => Some(quote!(#keys)),
            };
            let arguments = keys.into_iter().chain(cost_tokens);
            quote_spanned!(from(limiter.span())=> (#limiter).#method(#(#arguments),*).await)
        }
    }
}

/// The variable `outcome`. Its denial gets the quotas of the variable `limiter`.
fn named(args: &Args, function: &Function, place: Span) -> TokenStream {
    let (tollgate, name) = (&args.tollgate, function.name());
    let named = quote_spanned!(place=> #tollgate::Decision::Denied(limiter.denied_by(#name, denial)));
    match failure(args) {
        Failure::Never => quote_spanned! {place=>
            match outcome {
                #tollgate::Decision::Denied(denial) => #named,
                outcome => outcome,
            }
        },
        Failure::Impossible | Failure::With(_) => quote_spanned! {place=>
            match outcome {
                ::core::result::Result::Ok(#tollgate::Decision::Denied(denial)) => ::core::result::Result::Ok(#named),
                outcome => outcome,
            }
        },
    }
}

/// The expression that waits for the permits.
fn waited(args: &Args, wait: &TokenStream, place: Span, is_async: bool) -> TokenStream {
    let Args { limits, key, cost, tollgate, .. } = args;
    let (known, cost) = match cost {
        Cost::One => (None, quote!(1)),
        Cost::Literal(cost, span) => (Some((*cost, *span)), quote_spanned!(from(*span)=> #cost)),
        Cost::Computed(cost) => (None, typed(cost)),
    };
    let (items, limiter, key) = match limits {
        Limits::Own(quotas) => {
            let mut items = quotas.items(known, true, tollgate);
            items.extend(own_limiter(quotas, key, if is_async { Waits::Tasks } else { Waits::Threads }, tollgate));
            let key = own_key(key).unwrap_or_else(|| quote!(()));
            (items, quote_spanned!(place=> __TOLLGATE_LIMITER), key)
        }
        // A store never waits.
        Limits::Limiter(limiter) | Limits::Store(limiter) => {
            let (items, key) = callers_key(key);
            let limiter = quote_spanned!(from(limiter.span())=> (#limiter));
            (items, limiter, key.unwrap_or_else(|| quote!(())))
        }
    };
    let acquire = quote_spanned!(place=> #limiter.acquire(#key).cost(#cost));
    let waits = if is_async {
        quote_spanned!(place=> #acquire.within(#wait).await)
    } else {
        quote_spanned!(place=> #acquire.block_within(#wait))
    };
    quote_spanned!(place=> { #items #waits })
}

/// A cost. A wrong type is reported at its place.
fn typed(cost: &Expr) -> TokenStream {
    quote_spanned! {from(cost.span())=>
        {
            let cost: ::core::primitive::u32 = #cost;
            cost
        }
    }
}

/// How the calls of a function wait.
#[derive(Clone, Copy)]
enum Waits {
    None,
    Threads,
    Tasks,
}

/// The static limiter of a function, and the type of its keys.
///
/// The type of a limiter's keys is written in its static, which cannot name the types of the
/// function's arguments. So the type is empty, and a reference to any key is a borrowed form of it.
fn own_limiter(quotas: &Quotas, key: &Key, waits: Waits, tollgate: &Path) -> TokenStream {
    let here = from(Span::call_site());
    let (items, limiter, built) = if let Key::None = key {
        let built = quote_spanned! {here=>
            #tollgate::DirectLimiter::with_quotas(&__TOLLGATE_QUOTAS, #tollgate::MonotonicClock::new())
        };
        (TokenStream::new(), quote_spanned!(here=> #tollgate::DirectLimiter), built)
    } else {
        let items = quote_spanned! {here=>
            #[derive(::core::hash::Hash)]
            enum __TollgateKey {}

            #[derive(::core::hash::Hash)]
            struct __TollgateKeyRef<'a, Q: ?::core::marker::Sized>(&'a Q);

            impl<'a, Q: ?::core::marker::Sized> ::core::borrow::Borrow<__TollgateKeyRef<'a, Q>> for __TollgateKey {
                fn borrow(&self) -> &__TollgateKeyRef<'a, Q> {
                    match *self {}
                }
            }

            // A key of a type without a hash is reported here and not by the limiter.
            fn __tollgate_key<Q: ::core::hash::Hash + ?::core::marker::Sized>(key: &Q) -> __TollgateKeyRef<'_, Q> {
                __TollgateKeyRef(key)
            }
        };
        let others = 1..quotas.count();
        let built = quote_spanned! {here=>
            #tollgate::Limiter::<__TollgateKey>::builder(__TOLLGATE_QUOTAS[0]) #(.and(__TOLLGATE_QUOTAS[#others]))* .build()
        };
        (items, quote_spanned!(here=> #tollgate::Limiter<__TollgateKey>), built)
    };
    let waiting = quote_spanned!(here=> ::tollgate_wait::WaitingLimiter::new(::std::sync::Arc::new(limiter)));
    let (limiter, value) = match waits {
        Waits::None => (limiter, quote_spanned!(here=> limiter)),
        Waits::Threads => (quote_spanned!(here=> ::tollgate_wait::WaitingLimiter<#limiter>), waiting),
        Waits::Tasks => (
            quote_spanned!(here=> ::tollgate_wait::WaitingLimiter<#limiter, ::tollgate_wait::TokioTimer>),
            quote_spanned!(here=> #waiting.timer(::tollgate_wait::TokioTimer)),
        ),
    };
    quote_spanned! {here=>
        #items
        static __TOLLGATE_LIMITER: ::std::sync::LazyLock<#limiter> = ::std::sync::LazyLock::new(|| match #built {
            ::core::result::Result::Ok(limiter) => #value,
            // The constants have ruled this out.
            ::core::result::Result::Err(error) => ::core::unreachable!("{error}"),
        });
    }
}

/// The key for the limiter of [`own_limiter`].
fn own_key(key: &Key) -> Option<TokenStream> {
    match key {
        Key::One(key) => {
            let borrowed = borrowed(key);
            Some(quote_spanned!(from(key.span())=> &__tollgate_key(#borrowed)))
        }
        Key::None | Key::PerDimension(_) => None,
    }
}

/// A reference to the value of an expression. For a tuple, a tuple of references, so that no value
/// is moved.
fn borrowed(key: &Expr) -> TokenStream {
    let place = from(key.span());
    match bare(key) {
        Expr::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(borrowed);
            quote_spanned!(place=> &(#(#elements,)*))
        }
        key => quote_spanned!(place=> &(#key)),
    }
}

/// The key for the caller's limiter, and the items that it names.
fn callers_key(key: &Key) -> (TokenStream, Option<TokenStream>) {
    match key {
        Key::None => (TokenStream::new(), None),
        Key::PerDimension(keys) => (TokenStream::new(), Some(quote!(#keys))),
        Key::One(key) => (key_by_reference(), Some(quote_spanned!(from(key.span())=> (#key).__tollgate_key()))),
    }
}

/// The trait whose method returns references as they are, and borrows all other values: the key for
/// the caller's limiter, whose keys have a type of their own.
fn key_by_reference() -> TokenStream {
    let here = from(Span::call_site());
    quote_spanned! {here=>
        trait __TollgateKey<'a, Q: ?::core::marker::Sized> {
            fn __tollgate_key(self) -> &'a Q;
        }

        impl<'a, Q: ?::core::marker::Sized> __TollgateKey<'a, Q> for &'a Q {
            fn __tollgate_key(self) -> &'a Q {
                self
            }
        }
    }
}

/// The value to return in place of the body's value.
struct Answer<'a> {
    /// The type of the denial or error.
    refused: TokenStream,
    /// The argument that makes the answer.
    name: &'static str,
    by: Option<&'a Expr>,
    /// The place of the returned type.
    returned: Span,
}

impl Answer<'_> {
    fn tokens(&self, returns_no_result: bool, value: &TokenStream) -> Result<TokenStream> {
        let Self { refused, name, by, returned } = self;
        if let Some(by) = by {
            return Ok(quote_spanned! {from(by.span())=>
                {
                    fn __tollgate_answer<R>(
                        answer: impl ::core::ops::FnOnce(#refused) -> R,
                        refused: #refused,
                    ) -> R {
                        answer(refused)
                    }
                    __tollgate_answer(#by, #value)
                }
            });
        }
        let error = refused.to_string().rsplit(':').next().unwrap_or_default().trim().to_owned();
        let (verb, argument) = match *name {
            "on_denied" => ("was denied", "on_denied = |denial| ..."),
            _ => ("can never be admitted", "on_error = |error| ..."),
        };
        let library = match error.as_str() {
            "WaitError" => "tollgate_wait",
            "AcquireError" => "tollgate_redis",
            _ => "tollgate",
        };
        let advice = format!("return `Result<T, E>` with `E: From<{library}::{error}>`, or write `{argument}`");
        if returns_no_result {
            let message = format!("this function has no `Result` to say that a call {verb}: {advice}");
            return Err(Error::new(*returned, message));
        }
        let message = format!("`{{Self}}` can't say that a call {verb}");
        let wanted = format!("an error that is made of a `{library}::{error}` is wanted");
        Ok(quote_spanned! {from(*returned)=>
            {
                #[diagnostic::on_unimplemented(message = #message, label = #wanted, note = #advice)]
                trait __TollgateAnswer {
                    fn answer(refused: #refused) -> Self;
                }

                // Its bound would be reported in place of the message.
                #[diagnostic::do_not_recommend]
                impl<T, E: ::core::convert::From<#refused>> __TollgateAnswer for ::core::result::Result<T, E> {
                    fn answer(refused: #refused) -> Self {
                        ::core::result::Result::Err(::core::convert::From::from(refused))
                    }
                }

                __TollgateAnswer::answer(#value)
            }
        })
    }
}
