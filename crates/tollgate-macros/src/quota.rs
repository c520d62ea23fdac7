//! The quotas of a function's own limiter, as constant expressions.

use core::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, Path, Result};
use tollgate_duration::{DurationError, format_duration, parse_duration};

/// `tollgate::Quota::MAX_LIMIT`, for messages at the literal. Expansions check each quota again, in
/// a constant.
const MAX_LIMIT: u32 = 1 << 20;

/// `tollgate::Quota::MAX_WINDOW`.
const MAX_WINDOW: Duration = Duration::from_nanos((1 << 60) - 1);

/// The most quotas of one key.
const MAX_QUOTAS: usize = 8;

/// One or more quotas.
pub(crate) struct Quotas {
    quotas: Vec<Quota>,
    /// The limit, if it is a literal.
    limit: Option<u32>,
}

struct Quota {
    value: TokenStream,
    span: Span,
}

impl Quotas {
    /// The quota of `limit` and `per`.
    pub(crate) fn new(limit: &Expr, per: &Expr, tollgate: &Path) -> Result<Self> {
        let literal = match bare(limit) {
            Expr::Lit(literal) => Some(check_limit(&literal.lit)?),
            _ => None,
        };
        let span = literal.map_or_else(|| limit.span(), |_| per.span());
        let window = match bare(per) {
            Expr::Lit(literal) => {
                let window = check_window(&literal.lit)?;
                let (seconds, nanos) = (window.as_secs(), window.subsec_nanos());
                quote_spanned!(from(span)=> ::core::time::Duration::new(#seconds, #nanos))
            }
            _ => quote!(#per),
        };
        let value = quote_spanned!(from(span)=> #tollgate::Quota::new(#limit, #window));
        Ok(Self { quotas: vec![Quota { value, span }], limit: literal })
    }

    /// The quota or the quotas of `policy`.
    pub(crate) fn of_policy(policy: Expr) -> Result<Self> {
        let quotas: Vec<Expr> = match bare(&policy) {
            Expr::Lit(literal) => {
                let message = "a policy is a constant of type `tollgate::Quota`: write its path, such as \
                               `policy = LOGIN`; for a policy from a file, write `limiter = LIMITER`";
                return Err(Error::new(literal.span(), message));
            }
            Expr::Array(array) => array.elems.iter().cloned().collect(),
            _ => vec![policy.clone()],
        };
        if quotas.is_empty() || quotas.len() > MAX_QUOTAS {
            return Err(Error::new(policy.span(), format!("write at least one quota and at most {MAX_QUOTAS}")));
        }
        let quotas = quotas.into_iter().map(|quota| Quota { span: quota.span(), value: quote!(#quota) }).collect();
        Ok(Self { quotas, limit: None })
    }

    /// Reports at the literal a cost that can never be admitted.
    pub(crate) fn check_cost(&self, cost: u32, span: Span) -> Result<()> {
        match self.limit {
            Some(limit) if cost > limit => {
                Err(Error::new(span, format!("a call of cost {cost} can never be admitted: the limit is {limit}")))
            }
            _ => Ok(()),
        }
    }

    /// The number of quotas.
    pub(crate) fn count(&self) -> usize {
        self.quotas.len()
    }

    /// Items: the array `__TOLLGATE_QUOTAS`, and the constants that check each of them and the
    /// cost, if it is known.
    pub(crate) fn items(&self, cost: Option<(u32, Span)>, waits: bool, tollgate: &Path) -> TokenStream {
        let count = self.count();
        let values = self.quotas.iter().map(|quota| &quota.value);
        let mut items = quote_spanned! {from(Span::call_site())=>
            const __TOLLGATE_QUOTAS: [#tollgate::Quota; #count] = [#(#values),*];
        };
        for (at, Quota { span, .. }) in self.quotas.iter().enumerate() {
            items.extend(check(at, count, *span, waits, tollgate));
            if let Some((cost, span)) = cost {
                items.extend(quote_spanned! {from(span)=>
                    const _: () = ::core::assert!(
                        #cost <= __TOLLGATE_QUOTAS[#at].limit(),
                        "the cost is more than the limit of a quota: such a call can never be admitted"
                    );
                });
            }
        }
        items
    }
}

/// The constant that checks one of several quotas.
fn check(at: usize, count: usize, span: Span, waits: bool, tollgate: &Path) -> TokenStream {
    let alone = (count > 1).then(|| {
        quote_spanned! {from(span)=>
            ::core::assert!(
                ::core::matches!(__TOLLGATE_QUOTAS[#at].algorithm(), #tollgate::Algorithm::SlidingWindowLog),
                "several quotas on one key have to be sliding window logs: write this one alone"
            );
        }
    });
    let no_queue = (!waits).then(|| {
        quote_spanned! {from(span)=>
            ::core::assert!(
                !::core::matches!(__TOLLGATE_QUOTAS[#at].algorithm(), #tollgate::Algorithm::LeakyQueue),
                "a leaky queue tells each call how long to wait, and the attribute does not wait: \
                 write a token bucket or a leaky bucket"
            );
        }
    });
    quote_spanned! {from(span)=>
        const _: () = {
            match __TOLLGATE_QUOTAS[#at].validate() {
                ::core::result::Result::Ok(()) => {}
                ::core::result::Result::Err(#tollgate::QuotaError::ZeroLimit) => {
                    ::core::panic!("the limit is zero: write at least 1")
                }
                ::core::result::Result::Err(
                    #tollgate::QuotaError::LimitTooLarge { .. } | #tollgate::QuotaError::PastMaximum { .. },
                ) => ::core::panic!("the limit is too large for its algorithm"),
                ::core::result::Result::Err(#tollgate::QuotaError::ZeroWindow) => {
                    ::core::panic!("the window is zero: write at least one nanosecond")
                }
                ::core::result::Result::Err(#tollgate::QuotaError::WindowTooLong { .. }) => {
                    ::core::panic!("the window is too long: write at most 2^60 - 1 nanoseconds, which are 36 years")
                }
                ::core::result::Result::Err(_) => {
                    ::core::panic!("the quota is not valid: its constructor documents the allowed numbers")
                }
            }
            #no_queue
            #alone
        };
    }
}

fn check_limit(limit: &Lit) -> Result<u32> {
    let Lit::Int(number) = limit else {
        return Err(Error::new(limit.span(), "a limit is a whole number: write `limit = 5`"));
    };
    match number.base10_parse::<u32>() {
        Ok(0) => Err(Error::new(number.span(), "the limit is zero, so no call could be admitted: write at least 1")),
        Ok(limit) if limit <= MAX_LIMIT => Ok(limit),
        _ => {
            let message = format!("the limit is too large: write at most {MAX_LIMIT}, or a quantised log as `policy`");
            Err(Error::new(number.span(), message))
        }
    }
}

fn check_window(per: &Lit) -> Result<Duration> {
    const ZERO: &str = "the window is zero, so no call could be denied: write it like \"10s\"";
    check_duration(per, "window", "per = \"10s\"", ZERO)
}

/// The longest wait of a call, as an expression.
pub(crate) fn wait(wait: &Expr) -> Result<TokenStream> {
    const ZERO: &str = "a wait of zero is none: leave `wait` out";
    let place = from(wait.span());
    Ok(match bare(wait) {
        Expr::Lit(literal) => {
            let wait = check_duration(&literal.lit, "wait", "wait = \"2s\"", ZERO)?;
            let (seconds, nanos) = (wait.as_secs(), wait.subsec_nanos());
            quote_spanned!(place=> ::core::time::Duration::new(#seconds, #nanos))
        }
        _ => quote_spanned! {place=>
            {
                let wait: ::core::time::Duration = #wait;
                wait
            }
        },
    })
}

fn check_duration(literal: &Lit, name: &str, example: &str, zero: &str) -> Result<Duration> {
    let no_unit = |number: &str| Error::new(literal.span(), DurationError::NoUnit { number: number.to_owned() });
    match literal {
        Lit::Str(text) => {
            let time = parse_duration(&text.value()).map_err(|error| Error::new(text.span(), error))?;
            if time.is_zero() {
                return Err(Error::new(text.span(), zero));
            }
            if time > MAX_WINDOW {
                let message = format!("the {name} is too long: write at most \"{}\"", format_duration(MAX_WINDOW));
                return Err(Error::new(text.span(), message));
            }
            Ok(time)
        }
        Lit::Int(number) => Err(no_unit(number.base10_digits())),
        Lit::Float(number) => Err(no_unit(number.base10_digits())),
        other => Err(Error::new(other.span(), format!("a {name} is a text or a `Duration`: write `{example}`"))),
    }
}

/// The expression without parentheses, including the invisible ones of `macro_rules`.
pub(crate) fn bare(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        }
    }
}

/// The span of tokens of the expansion. Their names cannot collide with the caller's, and errors
/// point to their source.
pub(crate) fn from(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_maxima_are_those_of_the_library() {
        assert_eq!(super::MAX_LIMIT, tollgate::Quota::MAX_LIMIT);
        assert_eq!(super::MAX_WINDOW, tollgate::Quota::MAX_WINDOW);
        let quotas = |count| {
            let quotas = vec![tollgate::Quota::per_second(1); count];
            tollgate::DirectLimiter::with_quotas(&quotas, tollgate::MonotonicClock::new()).is_ok()
        };
        assert!(quotas(super::MAX_QUOTAS) && !quotas(super::MAX_QUOTAS + 1));
    }
}
