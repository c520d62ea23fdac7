//! A line between the limiter and its server that can be cut and delayed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use tollgate_kit::redis::{Server, runtime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Line {
    Good,
    /// It is cut as soon as something comes from the client, which the server does not see.
    CutBeforeRequest,
    /// It is cut when the server answers, which the client does not see.
    CutBeforeReply,
    /// Answers come half a second late.
    Slow,
    /// Each answer comes a second late.
    Far,
    /// A connection that is used now has no answer any more, and is not closed.
    Silent,
    /// Nobody answers.
    Away,
}

const LINES: [Line; 7] =
    [Line::Good, Line::CutBeforeRequest, Line::CutBeforeReply, Line::Slow, Line::Far, Line::Silent, Line::Away];

#[derive(Clone)]
pub(crate) struct Proxy {
    line: Arc<AtomicU8>,
    connections: Arc<AtomicU64>,
    port: u16,
}

/// Plays a test on a server and a line to it, if there is a program for the server.
pub(crate) fn play(test: impl AsyncFnOnce(&Server, &Proxy)) {
    let Some(server) = Server::start(&[]) else { return };
    runtime().block_on(async {
        let proxy = Proxy::start(&server).await;
        test(&server, &proxy).await;
    });
}

impl Proxy {
    /// It lives as long as the runtime.
    pub(crate) async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Self { line: Arc::new(AtomicU8::new(Line::Good as u8)), connections: Arc::default(), port };
        let (accepting, socket) = (proxy.clone(), server.socket());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                if accepting.line() != Line::Away {
                    tokio::spawn(accepting.clone().carry(client, socket.clone()));
                }
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, line: Line) {
        self.line.store(line as u8, Ordering::SeqCst);
    }

    /// How many connections clients have made.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    fn line(&self) -> Line {
        LINES[usize::from(self.line.load(Ordering::SeqCst))]
    }

    async fn carry(self, mut client: TcpStream, socket: PathBuf) {
        let mut server = UnixStream::connect(socket).await.expect("the server listens");
        let (mut request, mut reply) = ([0; 16 * 1024], [0; 16 * 1024]);
        loop {
            tokio::select! {
                read = client.read(&mut request) => {
                    let Ok(length @ 1..) = read else { return };
                    match self.line() {
                        Line::CutBeforeRequest | Line::Away => return,
                        Line::Silent => return std::future::pending().await,
                        _ => {}
                    }
                    server.write_all(&request[..length]).await.expect("the server reads");
                }
                read = server.read(&mut reply) => {
                    let Ok(length @ 1..) = read else { return };
                    match self.line() {
                        Line::CutBeforeReply | Line::Away => return,
                        Line::Slow => tokio::time::sleep(Duration::from_millis(500)).await,
                        Line::Far => tokio::time::sleep(Duration::from_secs(1)).await,
                        _ => {}
                    }
                    if client.write_all(&reply[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
