//! Connections: accepted, bounded, and ended.

use core::convert::Infallible;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::routes::{Routes, turn_away};
use crate::under_way::{End, UnderWay};

/// The most connections beyond the most that are told so. Others are closed without a word.
const TURNED_AWAY: usize = 64;
/// The time that such a connection has, and one that was told to go.
const WORD: Duration = Duration::from_secs(2);
/// The most bytes of a head.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEAD_OF_HTTP2: u32 = 16 * 1024;
/// The most requests at a time on a connection of HTTP/2.
const MAX_STREAMS: u32 = 64;
/// The bytes of a body that may come before they are read.
const UNREAD: u32 = 64 * 1024;
/// Those of a connection.
const UNREAD_OF_ALL: u32 = 128 * 1024;
/// The time until another try after the system had no more files or memory for a connection.
const BREATHER: Duration = Duration::from_millis(50);

/// How far a server is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It serves.
    Open,
    /// It takes no new connections, and ends the others after the request that they have.
    Closing,
    /// It ends connections at once.
    Closed,
}

/// Waits until the server is in this phase, or in a later one.
async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // A server that is gone, too, is closed.
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}

/// Waits until a connection that has no more than this time is over.
async fn over(word: Option<Duration>) {
    match word {
        Some(word) => tokio::time::sleep(word).await,
        None => core::future::pending().await,
    }
}

/// What connections share.
#[derive(Debug)]
pub(crate) struct Connections {
    routes: Routes,
    /// A permit for each connection.
    pub(crate) places: Arc<Semaphore>,
    most: u32,
    turned_away: Arc<Semaphore>,
    patience: Duration,
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Connections {
    pub(crate) fn new(routes: Routes, most: u32, patience: Duration) -> Self {
        let places = Arc::new(Semaphore::new(most as usize));
        Self { routes, places, most, turned_away: Arc::new(Semaphore::new(TURNED_AWAY)), patience }
    }

    /// Takes connections until the server closes.
    pub(crate) async fn accept(self: Arc<Self>, socket: Socket, phase: watch::Receiver<Phase>) {
        let mut end = phase.clone();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept_one(&socket, &phase) => accepted,
                () = reached(&mut end, Phase::Closing) => return,
            };
            if accepted.is_err() {
                tokio::time::sleep(BREATHER).await;
            }
        }
    }

    async fn accept_one(self: &Arc<Self>, socket: &Socket, phase: &watch::Receiver<Phase>) -> io::Result<()> {
        match socket {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are short, and are not to wait for more.
                let _ = stream.set_nodelay(true);
                self.serve(stream, phase, true);
            }
            Socket::Unix(listener) => self.serve(listener.accept().await?.0, phase, false),
        }
        Ok(())
    }

    /// Serves a connection in a task of its own, if there is a place for it. Pages in browsers reach a
    /// server `by_name`, and no Unix socket.
    fn serve(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        phase: &watch::Receiver<Phase>,
        by_name: bool,
    ) {
        let (this, phase) = (Arc::clone(self), phase.clone());
        let counts = &self.routes.guard.counts;
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            tokio::spawn(async move {
                let counts = &this.routes.guard.counts;
                counts.connections.inc();
                this.drive(stream, phase, by_name, None).await;
                counts.connections.dec();
                drop(place);
            });
            return;
        }
        counts.turned_away.inc();
        if let Ok(place) = Arc::clone(&self.turned_away).try_acquire_owned() {
            tokio::spawn(async move {
                this.drive(stream, phase, by_name, Some(WORD)).await;
                drop(place);
            });
        }
    }

    /// Serves a connection until it ends. With a time, all of its requests are turned away, and it
    /// ends when that is over.
    async fn drive(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        mut phase: watch::Receiver<Phase>,
        by_name: bool,
        word: Option<Duration>,
    ) {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(word.unwrap_or(self.patience)));
        let (this, under_way) = (Arc::clone(self), UnderWay::new());
        let watched = Arc::clone(&under_way);
        let service = service_fn(move |request| {
            let (this, open) = (Arc::clone(&this), under_way.begin());
            // Not in the task of a stream, which lives until the answer is taken.
            Box::pin(async move {
                let response = match word {
                    Some(_) => turn_away(open),
                    None => this.routes.answer(request, by_name, open).await,
                };
                Ok::<_, Infallible>(response)
            })
        });
        let builder = self.builder();
        let connection = builder.serve_connection(TokioIo::new(Box::pin(stream)), service);
        tokio::pin!(connection);
        let is_quiet = tokio::select! {
            // What went wrong on a connection is the client's matter.
            _ = connection.as_mut() => return,
            () = over(word) => return,
            end = watched.over(self.patience, self.patience), if word.is_none() => match end {
                End::Quiet => true,
                End::NotTaken => return,
            },
            () = reached(&mut phase, Phase::Closing) => false,
        };
        // A request that is on its way over HTTP/2 is answered still.
        connection.as_mut().graceful_shutdown();
        let goodbye = async {
            tokio::time::sleep(WORD).await;
            watched.over(Duration::ZERO, self.patience).await;
        };
        tokio::select! {
            _ = connection => {}
            () = goodbye, if is_quiet => {}
            () = reached(&mut phase, Phase::Closed) => {}
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(MAX_HEAD)
            .http2()
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_OF_HTTP2)
            .initial_stream_window_size(UNREAD)
            .initial_connection_window_size(UNREAD_OF_ALL)
            .max_send_buf_size(MAX_HEAD);
        builder
    }

    /// The most connections.
    pub(crate) const fn most(&self) -> u32 {
        self.most
    }
}
