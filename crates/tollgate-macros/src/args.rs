//! The arguments of the attribute.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, Lit, LitInt, Path, Result, Token};

use crate::quota::{self, Quotas};

/// The names of the arguments, for the message about an unknown argument.
const NAMES: &str = "`limit` and `per`, `policy`, `limiter`, `store`, `key`, `keys`, `cost`, `wait`, \
                     `on_denied`, `on_error`, `crate`";

const NO_QUOTA: &str = "no quota: write `limit = 5, per = \"10s\"`, or `policy = QUOTA` with a constant \
                        `tollgate::Quota`, or `limiter = LIMITER` with a limiter of yours";

/// The arguments, checked as far as possible without types.
pub(crate) struct Args {
    pub(crate) limits: Limits,
    pub(crate) key: Key,
    pub(crate) cost: Cost,
    /// How long a call waits for its permits: an expression, with the place of its errors.
    pub(crate) wait: Option<(TokenStream, Span)>,
    pub(crate) on_denied: Option<Expr>,
    pub(crate) on_error: Option<Expr>,
    /// The path of the tollgate crate.
    pub(crate) tollgate: Path,
}

/// The source of the limit.
pub(crate) enum Limits {
    /// The function's own limiter.
    Own(Quotas),
    /// The caller's limiter.
    Limiter(Expr),
    /// The caller's limiter of a policy, in process or on a store.
    Store(Expr),
}

pub(crate) enum Key {
    /// One quota for the function.
    None,
    /// A quota for each value of this expression.
    One(Expr),
    /// The keys of a joint limiter.
    PerDimension(Expr),
}

pub(crate) enum Cost {
    One,
    /// A literal, which is never zero.
    Literal(u32, Span),
    Computed(Expr),
}

/// The arguments as written.
#[derive(Default)]
struct Written {
    limit: Option<Expr>,
    per: Option<Expr>,
    policy: Option<Expr>,
    limiter: Option<Expr>,
    store: Option<Expr>,
    key: Option<Expr>,
    keys: Option<Expr>,
    cost: Option<Expr>,
    wait: Option<Expr>,
    on_denied: Option<Expr>,
    on_error: Option<Expr>,
    tollgate: Option<Path>,
}

/// The value of an argument, if it is an integer.
fn integer(after: ParseStream<'_>) -> Option<u64> {
    let after = after.fork();
    after.parse::<Token![=]>().ok()?;
    after.parse::<LitInt>().ok()?.base10_parse().ok()
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Written::parse(input)?.check(input.span())
    }
}

