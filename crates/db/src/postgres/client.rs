//! A blocking client of a server, made of the asynchronous client and a small runtime that drives it.
//!
//! The blocking client of the library `postgres` sends a statement only after the answer to the one before. This client can
//! send several statements together, so that they cost one round trip.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::{join, try_join_all};
use postgres::types::{BorrowToSql, ToSql, Type};
use postgres::{Error, Row, SimpleQueryMessage, Statement};
use tokio::time::timeout;
use tokio_postgres::{Config, Notification, RowStream};

use super::driver::{Driver, Messages, Preamble};
use super::runtime::OwnRuntime;
use super::{PostgresAddress, lookup};
use crate::error::Unavailable;
use windlass_system::shortage::is_shortage;

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// An error of the operating system, for example no more open files.
    #[error(transparent)]
    Machine(#[from] std::io::Error),
    #[error(transparent)]
    Server(#[from] Error),
    /// The server accepted the connection and did not answer. A server that is paused or hangs does that.
    #[error("it has not answered for {} s", .0.as_secs())]
    Silent(Duration),
}

impl ConnectError {
    /// Converts it into the error of an operation.
    pub(super) fn into_error(self, operation: &str, address: &PostgresAddress) -> crate::error::Error {
        crate::error::Error::unavailable(operation, self.reason(address))
    }

    /// Converts it into the reason why the database can't be used.
    pub(super) fn reason(&self, address: &PostgresAddress) -> Unavailable {
        match self {
            ConnectError::Server(error) => address.explain(error),
            ConnectError::Silent(waited) => address.silent(*waited),
            ConnectError::Machine(error) if is_shortage(error) => {
                Unavailable::OutOfResources(error.to_string())
            }
            ConnectError::Machine(error) => Unavailable::CannotOpen(error.to_string()),
        }
    }
}

/// Connects to one server, in at most twice the timeout of the address. The client library applies the timeout to the network
/// connection only, and would wait for the login without a limit. So the login gets the same time again.
async fn connect_with_timeout(
    config: &Config,
    address: &PostgresAddress,
) -> Result<(tokio_postgres::Client, Messages), ConnectError> {
    let connecting = config.connect(address.tls());
    let (inner, mut connection) = match config.get_connect_timeout().map(|each| each.saturating_mul(2)) {
        Some(longest) => {
            timeout(longest, connecting).await.map_err(|_elapsed| ConnectError::Silent(longest))??
        }
        None => connecting.await?,
    };
    Ok((inner, Box::new(move |context| connection.poll_message(context))))
}

/// A connection. Its methods return when the server has answered.
pub(super) struct Client {
    /// Dropped first. Then the driver tells the server that the connection ends.
    inner: tokio_postgres::Client,
    driver: Driver,
}

/// A statement with its parameters.
pub(super) struct StatementCall<'a, P> {
    pub(super) text: &'a str,
    /// The prepared statement, if it has a name.
    pub(super) statement: Option<Statement>,
    pub(super) bound: Vec<(P, Type)>,
}

