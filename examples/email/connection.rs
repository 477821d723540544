//! A connection of this program's own to the database of Windlass: a SQLite file, or a PostgreSQL server. Programs
//! that use one of them need half of this file.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass::{PostgresAddress, is_postgres};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLES: &str = include_str!("tables.sql");

const ADD_USER: &str = "
    INSERT INTO users (address, since_ms) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING";

/// A mail server that does not answer is asked again after 1 s, 2 s, 4 s and so on, up to 10 minutes, for about a day.
const ENQUEUE: &str = r#"
    INSERT INTO jobs (queue, kind, payload, max_attempts, retry)
    VALUES ('mail', 'email', $1, 150,
            '{"delay_ms": 1000, "factor": 2.0, "max_delay_ms": 600000, "jitter": 0.1}')"#;

const WAS_SENT: &str = "SELECT count(*) FROM sent_mails WHERE message_id = $1";

const RECORD: &str = "
    INSERT INTO sent_mails (message_id, sent_ms) VALUES ($1, $2) ON CONFLICT (message_id) DO NOTHING";

pub(crate) enum Connection {
    File(rusqlite::Connection),
    Server(postgres::Client),
}

impl Connection {
    pub(crate) fn open(database: &str) -> Result<Connection> {
        if !is_postgres(database) {
            let file = rusqlite::Connection::open(database)?;
            file.busy_timeout(Duration::from_secs(20))?;
            return Ok(Connection::File(file));
        }
        let address = PostgresAddress::parse(database, &|name| std::env::var(name).ok())?;
        let mut server = address.config().connect(address.tls())?;
        server.batch_execute(&format!("SET search_path = {}", address.schema()))?;
        Ok(Connection::Server(server))
    }

    pub(crate) fn create_tables(&mut self) -> Result<()> {
        match self {
            Connection::File(file) => file.execute_batch(TABLES)?,
            Connection::Server(server) => server.batch_execute(TABLES)?,
        }
        Ok(())
    }

    /// Writes a user and the mail that welcomes them in one transaction. Returns whether the user is new.
    pub(crate) fn add_user(&mut self, address: &str, payload: &str) -> Result<bool> {
        match self {
            Connection::File(file) => {
                let transaction = file.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                let is_new = transaction.execute(ADD_USER, (address, now_ms()))? == 1;
                if is_new {
                    transaction.execute(ENQUEUE, [payload])?;
                }
                transaction.commit()?;
                Ok(is_new)
            }
            Connection::Server(server) => {
                let mut transaction = server.transaction()?;
                let is_new = transaction.execute(ADD_USER, &[&address, &now_ms()])? == 1;
                if is_new {
                    transaction.execute(ENQUEUE, &[&payload])?;
                }
                transaction.commit()?;
                Ok(is_new)
            }
        }
    }

    /// Whether a mail is recorded as sent.
    pub(crate) fn was_sent(&mut self, message_id: &str) -> Result<bool> {
        let count: i64 = match self {
            Connection::File(file) => file.query_row(WAS_SENT, [message_id], |row| row.get(0))?,
            Connection::Server(server) => server.query_one(WAS_SENT, &[&message_id])?.get(0),
        };
        Ok(count > 0)
    }

    /// Records that a mail was sent, in a transaction of its own.
    pub(crate) fn record_sent(&mut self, message_id: &str) -> Result<()> {
        match self {
            Connection::File(file) => file.execute(RECORD, (message_id, now_ms())).map(drop)?,
            Connection::Server(server) => server.execute(RECORD, &[&message_id, &now_ms()]).map(drop)?,
        }
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
