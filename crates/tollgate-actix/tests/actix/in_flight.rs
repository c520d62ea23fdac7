//! Requests in flight: until the body ends, or its client hangs up.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::server::Server;
use actix_web::body::{BodySize, MessageBody};
use actix_web::{App, HttpRequest, HttpResponse, web};
use tollgate::{DirectLimiter, JointLimiter};
use tollgate_actix::{Actix, Gate, KeyExtractor, RateLimit, header};
use tollgate_kit::in_flight::{OpenBody, Service, USER, Work};

/// A body of the bank as actix-web has it.
struct Open(OpenBody);

impl MessageBody for Open {
    type Error = std::io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<web::Bytes, Self::Error>>> {
        self.0.poll_part(context).map(|part| Some(part?.map(web::Bytes::from)))
    }
}

async fn answer(work: web::Data<Work>, request: HttpRequest) -> HttpResponse {
    let open = || work.open(request.query_string().parse().unwrap());
    match request.path() {
        "/stream" => HttpResponse::Ok().body(Open(open())),
        "/never" => {
            let _open = open();
            std::future::pending().await
        }
        _ => HttpResponse::NoContent().finish(),
    }
}

fn start<L, X>(limit: RateLimit<L, X>, work: Work) -> Server
where
    L: Gate<Actix, X> + Send + Sync,
    X: KeyExtractor<Key: Send + Sync> + 'static,
{
    let work = web::Data::new(work);
    Server::of(move || App::new().app_data(work.clone()).default_service(web::to(answer)).wrap(limit.clone()))
}

impl Service for Server {
    fn direct(limiter: Arc<DirectLimiter>, work: Work) -> Self {
        start(RateLimit::new(limiter), work)
    }

    fn joint(limiter: Arc<JointLimiter<(String, String)>>, work: Work) -> Self {
        start(RateLimit::new(limiter).key((header(USER), header(USER))), work)
    }

    fn address(&self) -> SocketAddr {
        self.address
    }
}

tollgate_kit::in_flight_until_the_body_ends!(Server);

#[cfg(feature = "redis")]
mod on_a_store {
    use tollgate_actix::PolicyLimiter;
    use tollgate_kit::in_flight::OnStore;
    use tollgate_policy::Policy;

    use super::{Arc, RateLimit, Server, USER, Work, header, start};

    impl OnStore for Server {
        fn of_policy(policy: &Policy, work: Work) -> Self {
            let limiter = PolicyLimiter::<(String, String)>::new(policy).unwrap();
            start(RateLimit::new(Arc::new(limiter)).key((header(USER), header(USER))), work)
        }
    }

    tollgate_kit::in_flight_on_a_store_until_the_body_ends!(Server);
}
