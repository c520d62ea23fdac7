//! Bodies of requests, read whole.

use core::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::under_way::UnderWay;

/// A body, which takes of the room of its connection until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is longer than it may be.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// It ended early, or its framing is wrong.
    Broken,
    /// The bodies that come on the connection take all of its room.
    NoRoom,
}

impl Whole {
    /// The body, if it has at most so many bytes and comes in time.
    pub(crate) async fn read(
        mut body: Incoming,
        most: usize,
        under_way: &UnderWay,
        patience: Duration,
    ) -> Result<Self, Unread> {
        // Refused before it comes, if its length is told.
        if body.size_hint().lower() > most as u64 {
            return Err(Unread::TooLarge);
        }
        let read = async {
            let mut whole = Self::default();
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() {
                    whole.add(&data, most, under_way)?;
                }
            }
            Ok(whole)
        };
        timeout(patience, read).await.unwrap_or(Err(Unread::TooSlow))
    }

    /// Copies the bytes: what came is a part of a buffer of the connection, which has other parts.
    fn add(&mut self, data: &Bytes, most: usize, under_way: &UnderWay) -> Result<(), Unread> {
        let (length, has) = (self.bytes.len() + data.len(), self.bytes.capacity());
        if length > most {
            return Err(Unread::TooLarge);
        }
        if length > has {
            let wanted = length.max(has * 2).min(most);
            let more = under_way.room(wanted - has).ok_or(Unread::NoRoom)?;
            self.bytes.reserve_exact(wanted - self.bytes.len());
            match &mut self.room {
                Some(room) => room.merge(more),
                room => *room = Some(more),
            }
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}
