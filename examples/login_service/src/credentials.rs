//! Credentials: middleware outside the limits, which leaves with the request what they count by. A
//! real service would look users and keys up.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The user and the password of a log-in, not checked yet.
#[derive(Clone)]
pub(crate) struct Attempt {
    user: Arc<str>,
    password: Arc<str>,
}

impl Attempt {
    pub(crate) fn user(&self) -> Arc<str> {
        Arc::clone(&self.user)
    }

    pub(crate) fn name(&self) -> &str {
        &self.user
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// HTTP Basic authentication (RFC 7617).
    fn of(headers: &HeaderMap) -> Option<Self> {
        let (scheme, encoded) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        // One user is one key, however the name is written.
        Some(Self { user: user.trim().to_lowercase().into(), password: password.into() })
    }
}

/// A request without a user and a password is answered here.
pub(crate) async fn attempt(mut request: Request, next: Next) -> Response {
    let Some(attempt) = Attempt::of(request.headers()) else {
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"login\", charset=\"UTF-8\"")];
        return (StatusCode::UNAUTHORIZED, ask, "send a user and a password\n").into_response();
    };
    request.extensions_mut().insert(attempt);
    next.run(request).await
}

/// An API key that is known.
#[derive(Clone)]
pub(crate) struct ApiKey(&'static str);

impl ApiKey {
    const KNOWN: [&'static str; 2] = ["demo", "another"];

    pub(crate) fn id(&self) -> &'static str {
        self.0
    }
}

/// A request without a known API key is answered here, so that clients cannot make keys up.
pub(crate) async fn api_key(mut request: Request, next: Next) -> Response {
    let sent = request.headers().get("x-api-key");
    let Some(known) = ApiKey::KNOWN.into_iter().find(|&known| sent.is_some_and(|sent| sent == known)) else {
        return (StatusCode::UNAUTHORIZED, "send a known x-api-key\n").into_response();
    };
    request.extensions_mut().insert(ApiKey(known));
    next.run(request).await
}
