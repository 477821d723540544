//! Drives the asynchronous client of one connection: sends and receives messages while a thread waits for an answer.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::join;
use postgres::error::SqlState;
use postgres::{Error, SimpleQueryMessage};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Notification};

use super::error::Failure;
use super::runtime::OwnRuntime;

/// The most notifications that are kept. The listener reads them all the time. A session behind a pooler may receive
/// notifications for another connection, which no thread reads.
const NOTIFICATIONS_MAX: usize = 1_000;

/// Polls for the next message of the server.
pub(super) type Messages =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;

/// The message that begins a transaction, and its state.
pub(super) enum Preamble {
    /// It will be sent before the next message, together with it.
    Unsent(String),
    /// The transaction has begun.
    Answered(Vec<SimpleQueryMessage>),
    /// It failed. The server did not run the message that was sent with it.
    Failed,
    /// It failed before a transaction began, for example because it was cancelled. The server may have run the statements
    /// that were sent with it, outside a transaction.
    NoTransaction,
}

/// Exchanges messages with the server while the asynchronous client waits for an answer.
pub(super) struct Driver {
    runtime: OwnRuntime,
    messages: Messages,
    /// The preamble of the current transaction, or of the next one.
    pub(super) preamble: Option<Preamble>,
    /// Notifications that were received and not read yet.
    notifications: VecDeque<Notification>,
}

impl Driver {
    pub(super) fn new(runtime: OwnRuntime, messages: Messages) -> Driver {
        Driver { runtime, messages, preamble: None, notifications: VecDeque::new() }
    }

    /// Sends an unsent preamble, and then exchanges messages until `work` is done.
    pub(super) fn run<T: Send>(
        &mut self,
        inner: &tokio_postgres::Client,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let Some(Preamble::Unsent(text)) = &mut self.preamble else { return self.drive(work) };
        let text = std::mem::take(text);
        // In case that `work` panics: then a transaction may be open.
        self.preamble = Some(Preamble::Failed);
        let mut answer = Preamble::Failed;
        let begin = async {
            answer = Preamble::Answered(inner.simple_query(&text).await?);
            Ok(())
        };
        // Each of the two sends its message when it is first polled, in this order.
        let both = self.drive(async { Ok(join(begin, work).await) });
        let done = match both {
            Ok((Ok(()), done)) => done,
            Ok((Err(error), done)) => {
                if !is_refused_by_failed_preamble(&done) {
                    answer = Preamble::NoTransaction;
                }
                Err(error)
            }
            Err(error) => Err(error),
        };
        self.preamble = Some(answer);
        done
    }

    /// Exchanges messages until `work` is done.
    pub(super) fn drive<T: Send>(
        &mut self,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let mut work = pin!(work);
        let Driver { runtime, messages, notifications, .. } = self;
        let driven = runtime.block_on(poll_fn(|context| {
            while let Poll::Ready(Some(message)) = messages(context) {
                match message {
                    Ok(message) => handle_message(message, notifications),
                    // The answer will not come.
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            work.as_mut().poll(context)
        }));
        driven.unwrap_or_else(|error| {
            self.close_without_thread(&error);
            finish_closed(work)
        })
    }

    /// Closes the connection, because no thread can be started that waits for it.
    fn close_without_thread(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "no thread can be started to wait for the database server: a connection is given up");
        self.close();
    }

    /// Closes the connection. Every request then fails at once.
    fn close(&mut self) {
        self.messages = Box::new(|_context| Poll::Ready(None));
    }

    /// Whether the connection has ended, as far as this machine knows.
    pub(super) fn has_ended(&mut self) -> bool {
        loop {
            let Driver { runtime, messages, notifications, .. } = self;
            match runtime.block_on(poll_fn(|context| Poll::Ready(messages(context)))) {
                Ok(Poll::Ready(Some(Ok(message)))) => handle_message(message, notifications),
                Ok(Poll::Pending) => return false,
                Ok(Poll::Ready(Some(Err(_)) | None)) => break,
                Err(error) => {
                    self.close_without_thread(&error);
                    return true;
                }
            }
        }
        self.close();
        true
    }

    /// Waits for a notification, at most for `longest`.
    pub(super) fn next_notification(&mut self, longest: Duration) -> Result<Option<Notification>, Error> {
        let Driver { runtime, messages, notifications, .. } = self;
        let next = poll_fn(|context| {
            loop {
                if let Some(notification) = notifications.pop_front() {
                    return Poll::Ready(Ok(Some(notification)));
                }
                match messages(context) {
                    Poll::Ready(Some(Ok(message))) => handle_message(message, notifications),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(None)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        let notifications = runtime.block_on(async { timeout(longest, next).await.unwrap_or(Ok(None)) });
        notifications.unwrap_or_else(|error| {
            self.close_without_thread(&error);
            Ok(None)
        })
    }
}

/// Whether the server refused the message after a failed preamble, or the connection is lost. Otherwise the server may have
/// run the message outside a transaction.
fn is_refused_by_failed_preamble<T>(done: &Result<T, Error>) -> bool {
    match done {
        Ok(_done) => false,
        Err(error) => {
            // The server first searches for the prepared statement, which a session of another connection does not have.
            let refusals = [&SqlState::IN_FAILED_SQL_TRANSACTION, &SqlState::INVALID_SQL_STATEMENT_NAME];
            error.code().is_some_and(|code| refusals.contains(&code))
                || Failure::of(error) == Failure::ConnectionLost
        }
    }
}

impl Drop for Driver {
    /// Tells the server that the connection ends.
    fn drop(&mut self) {
        let Driver { runtime, messages, .. } = self;
        let told = runtime.block_on(poll_fn(|context| {
            loop {
                match messages(context) {
                    Poll::Ready(Some(Ok(_message))) => {}
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }));
        if let Err(error) = told {
            tracing::debug!(%error, "a connection to the database server was closed without a message");
        }
    }
}

/// The result of a work whose connection was closed. Every request fails at once.
fn finish_closed<T>(mut work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> Result<T, Error> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::yield_now();
    }
}

/// Keeps a notification, and logs a notice.
fn handle_message(message: AsyncMessage, notifications: &mut VecDeque<Notification>) {
    match message {
        AsyncMessage::Notification(notification) => {
            notifications.push_back(notification);
            notifications.truncate(NOTIFICATIONS_MAX);
        }
        AsyncMessage::Notice(notice) => tracing::debug!("{}: {}", notice.severity(), notice.message()),
        _other => {}
    }
}
