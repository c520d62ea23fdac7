//! The function below the attribute.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Result, ReturnType, Signature, Token, Type, Visibility};

use crate::quota::from;

/// A function or method with a body, which is not parsed.
pub(crate) struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
    body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let visibility = input.parse()?;
        let start = input.span();
        let Ok(signature) = input.parse::<Signature>() else {
            return Err(Error::new(start, "`rate_limit` goes above a function or a method"));
        };
        if let Some(keyword) = signature.constness {
            return Err(Error::new(keyword.span, "a `const fn` can't be limited: leave `const` or the attribute out"));
        }
        if input.peek(Token![;]) {
            let message = "a method without a body can't be limited: write the attribute above its implementations";
            return Err(Error::new(signature.ident.span(), message));
        }
        let span = input.span();
        match input.parse()? {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace && input.is_empty() => {
                Ok(Self { attributes, visibility, signature, body })
            }
            _ => Err(Error::new(span, "`rate_limit` goes above a function or a method")),
        }
    }
}

impl Function {
    /// The name of the function's limit: its own, as far as a quota can have it.
    pub(crate) fn name(&self) -> String {
        /// `tollgate::Quota::MAX_NAME`.
        const MAX_NAME: usize = 32;
        let name = self.signature.ident.unraw().to_string();
        let name: String = name.chars().map(|char| if char.is_ascii() { char } else { '-' }).collect();
        name[..name.len().min(MAX_NAME)].to_owned()
    }

    /// The place for a message about the returned type.
    pub(crate) fn returned(&self) -> Span {
        match &self.signature.output {
            ReturnType::Default => self.signature.ident.span(),
            ReturnType::Type(_, returned) => returned.span(),
        }
    }

    /// Whether the returned type certainly is not a `Result`, even by an alias.
    pub(crate) fn returns_no_result(&self) -> bool {
        match &self.signature.output {
            ReturnType::Default => true,
            ReturnType::Type(_, returned) => {
                !matches!(**returned, Type::Path(_) | Type::Group(_) | Type::Paren(_) | Type::Macro(_))
            }
        }
    }

    /// Whether the statements in front of the body can wait by `.await`.
    pub(crate) fn is_async(&self) -> bool {
        let statements = || split(self.body.stream()).1;
        self.signature.asyncness.is_some() || boxed_future(&self.signature.output, &statements()).is_some()
    }

    /// The function with these statements in front of its body. If it only boxes a future, they are
    /// in front of the future's body.
    ///
    /// The body stays a block of its own, as its items would be items after statements. The braces
    /// are those of the expansion: the compiler finds the caller's unused around one expression.
    pub(crate) fn with(self, prologue: &TokenStream) -> TokenStream {
        let Self { attributes, visibility, signature, body } = self;
        let (inner_attributes, statements) = split(body.stream());
        let statements = match boxed_future(&signature.output, &statements) {
            Some((before, future)) => {
                let inner = group(Delimiter::Brace, future.stream(), from(future.span()));
                let future = group(Delimiter::Brace, quote!(#prologue #inner), future.span());
                let argument = group(Delimiter::Parenthesis, quote!(async move #future), body.span());
                quote!(#before #argument)
            }
            None => {
                let statements = group(Delimiter::Brace, statements, from(body.span()));
                quote!(#prologue #statements)
            }
        };
        let body = group(Delimiter::Brace, quote!(#inner_attributes #statements), body.span());
        quote!(#(#attributes)* #visibility #signature #body)
    }
}

fn group(delimiter: Delimiter, tokens: TokenStream, span: Span) -> Group {
    let mut group = Group::new(delimiter, tokens);
    group.set_span(span);
    group
}

/// The inner attributes of a body, and its statements.
fn split(body: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = body.into_iter().collect();
    let is = |at: usize, char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == char);
    let mut end = 0;
    while is(end, '#') && is(end + 1, '!') && matches!(tokens.get(end + 2), Some(TokenTree::Group(_))) {
        end += 3;
    }
    let mut attributes = tokens;
    let statements = attributes.split_off(end);
    (attributes.into_iter().collect(), statements.into_iter().collect())
}

/// The block of `Box::pin(async move { .. })`, and the tokens in front of the parenthesis, if the
/// body is only that and returns a `Pin`. `#[async_trait]` turns async functions into such
/// functions.
fn boxed_future(output: &ReturnType, statements: &TokenStream) -> Option<(TokenStream, Group)> {
    let ReturnType::Type(_, returned) = output else { return None };
    let Type::Path(path) = &**returned else { return None };
    if path.path.segments.last()?.ident != "Pin" {
        return None;
    }
    let mut before: Vec<TokenTree> = statements.clone().into_iter().collect();
    let Some(TokenTree::Group(argument)) = before.pop() else { return None };
    let is_pin = matches!(before.last(), Some(TokenTree::Ident(name)) if name == "pin");
    let argument: Vec<TokenTree> = argument.stream().into_iter().collect();
    match &*argument {
        [TokenTree::Ident(a), TokenTree::Ident(b), TokenTree::Group(block)]
            if is_pin && a == "async" && b == "move" && block.delimiter() == Delimiter::Brace =>
        {
            Some((before.into_iter().collect(), block.clone()))
        }
        _ => None,
    }
}
