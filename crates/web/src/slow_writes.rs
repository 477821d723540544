//! The end of connections whose clients do not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes fail once its client has taken nothing for so long. Otherwise an answer that nobody reads would
/// keep its memory and its connection for ever.
pub(crate) struct WithWriteLimit<S> {
    stream: S,
    longest: Duration,
    /// The end of the wait that goes on.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WithWriteLimit<S> {
    pub(crate) fn new(stream: S, longest: Duration) -> WithWriteLimit<S> {
        WithWriteLimit { stream, longest, deadline: None }
    }

    /// Ends a write that waits for too long. Each byte that the client takes begins the time anew.
    fn limited<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let longest = self.longest;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(longest)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithWriteLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithWriteLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush, so this says nothing about its client.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[test]
    fn a_write_that_nobody_takes_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = duplex(8);
            let mut near = WithWriteLimit::new(near, Duration::from_millis(20));
            near.write_all(b"12345678").await.unwrap();
            let ended = near.write_all(b"9").await;
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
            // A client that reads goes on.
            far.read_exact(&mut [0; 8]).await.unwrap();
            near.write_all(b"9").await.unwrap();
        });
    }
}
