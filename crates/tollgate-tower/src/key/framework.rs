//! [`Tower`]: the types of `http`, for what is the same in all frameworks.

use http::header::{HOST, ValueIter};
use http::{Extensions, HeaderName, HeaderValue, Uri};
use tollgate_http::Peer;
use tollgate_http::middleware::{Framework, HasExtension};

use super::head::Head;

/// The types of `http`, for types of [`tollgate_http`] that are the same in all frameworks.
#[derive(Debug, Clone, Copy)]
pub enum Tower {}

impl Framework for Tower {
    tollgate_http::head_of_http!();

    type Values<'h> = ValueIter<'h, HeaderValue>;
    type Connection = Extensions;

    fn values<'h>(head: &'h Head<'_>, name: &HeaderName) -> Self::Values<'h> {
        head.headers.get_all(name).iter()
    }

    fn connection<'h>(head: &'h Head<'_>) -> &'h Extensions {
        head.extensions
    }

    fn peer(extensions: &Extensions) -> Option<Peer> {
        extensions.get().copied().or_else(|| framework_peer(extensions))
    }
}

/// The peer as axum provides it.
#[cfg(feature = "axum")]
fn framework_peer(extensions: &Extensions) -> Option<Peer> {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
    use core::net::SocketAddr;

    let real = extensions.get().map(|&ConnectInfo::<SocketAddr>(peer)| peer);
    let mock = || extensions.get().map(|&MockConnectInfo::<SocketAddr>(peer)| peer);
    real.or_else(mock).map(Peer::from)
}

#[cfg(not(feature = "axum"))]
const fn framework_peer(_: &Extensions) -> Option<Peer> {
    None
}

impl<E: Send + Sync + 'static> HasExtension<E> for Tower {
    fn extension<R>(head: &Head<'_>, look: impl FnOnce(&E) -> R) -> Option<R> {
        head.extensions.get().map(look)
    }
}
