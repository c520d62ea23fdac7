//! A real server on loopback, and a real client.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use actix_web::body::MessageBody;
use actix_web::dev::{ServerHandle, ServiceFactory};
use actix_web::{App, Error, HttpServer, dev};
use sfv::{BareItem, Item, List, ListEntry, Parser};

/// A server with four workers, which stops when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

pub(crate) const WORKERS: usize = 4;

impl Server {
    /// Serves what the function makes for each worker.
    pub(crate) fn of<F, T, B>(app: F) -> Self
    where
        F: Fn() -> App<T> + Send + Clone + 'static,
        T: ServiceFactory<
                dev::ServiceRequest,
                Config = (),
                Response = dev::ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                // A client that closes its connection takes its request back.
                let server = HttpServer::new(app).workers(WORKERS).h1_allow_half_closed(false);
                let server = server.disable_signals().shutdown_timeout(0).listen(listener).unwrap().run();
                send.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Self { address, handle: receive.recv().unwrap(), thread: Some(thread) }
    }

    pub(crate) fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, fields)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(client().run(request.body(()).unwrap()).unwrap())
    }

    pub(crate) fn status(&self, path: &str) -> u16 {
        self.get(path, &[]).status
    }

    /// How many of so many requests, on as many connections at a time as there are threads, are
    /// answered with 200. All others have to be answered with 429.
    pub(crate) fn admitted_of(&self, requests: usize, threads: usize, path: &str) -> usize {
        let ask = || {
            let statuses: Vec<u16> = (0..requests / threads).map(|_| self.status(path)).collect();
            assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
            statuses.iter().filter(|status| **status == 200).count()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It stops whether or not the future of that is awaited.
        drop(self.handle.stop(false));
        let stopped = self.thread.take().map(JoinHandle::join);
        assert!(stopped.is_none_or(|stopped| stopped.is_ok()) || std::thread::panicking());
    }
}

fn client() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: ureq::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    fn of(mut response: ureq::http::Response<ureq::Body>) -> Self {
        let body = response.body_mut().read_to_string().unwrap();
        Self { status: response.status().as_u16(), fields: response.headers().clone(), body }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The items of a list of structured fields, with their integers.
    pub(crate) fn list(&self, name: &str) -> Vec<(String, BTreeMap<String, i64>)> {
        self.field(name).map(items).unwrap_or_default()
    }

    /// The items of all lines of such a list.
    pub(crate) fn all(&self, name: &str) -> Vec<(String, BTreeMap<String, i64>)> {
        self.fields.get_all(name).into_iter().flat_map(|value| items(value.to_str().unwrap())).collect()
    }
}

impl From<Answer> for tollgate_kit::limited::Answer {
    fn from(Answer { status, fields, body }: Answer) -> Self {
        let field = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        Self { status, fields: fields.iter().map(field).collect(), body }
    }
}

fn items(value: &str) -> Vec<(String, BTreeMap<String, i64>)> {
    let list: List = Parser::new(value).parse().unwrap();
    let item = |entry: ListEntry| match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(name), params }) => {
            let integers = params.into_iter().map(|(key, value)| match value {
                BareItem::Integer(value) => (key.as_str().to_owned(), value.into()),
                other => panic!("{other:?} is no integer"),
            });
            (name.as_str().to_owned(), integers.collect())
        }
        other => panic!("{other:?} is no string"),
    };
    list.into_iter().map(item).collect()
}

/// An item of a list.
pub(crate) fn item<const N: usize>(name: &str, integers: [(&str, i64); N]) -> (String, BTreeMap<String, i64>) {
    (name.to_owned(), integers.map(|(key, value)| (key.to_owned(), value)).into())
}
