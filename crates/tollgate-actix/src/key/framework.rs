//! [`Actix`]: the types of actix-web, for what is the same in all frameworks.

use core::slice::Iter;

use actix_web::http::Uri;
use actix_web::http::header::{HOST, HeaderName, HeaderValue};
use actix_web::{HttpMessage as _, HttpRequest};
use tollgate_http::Peer;
use tollgate_http::middleware::{Framework, HasExtension};

use super::head::Head;

/// The types of actix-web, for types of [`tollgate_http`] that are the same in all frameworks.
#[derive(Debug, Clone, Copy)]
pub enum Actix {}

impl Framework for Actix {
    tollgate_http::head_of_http!();

    type Values<'h> = Iter<'h, HeaderValue>;
    type Connection = HttpRequest;

    fn values<'h>(head: &'h Head<'_>, name: &HeaderName) -> Self::Values<'h> {
        head.headers.get_all(name)
    }

    fn connection<'h>(head: &'h Head<'_>) -> &'h HttpRequest {
        head.request
    }

    fn peer(request: &HttpRequest) -> Option<Peer> {
        let inserted = request.extensions().get().copied();
        inserted.or_else(|| request.peer_addr().map(Peer::from))
    }
}

impl<E: 'static> HasExtension<E> for Actix {
    fn extension<R>(head: &Head<'_>, look: impl FnOnce(&E) -> R) -> Option<R> {
        head.request.extensions().get().map(look)
    }
}
