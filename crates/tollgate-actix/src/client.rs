//! [`Client`]: the address of the client as an argument of a handler.

use core::future::{Ready, ready};
use core::net::IpAddr;
use std::sync::Once;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use tollgate_http::middleware::KeyError;

use crate::denied::Denied;
use crate::key::{ClientIp, Head, KeyExtractor as _};

/// The address of the client as an argument of a handler, by the same rules as in a limit. The app
/// data holds the rules, a [`ClientIp`], once.
///
/// An IPv6 address is that of the network, /64 by default. Without an address the answer is 500 or
/// 400, as that of a limit. Without a `ClientIp` in the app data it is 500, and the first is logged.
///
/// ```
/// use actix_web::{App, web};
/// use tollgate_actix::{Client, ClientIp, TrustedProxies};
///
/// async fn address(Client(address): Client) -> String {
///     address.to_string()
/// }
///
/// let clients = ClientIp::behind(TrustedProxies::new(["10.0.0.0/8"])?);
/// let app = App::new().app_data(clients).route("/", web::get().to(address));
/// # drop(app);
/// # Ok::<(), tollgate_actix::ClientConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub IpAddr);

impl FromRequest for Client {
    type Error = Denied;
    type Future = Ready<Result<Self, Denied>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let clients = request.app_data::<ClientIp>().ok_or_else(not_set_up);
        ready(clients.and_then(|clients| clients.extract(&Head::of(request))).map(Self).map_err(Denied::of_address))
    }
}

/// Logs that the app data holds no rules, with the remedy. Logs once, because each request would
/// write.
fn not_set_up() -> KeyError {
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        log::error!(
            "requests are answered with 500: a handler takes a `Client`, and the app data has no `ClientIp`: \
             call `App::app_data(ClientIp::peer())`, or behind a proxy with `ClientIp::behind(..)`"
        );
    });
    KeyError::not_provided()
}