impl Written {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut written = Self::default();
        while !input.is_empty() {
            let Ok(name) = input.call(Ident::parse_any) else {
                return Err(input.error("write each argument with its name, such as `limit = 5, per = \"10s\"`"));
            };
            let place = written.place(&name, input)?;
            if !input.peek(Token![=]) {
                return Err(Error::new(name.span(), format!("write a value: `{name} = ...`")));
            }
            input.parse::<Token![=]>()?;
            let was_given = match place {
                Place::Expr(place) => place.replace(input.parse()?).is_some(),
                Place::Path(place) => place.replace(input.parse()?).is_some(),
            };
            if was_given {
                return Err(Error::new(name.span(), format!("`{name}` is given twice: leave one out")));
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                return Err(input.error("write a comma between arguments"));
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(written)
    }

    /// Where the argument `name` belongs. `after` begins with its value.
    fn place(&mut self, name: &Ident, after: ParseStream<'_>) -> Result<Place<'_>> {
        Ok(Place::Expr(match name.to_string().as_str() {
            "limit" => &mut self.limit,
            "per" => &mut self.per,
            "policy" => &mut self.policy,
            "limiter" => &mut self.limiter,
            "store" => &mut self.store,
            "key" => &mut self.key,
            "keys" => &mut self.keys,
            "cost" => &mut self.cost,
            "wait" => &mut self.wait,
            "on_denied" => &mut self.on_denied,
            "on_error" => &mut self.on_error,
            "crate" => return Ok(Place::Path(&mut self.tollgate)),
            other => {
                let message = match other {
                    "threshold" | "permits" | "max" => {
                        let limit = integer(after).unwrap_or(5);
                        format!("there is no `{other}`: write `limit = {limit}`")
                    }
                    "period" | "window" | "duration" => {
                        let seconds = integer(after).unwrap_or(10);
                        format!("there is no `{other}`: write `per = \"{seconds}s\"`")
                    }
                    "quota" => "there is no `quota`: write `policy = QUOTA`".into(),
                    _ => format!("there is no argument `{other}`; there are {NAMES}"),
                };
                return Err(Error::new(name.span(), message));
            }
        }))
    }

    fn check(self, end: Span) -> Result<Args> {
        let Self { limit, per, policy, limiter, store, key, keys, cost, wait, on_denied, on_error, tollgate } = self;
        let tollgate = tollgate.unwrap_or_else(|| syn::parse_quote!(::tollgate));
        let limits = match (Limits::given(limiter, store)?, policy, limit, per) {
            (Some((_, limits)), None, None, None) => limits,
            (None, Some(policy), None, None) => Limits::Own(Quotas::of_policy(policy)?),
            (None, None, Some(limit), Some(per)) => Limits::Own(Quotas::new(&limit, &per, &tollgate)?),
            (None, None, Some(limit), None) => {
                return Err(Error::new(limit.span(), "a limit needs a window: write `per = \"10s\"` beside it"));
            }
            (None, None, None, Some(per)) => {
                return Err(Error::new(per.span(), "a window needs a limit: write `limit = 5` beside it"));
            }
            (None, None, None, None) => return Err(Error::new(end, NO_QUOTA)),
            (Some((place, limits)), ..) => {
                let name = if matches!(limits, Limits::Store(_)) { "store" } else { "limiter" };
                return Err(Error::new(place, format!("a limiter has its quotas: write `{name}` alone")));
            }
            (None, Some(policy), ..) => {
                let message = "a policy has its limit and its window: write `policy` alone";
                return Err(Error::new(policy.span(), message));
            }
        };
        let cost = Cost::new(cost)?;
        if let (Limits::Own(quotas), Cost::Literal(cost, span)) = (&limits, &cost) {
            quotas.check_cost(*cost, *span)?;
        }
        let wait = wait.map(|wait| Ok::<_, Error>((quota::wait(&wait)?, wait.span()))).transpose()?;
        let args = Args { key: Key::new(key, keys, &limits)?, limits, cost, wait, on_denied, on_error, tollgate };
        if let (Limits::Store(_), Some((_, place))) = (&args.limits, &args.wait) {
            let message = "calls do not wait for permits of a store: leave `wait` out, or write `limiter`";
            return Err(Error::new(*place, message));
        }
        match &args.on_error {
            Some(on_error) if matches!(args.limits, Limits::Store(_)) => Err(Error::new(
                on_error.span(),
                "`on_error` is never asked: with `store`, each error is an `AcquireError` for `on_denied`; leave it out",
            )),
            Some(on_error) if args.wait.is_some() => Err(Error::new(
                on_error.span(),
                "`on_error` is never asked: with `wait`, each error is a `WaitError` for `on_denied`; leave it out",
            )),
            Some(on_error) if !args.can_fail() => Err(Error::new(
                on_error.span(),
                "`on_error` is never asked: the cost is known to be within the limit; leave it out",
            )),
            _ => Ok(args),
        }
    }
}

enum Place<'a> {
    Expr(&'a mut Option<Expr>),
    Path(&'a mut Option<Path>),
}

impl Limits {
    /// The caller's limiter, with its place.
    fn given(limiter: Option<Expr>, store: Option<Expr>) -> Result<Option<(Span, Self)>> {
        match (limiter, store) {
            (Some(_), Some(store)) => {
                Err(Error::new(store.span(), "`limiter` and `store` exclude each other: leave one out"))
            }
            (Some(limiter), None) => Ok(Some((limiter.span(), Self::Limiter(limiter)))),
            (None, Some(store)) => Ok(Some((store.span(), Self::Store(store)))),
            (None, None) => Ok(None),
        }
    }
}

impl Args {
    /// Whether a call can be neither admitted nor denied.
    pub(crate) fn can_fail(&self) -> bool {
        match (&self.limits, &self.key, &self.cost) {
            (_, Key::PerDimension(_), _) | (_, _, Cost::Computed(_)) => true,
            (Limits::Own(_), ..) | (_, _, Cost::One) => false,
            (Limits::Limiter(_) | Limits::Store(_), _, Cost::Literal(..)) => true,
        }
    }
}

impl Key {
    fn new(key: Option<Expr>, keys: Option<Expr>, limits: &Limits) -> Result<Self> {
        match (key, keys) {
            (Some(_), Some(keys)) => Err(Error::new(keys.span(), "`key` and `keys` exclude each other: leave one out")),
            (Some(key), None) if matches!(limits, Limits::Store(_)) => {
                Err(Error::new(key.span(), "a policy has dimensions: write `keys = (user,)`, with one key for each"))
            }
            (Some(key), None) => match quota::bare(&key) {
                Expr::Tuple(tuple) if tuple.elems.is_empty() => {
                    Err(Error::new(key.span(), "the key is empty: leave `key` out for one quota for the function"))
                }
                // The caller's limiter may be that of several functions, and the literal may name this one.
                literal if matches!(limits, Limits::Own(_)) && is_literal(literal) => Err(Error::new(
                    key.span(),
                    "this is the same key for each call: write `key = user`, or leave `key` out for one quota of all calls",
                )),
                _ => Ok(Self::One(key)),
            },
            (None, Some(keys)) => match limits {
                Limits::Limiter(_) | Limits::Store(_) => Ok(Self::PerDimension(keys)),
                Limits::Own(_) => Err(Error::new(
                    keys.span(),
                    "`keys` are those of a `JointLimiter`: write `limiter = LIMITER`, or one `key = (a, b)`",
                )),
            },
            (None, None) => match limits {
                Limits::Store(store) => {
                    Err(Error::new(store.span(), "a policy has dimensions: write `keys = (user,)` beside it"))
                }
                Limits::Own(_) | Limits::Limiter(_) => Ok(Self::None),
            },
        }
    }
}

/// Whether an expression is made of literals only.
fn is_literal(expr: &Expr) -> bool {
    match quota::bare(expr) {
        Expr::Lit(_) => true,
        Expr::Unary(unary) => is_literal(&unary.expr),
        Expr::Reference(reference) => is_literal(&reference.expr),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_literal),
        _ => false,
    }
}

impl Cost {
    fn new(cost: Option<Expr>) -> Result<Self> {
        let Some(cost) = cost else { return Ok(Self::One) };
        match quota::bare(&cost) {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => match number.base10_parse() {
                    Ok(0) => Err(Error::new(number.span(), "a cost of zero limits nothing: leave the attribute out")),
                    Ok(cost) => Ok(Self::Literal(cost, number.span())),
                    Err(_) => Err(Error::new(number.span(), "a cost is a `u32`: write at most 4294967295")),
                },
                other => Err(Error::new(other.span(), "a cost is a whole number: write `cost = 2`")),
            },
            _ => Ok(Self::Computed(cost)),
        }
    }
}
