//! [`UnderWay`]: the requests and answers of a connection that are not over, and what they may take.
//!
//! A client holds memory of the server while it sends a request in pieces, and while it does not take
//! an answer. Over HTTP/2 it does so on many streams at once, and keeps the connection alive beside
//! it. So each connection knows its open requests: it ends when it has none for the time of a
//! request, and when an answer is not taken in that time. Bodies and answers take of its [`ROOM`].

use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// The bytes of bodies that come, and of answers that are not taken, on one connection.
const ROOM: usize = 512 * 1024;

/// The least time to another look at a connection.
const LOOK: Duration = Duration::from_millis(50);

/// What is under way on a connection.
#[derive(Debug)]
pub(crate) struct UnderWay {
    state: Mutex<State>,
    room: Arc<Semaphore>,
}

#[derive(Debug)]
struct State {
    /// The requests whose head has come and whose answer is not taken.
    requests: usize,
    /// When there was no such request any more; at first, when the connection was accepted.
    quiet_since: Instant,
    /// When the answers were made that are not taken, by the order in which they were made.
    answers: BTreeMap<u64, Instant>,
    next: u64,
}

/// How a connection that is watched ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// No request is open.
    Quiet,
    /// An answer is not taken.
    NotTaken,
}

impl UnderWay {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { requests: 0, quiet_since: Instant::now(), answers: BTreeMap::new(), next: 0 };
        Arc::new(Self { state: Mutex::new(state), room: Arc::new(Semaphore::new(ROOM)) })
    }

    /// A request, whose head has come.
    pub(crate) fn begin(self: &Arc<Self>) -> Open {
        self.state().requests += 1;
        Open { under_way: Arc::clone(self), answer: None, room: None }
    }

    /// Room for so many bytes, if there is.
    pub(crate) fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.room).try_acquire_many_owned(bytes).ok()
    }

    /// Waits until no request has been open for the one time, or an answer is not taken for the other.
    pub(crate) async fn over(&self, quiet: Duration, taken: Duration) -> End {
        loop {
            let now = Instant::now();
            let (end, at) = self.next_end(now, quiet, taken);
            if at <= now {
                return end;
            }
            // What begins in the meantime ends later than that.
            sleep_until(at).await;
        }
    }

    /// How the connection ends if nothing more happens, and the time for another look.
    fn next_end(&self, now: Instant, quiet: Duration, taken: Duration) -> (End, Instant) {
        let state = self.state();
        match state.answers.first_key_value() {
            Some((_, made)) => (End::NotTaken, later(*made, taken)),
            None if state.requests == 0 => (End::Quiet, later(state.quiet_since, quiet)),
            // A request comes or is decided, which has times of its own.
            None => (End::Quiet, later(now, quiet.min(taken).max(LOOK))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it has the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time after this; a day later if there is none.
fn later(time: Instant, after: Duration) -> Instant {
    const DAY: Duration = Duration::from_secs(86_400);
    time.checked_add(after).unwrap_or_else(|| time + DAY)
}

/// A request of a connection, until its answer is taken or it is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    under_way: Arc<UnderWay>,
    /// The number of its answer, if it is made.
    answer: Option<u64>,
    room: Option<OwnedSemaphorePermit>,
}

impl Open {
    /// The connection.
    pub(crate) fn under_way(&self) -> &Arc<UnderWay> {
        &self.under_way
    }

    /// The response with this answer, whose time to be taken begins now. Where answers that are not
    /// taken leave no room for it, it is 503.
    pub(crate) fn answered(mut self, mut response: Response<Answered>) -> Response<Body> {
        self.room = self.under_way.room(response.body().data.len());
        if self.room.is_none() {
            response = Response::new(Answered::default());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        // An answer is to one request of one client.
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        let mut state = self.under_way.state();
        let number = state.next;
        state.next += 1;
        state.answers.insert(number, Instant::now());
        drop(state);
        self.answer = Some(number);
        let open = Arc::new(self);
        response.map(|Answered { data, trailers }| Body { data, trailers, open })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.under_way.state();
        if let Some(number) = self.answer {
            state.answers.remove(&number);
        }
        state.requests -= 1;
        if state.requests == 0 {
            state.quiet_since = Instant::now();
        }
    }
}

/// The body of an answer, and the trailers of gRPC.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl From<Bytes> for Answered {
    fn from(data: Bytes) -> Self {
        Self { data, trailers: None }
    }
}

/// The body of a response, which is open until all of it is taken.
#[derive(Debug)]
pub(crate) struct Body {
    data: Bytes,
    trailers: Option<HeaderMap>,
    open: Arc<Open>,
}

/// Bytes that are dropped when they are written to the connection.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    _open: Arc<Open>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl hyper::body::Body for Body {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        let bytes = mem::take(&mut self.data);
        let frame = if bytes.is_empty() {
            self.trailers.take().map(Frame::trailers)
        } else {
            Some(Frame::data(Piece { bytes, _open: Arc::clone(&self.open) }))
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // The length of a message of gRPC is in front of it.
        if self.trailers.is_some() { SizeHint::default() } else { SizeHint::with_exact(self.data.len() as u64) }
    }
}
