//! A connection to a server on a thread that waits: the asynchronous client, and the small runtime that drives it.
//!
//! The client that waits by itself sends one statement after the other's answer. This one can send several whose
//! answers do not depend on each other, so that they cost one round trip.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::{join, try_join_all};
use postgres::error::SqlState;
use postgres::types::{BorrowToSql, ToSql, Type};
use postgres::{Error, Row, SimpleQueryMessage, Statement};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Config, Notification, RowStream};

use super::error::Failure;
use super::runtime::OwnRuntime;
use super::{PostgresAddress, lookup};
use crate::error::Unavailable;
use windlass_system::shortage::is_shortage;

/// Notifications that are kept until somebody asks for them. Who listens does so all the time; a session behind a pooler
/// may be told of what another one listened for, and nobody asks it.
const HEARD_MAX: usize = 1_000;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconnected {
    /// The operating system's: no more files, for example.
    #[error(transparent)]
    Machine(#[from] std::io::Error),
    #[error(transparent)]
    Server(#[from] Error),
    /// It is connected to, and says nothing: a server that is stopped, or a machine that hangs, takes connections.
    #[error("it has not answered for {} s", .0.as_secs())]
    Silent(Duration),
}

impl Unconnected {
    /// As the error of an operation on a database.
    pub(super) fn of(self, operation: &str, address: &PostgresAddress) -> crate::error::Error {
        crate::error::Error::unavailable(operation, self.reason(address))
    }

    /// Why a database can't be used.
    pub(super) fn reason(&self, address: &PostgresAddress) -> Unavailable {
        match self {
            Unconnected::Server(error) => address.explain(error),
            Unconnected::Silent(waited) => address.silent(*waited),
            Unconnected::Machine(error) if is_shortage(error) => {
                Unavailable::OutOfResources(error.to_string())
            }
            Unconnected::Machine(error) => Unavailable::CannotOpen(error.to_string()),
        }
    }
}

/// What the server sends, piece by piece.
type Messages = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;

/// A transaction's first message.
pub(super) enum Preamble {
    /// It is sent together with the next message, ahead of it.
    Waits(String),
    Answered(Vec<SimpleQueryMessage>),
    /// The server runs nothing of what was sent with it.
    Failed,
    /// It failed before there was a transaction, as when it is cancelled at that moment: the server may have run what was
    /// sent with it, each statement by itself.
    Missing,
}

/// Connects to one server, which has twice the time that the address gives: once for the network, for which the client
/// waits no longer, and once for what is said after that, for which the client would wait without an end.
async fn connect_within_its_time(
    config: &Config,
    address: &PostgresAddress,
) -> Result<(tokio_postgres::Client, Messages), Unconnected> {
    let connecting = config.connect(address.tls());
    let (inner, mut connection) = match config.get_connect_timeout().map(|each| each.saturating_mul(2)) {
        Some(longest) => {
            timeout(longest, connecting).await.map_err(|_elapsed| Unconnected::Silent(longest))??
        }
        None => connecting.await?,
    };
    Ok((inner, Box::new(move |context| connection.poll_message(context))))
}

/// A connection. Its methods return when the server has answered.
pub(super) struct Client {
    /// Dropped first: then the wire says goodbye.
    inner: tokio_postgres::Client,
    wire: Wire,
}

/// A statement that is sent together with others.
pub(super) struct Asked<'a, P> {
    pub(super) text: &'a str,
    /// Where it has a name.
    pub(super) statement: Option<Statement>,
    pub(super) bound: Vec<(P, Type)>,
}

impl Client {
    /// Connects to the first of the address's servers that is good enough.
    ///
    /// # Errors
    /// The machine's, or that of the last server.
    pub(super) fn connect(address: &PostgresAddress) -> Result<Client, Unconnected> {
        let runtime = OwnRuntime::new()?;
        let mut last = Err(Unconnected::Machine(std::io::Error::other("the address names no server")));
        for (config, is_silent) in address.client_configs() {
            lookup::check_thread(&config)?;
            last = runtime.block_on(connect_within_its_time(&config, address))?;
            is_silent.store(matches!(last, Err(Unconnected::Silent(_))), Ordering::Relaxed);
            if last.is_ok() {
                break;
            }
        }
        let (inner, messages) = last?;
        Ok(Client { inner, wire: Wire { runtime, messages, beginning: None, heard: VecDeque::new() } })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Begins a transaction, together with the next message: that costs no round trip of its own. When it fails so does
    /// what is sent with it.
    pub(super) fn begin(&mut self, text: String) {
        self.wire.beginning = Some(Preamble::Waits(text));
    }

    /// Whether the server has said that a transaction has begun.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.wire.beginning, Some(Preamble::Answered(_)))
    }

    /// Whether the server ran statements by themselves, because their transaction had not begun.
    pub(super) fn is_missing_its_beginning(&self) -> bool {
        matches!(self.wire.beginning, Some(Preamble::Missing))
    }

    /// Whether something is to be sent ahead of the next message.
    pub(super) fn is_beginning(&self) -> bool {
        matches!(self.wire.beginning, Some(Preamble::Waits(_)))
    }

    /// What became of the beginning. What was not sent will not be.
    pub(super) fn take_beginning(&mut self) -> Option<Preamble> {
        self.wire.beginning.take()
    }

    /// What somebody notified this session of, waited for at most so long.
    pub(super) fn hear(&mut self, longest: Duration) -> Result<Option<Notification>, Error> {
        self.wire.hear(longest)
    }

    pub(super) fn simple_query(&mut self, text: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.wire.run(&self.inner, self.inner.simple_query(text))
    }

    pub(super) fn batch_execute(&mut self, text: &str) -> Result<(), Error> {
        self.wire.run(&self.inner, self.inner.batch_execute(text))
    }

    pub(super) fn prepare_typed(&mut self, text: &str, types: &[Type]) -> Result<Statement, Error> {
        self.wire.run(&self.inner, self.inner.prepare_typed(text, types))
    }

    pub(super) fn query_typed(
        &mut self,
        text: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.wire.run(&self.inner, self.inner.query_typed(text, parameters))
    }

    pub(super) fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        self.wire.run(&self.inner, self.inner.execute(statement, parameters))
    }

    pub(super) fn execute_typed(
        &mut self,
        text: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64, Error> {
        self.wire.run(&self.inner, self.inner.execute_typed(text, parameters))
    }

    /// Sends a statement, whose rows are then read with [`Client::next`].
    pub(super) fn ask<P: BorrowToSql + Send>(&mut self, asked: Asked<'_, P>) -> Result<Rows, Error> {
        self.wire.run(&self.inner, send(&self.inner, asked)).map(|stream| Rows(Box::pin(stream)))
    }

    pub(super) fn next(&mut self, rows: &mut Rows) -> Result<Option<Row>, Error> {
        self.wire.carry(rows.0.try_next())
    }

    /// Sends statements together, and returns the rows of each. They are executed in this order.
    pub(super) fn ask_all<P: BorrowToSql + Send>(&mut self, asked: Vec<Asked<'_, P>>) -> Answers {
        let failed = AtomicUsize::new(0);
        let rows = send_all(&self.inner, asked, &failed);
        self.wire.run(&self.inner, rows).map_err(|error| (failed.load(Ordering::Relaxed), error))
    }

    /// Sends statements together with the commit of their transaction, and returns the rows of each and what is known of the
    /// commit. When a statement fails the server takes the transaction back, and answers the commit with that. `None`: the
    /// connection had ended before anything was sent.
    pub(super) fn ask_all_and_commit<P: BorrowToSql + Send>(
        &mut self,
        asked: Vec<Asked<'_, P>>,
    ) -> (Answers, Option<Commit>) {
        if self.wire.has_ended() {
            return (self.ask_all(asked), None);
        }
        let failed = AtomicUsize::new(0);
        let inner = &self.inner;
        let mut commit = Commit::Unanswered;
        let rows = self.wire.run(inner, async {
            let (rows, answer) = join(send_all(inner, asked, &failed), inner.batch_execute("COMMIT")).await;
            commit = Commit::Answered(answer);
            rows
        });
        (rows.map_err(|error| (failed.load(Ordering::Relaxed), error)), Some(commit))
    }
}

/// The rows of statements, each sent when this is first polled. `failed` becomes the place of one that fails.
async fn send_all<P: BorrowToSql + Send>(
    client: &tokio_postgres::Client,
    asked: Vec<Asked<'_, P>>,
    failed: &AtomicUsize,
) -> Result<Vec<Vec<Row>>, Error> {
    let works = asked.into_iter().enumerate().map(|(place, asked)| async move {
        let rows = async { send(client, asked).await?.try_collect().await };
        rows.await.inspect_err(|_error| failed.store(place, Ordering::Relaxed))
    });
    try_join_all(works).await
}

/// What is known of a commit that was sent together with statements.
pub(super) enum Commit {
    Answered(Result<(), Error>),
    /// The connection broke before.
    Unanswered,
}

/// The rows of each of several statements, or the error of the first that failed, with its place.
pub(super) type Answers = Result<Vec<Vec<Row>>, (usize, Error)>;

/// The rows of an answer that is still coming.
pub(super) struct Rows(Pin<Box<RowStream>>);

async fn send<P: BorrowToSql>(
    client: &tokio_postgres::Client,
    Asked { text, statement, bound }: Asked<'_, P>,
) -> Result<RowStream, Error> {
    match statement {
        Some(statement) => client.query_raw(&statement, bound.into_iter().map(|(value, _kind)| value)).await,
        None => client.query_typed_raw(text, bound).await,
    }
}

struct Wire {
    runtime: OwnRuntime,
    messages: Messages,
    /// Of the transaction that goes on, or is to.
    beginning: Option<Preamble>,
    /// What came while something else was waited for, and nobody has asked for yet.
    heard: VecDeque<Notification>,
}

impl Wire {
    /// Carries messages until a work is done, and ahead of it the beginning that waits for it.
    fn run<T: Send>(
        &mut self,
        inner: &tokio_postgres::Client,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let Some(Preamble::Waits(text)) = &mut self.beginning else { return self.carry(work) };
        let text = std::mem::take(text);
        // Also when the work panics: then there is something to end.
        self.beginning = Some(Preamble::Failed);
        let mut answer = Preamble::Failed;
        let begin = async {
            answer = Preamble::Answered(inner.simple_query(&text).await?);
            Ok(())
        };
        // Each sends when it is first looked at, in this order.
        let both = self.carry(async { Ok(join(begin, work).await) });
        let done = match both {
            Ok((Ok(()), done)) => done,
            Ok((Err(error), done)) => {
                if !is_taken_back(&done) {
                    answer = Preamble::Missing;
                }
                Err(error)
            }
            Err(error) => Err(error),
        };
        self.beginning = Some(answer);
        done
    }

    /// Carries messages both ways until a work is done.
    fn carry<T: Send>(&mut self, work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        let mut work = pin!(work);
        let Wire { runtime, messages, heard, .. } = self;
        let carried = runtime.block_on(poll_fn(|context| {
            while let Poll::Ready(Some(message)) = messages(context) {
                match message {
                    Ok(message) => keep(message, heard),
                    // What is waited for will not come.
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            work.as_mut().poll(context)
        }));
        carried.unwrap_or_else(|error| {
            self.give_up(&error);
            closed(work)
        })
    }

    /// Closes a connection that nobody can wait for.
    fn give_up(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "no thread can be started to wait for the database server: a connection is given up");
        self.close();
    }

    /// Closes the connection: every request is answered with that at once.
    fn close(&mut self) {
        self.messages = Box::new(|_context| Poll::Ready(None));
    }

    /// Whether the server or the network ended the connection, as far as this machine has heard.
    fn has_ended(&mut self) -> bool {
        loop {
            let Wire { runtime, messages, heard, .. } = self;
            match runtime.block_on(poll_fn(|context| Poll::Ready(messages(context)))) {
                Ok(Poll::Ready(Some(Ok(message)))) => keep(message, heard),
                Ok(Poll::Pending) => return false,
                Ok(Poll::Ready(Some(Err(_)) | None)) => break,
                Err(error) => {
                    self.give_up(&error);
                    return true;
                }
            }
        }
        self.close();
        true
    }

    fn hear(&mut self, longest: Duration) -> Result<Option<Notification>, Error> {
        let Wire { runtime, messages, heard, .. } = self;
        let hearing = poll_fn(|context| {
            loop {
                if let Some(notification) = heard.pop_front() {
                    return Poll::Ready(Ok(Some(notification)));
                }
                match messages(context) {
                    Poll::Ready(Some(Ok(message))) => keep(message, heard),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(None)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        let heard = runtime.block_on(async { timeout(longest, hearing).await.unwrap_or(Ok(None)) });
        heard.unwrap_or_else(|error| {
            self.give_up(&error);
            Ok(None)
        })
    }
}

/// Whether the server refused what was sent behind a beginning that has failed, or is gone itself.
fn is_taken_back<T>(done: &Result<T, Error>) -> bool {
    match done {
        Ok(_done) => false,
        Err(error) => {
            // It looks for a statement's name first, which another connection's session may not have.
            let refusals = [&SqlState::IN_FAILED_SQL_TRANSACTION, &SqlState::INVALID_SQL_STATEMENT_NAME];
            error.code().is_some_and(|code| refusals.contains(&code))
                || Failure::of(error) == Failure::ConnectionLost
        }
    }
}

impl Drop for Wire {
    /// Nobody sends any more: the server is told so.
    fn drop(&mut self) {
        let Wire { runtime, messages, .. } = self;
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
            tracing::debug!(%error, "a connection to the database server ends without a goodbye");
        }
    }
}

/// What becomes of a work whose connection was closed: every request is answered with that at once.
fn closed<T>(mut work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> Result<T, Error> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::yield_now();
    }
}

fn keep(message: AsyncMessage, heard: &mut VecDeque<Notification>) {
    match message {
        AsyncMessage::Notification(notification) => {
            heard.push_back(notification);
            heard.truncate(HEARD_MAX);
        }
        AsyncMessage::Notice(notice) => tracing::debug!("{}: {}", notice.severity(), notice.message()),
        _other => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::panic::{AssertUnwindSafe, catch_unwind};

    use postgres::types::{IsNull, to_sql_checked};
    use windlass_test_server::SharedServer;

    use super::*;

    /// A value that can't be sent.
    #[derive(Debug)]
    struct Panics;

    impl ToSql for Panics {
        fn to_sql(
            &self,
            _kind: &Type,
            _out: &mut postgres::types::private::BytesMut,
        ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
            panic!("in the middle of a message")
        }

        fn accepts(_kind: &Type) -> bool {
            true
        }

        to_sql_checked!();
    }

    #[test]
    fn a_beginning_is_sent_also_when_the_statement_that_goes_with_it_panics() {
        let address = PostgresAddress::parse(SharedServer::get().url(), &|_name| None).unwrap();
        let Ok(mut client) = Client::connect(&address) else { panic!("a server") };
        client.begin("BEGIN".to_owned());
        let sent = AssertUnwindSafe(|| client.execute_typed("SELECT $1", &[(&Panics, Type::TEXT)]));
        assert!(catch_unwind(sent).is_err());
        assert!(matches!(client.take_beginning(), Some(Preamble::Failed)), "there is something to end");
    }
}