impl Client {
    /// Connects to the first server of the address that accepts the connection.
    ///
    /// # Errors
    /// The error of the last server, or of the operating system.
    pub(super) fn connect(address: &PostgresAddress) -> Result<Client, ConnectError> {
        let runtime = OwnRuntime::new()?;
        let mut last = Err(ConnectError::Machine(std::io::Error::other("the address names no server")));
        for (config, is_silent) in address.client_configs() {
            lookup::check_thread(&config)?;
            last = runtime.block_on(connect_with_timeout(&config, address))?;
            is_silent.store(matches!(last, Err(ConnectError::Silent(_))), Ordering::Relaxed);
            if last.is_ok() {
                break;
            }
        }
        let (inner, messages) = last?;
        Ok(Client { inner, driver: Driver::new(runtime, messages) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Begins a transaction. The preamble is sent together with the next message, so it costs no round trip. If it fails,
    /// that message fails too.
    pub(super) fn begin(&mut self, text: String) {
        self.driver.preamble = Some(Preamble::Unsent(text));
    }

    /// Whether the server has answered that the transaction has begun.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.driver.preamble, Some(Preamble::Answered(_)))
    }

    /// Whether the server may have run statements outside a transaction, because the preamble failed.
    pub(super) fn is_without_transaction(&self) -> bool {
        matches!(self.driver.preamble, Some(Preamble::NoTransaction))
    }

    /// Whether a preamble waits for the next message.
    pub(super) fn has_unsent_preamble(&self) -> bool {
        matches!(self.driver.preamble, Some(Preamble::Unsent(_)))
    }

    /// Takes the preamble and its state. A preamble that was not sent will not be sent.
    pub(super) fn take_preamble(&mut self) -> Option<Preamble> {
        self.driver.preamble.take()
    }

    /// Waits for a notification, at most for `longest`.
    pub(super) fn next_notification(&mut self, longest: Duration) -> Result<Option<Notification>, Error> {
        self.driver.next_notification(longest)
    }

    pub(super) fn simple_query(&mut self, text: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.driver.run(&self.inner, self.inner.simple_query(text))
    }

    pub(super) fn batch_execute(&mut self, text: &str) -> Result<(), Error> {
        self.driver.run(&self.inner, self.inner.batch_execute(text))
    }

    pub(super) fn prepare_typed(&mut self, text: &str, types: &[Type]) -> Result<Statement, Error> {
        self.driver.run(&self.inner, self.inner.prepare_typed(text, types))
    }

    pub(super) fn query_typed(
        &mut self,
        text: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.driver.run(&self.inner, self.inner.query_typed(text, parameters))
    }

    pub(super) fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        self.driver.run(&self.inner, self.inner.execute(statement, parameters))
    }

    pub(super) fn execute_typed(
        &mut self,
        text: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64, Error> {
        self.driver.run(&self.inner, self.inner.execute_typed(text, parameters))
    }

    /// Sends a statement. Its rows are then read with [`Client::next`].
    pub(super) fn send<P: BorrowToSql + Send>(&mut self, calls: StatementCall<'_, P>) -> Result<Rows, Error> {
        self.driver.run(&self.inner, send(&self.inner, calls)).map(|stream| Rows(Box::pin(stream)))
    }

    pub(super) fn next(&mut self, rows: &mut Rows) -> Result<Option<Row>, Error> {
        self.driver.drive(rows.0.try_next())
    }

    /// Sends statements together, and returns the rows of each. The server executes them in this order.
    pub(super) fn send_all<P: BorrowToSql + Send>(&mut self, calls: Vec<StatementCall<'_, P>>) -> AllRows {
        let failed = AtomicUsize::new(0);
        let rows = send_all(&self.inner, calls, &failed);
        self.driver.run(&self.inner, rows).map_err(|error| (failed.load(Ordering::Relaxed), error))
    }

    /// Sends statements together with the commit of their transaction. Returns the rows of each statement, and what is known
    /// about the commit. If a statement fails, the commit rolls the transaction back. `None`: the connection had ended
    /// before anything was sent.
    pub(super) fn send_all_and_commit<P: BorrowToSql + Send>(
        &mut self,
        calls: Vec<StatementCall<'_, P>>,
    ) -> (AllRows, Option<Commit>) {
        if self.driver.has_ended() {
            return (self.send_all(calls), None);
        }
        let failed = AtomicUsize::new(0);
        let inner = &self.inner;
        let mut commit = Commit::Unanswered;
        let rows = self.driver.run(inner, async {
            let (rows, answer) = join(send_all(inner, calls, &failed), inner.batch_execute("COMMIT")).await;
            commit = Commit::Answered(answer);
            rows
        });
        (rows.map_err(|error| (failed.load(Ordering::Relaxed), error)), Some(commit))
    }
}

/// Sends all statements when it is first polled, and returns their rows. `failed` becomes the index of one that fails.
async fn send_all<P: BorrowToSql + Send>(
    client: &tokio_postgres::Client,
    calls: Vec<StatementCall<'_, P>>,
    failed: &AtomicUsize,
) -> Result<Vec<Vec<Row>>, Error> {
    let sent = calls.into_iter().enumerate().map(|(index, calls)| async move {
        let rows = async { send(client, calls).await?.try_collect().await };
        rows.await.inspect_err(|_error| failed.store(index, Ordering::Relaxed))
    });
    try_join_all(sent).await
}

/// What is known about a commit that was sent together with statements.
pub(super) enum Commit {
    Answered(Result<(), Error>),
    /// The connection broke before the answer came.
    Unanswered,
}

/// The rows of each of several statements, or the index and the error of one that failed.
pub(super) type AllRows = Result<Vec<Vec<Row>>, (usize, Error)>;

/// The rows of a statement, which are still being received.
pub(super) struct Rows(Pin<Box<RowStream>>);

async fn send<P: BorrowToSql>(
    client: &tokio_postgres::Client,
    StatementCall { text, statement, bound }: StatementCall<'_, P>,
) -> Result<RowStream, Error> {
    match statement {
        Some(statement) => client.query_raw(&statement, bound.into_iter().map(|(value, _kind)| value)).await,
        None => client.query_typed_raw(text, bound).await,
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
        assert!(matches!(client.take_preamble(), Some(Preamble::Failed)), "there is something to end");
    }
}
