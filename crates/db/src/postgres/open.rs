//! Opens a database on a server: checks the server and the schema, and migrates the tables.

use super::client::Client;
use super::connection::PostgresConnection;
use super::error::from_postgres;
use super::preamble::{Purpose, ServerCommits};
use super::session::{BegunTransaction, Sessions, TransactionState};
use super::token::Naming;
use super::{PostgresAddress, PostgresOptions};
use crate::error::{Error, Result, Unavailable};
use crate::migrate::{migrate, version};
use crate::{Connection, OpenMode, Tables};
use windlass_system::clock::Clock;

/// PostgreSQL 14.
const SERVER_VERSION_MIN: i64 = 140_000;
const OPERATION: &str = "open the database";
/// The advisory lock for migrations, which one process at a time has, for all schemas.
const MIGRATION_LOCK: i64 = 0x0077_696e_646c_6173;

/// Connects, checks the server, and brings the tables to the version that this program knows.
pub(super) fn open(
    address: &PostgresAddress,
    tables: &'static Tables,
    options: &PostgresOptions,
) -> Result<Sessions> {
    // Without the pool, which tries again for a while and reports less.
    let mut client = Client::connect(address).map_err(|error| error.into_error(OPERATION, address))?;
    let server_commits = check_server(&mut client)?;
    synchronize_clock(&options.clock, |question| client.query_typed(question, &[]))?;
    drop(client);
    let PostgresOptions { durability, mode, clock, random } = options;
    let sessions = Sessions::new(address, tables, clock, random, *durability, server_commits)?;
    let found = match (find_schema(&sessions)?, mode) {
        (SchemaState::Usable, OpenMode::Create | OpenMode::Existing) => current_version(&sessions)?,
        (SchemaState::Missing, OpenMode::Existing) => None,
        (SchemaState::Missing, OpenMode::Create) => {
            check_may_create_schema(&sessions)?;
            None
        }
    };
    match (found, mode) {
        (Some(version), OpenMode::Create | OpenMode::Existing) if version == tables.version() => {}
        (None, OpenMode::Existing) => {
            let place = format!("schema `{}` of {address}", address.schema());
            return Err(Error::unavailable(OPERATION, Unavailable::NoTables(place)));
        }
        (None, OpenMode::Create) | (Some(_), OpenMode::Create | OpenMode::Existing) => {
            migrate_tables(&sessions)?
        }
    }
    Ok(sessions)
}

fn check_server(client: &mut Client) -> Result<ServerCommits> {
    let row = client
        .query_typed(
            "SELECT CAST(current_setting('server_version_num') AS BIGINT), current_setting('server_version'),
                    current_setting('synchronous_commit'), getdatabaseencoding()",
            &[],
        )
        .map_err(|error| from_postgres(OPERATION, &error))?
        .pop()
        .ok_or_else(|| Error::internal(OPERATION, "the server did not report its version"))?;
    let (number, name): (i64, String) = (row.get(0), row.get(1));
    if number < SERVER_VERSION_MIN {
        let detail = format!("its server is PostgreSQL {name}, and 14 is the oldest that can be used");
        return Err(Error::unavailable(OPERATION, Unavailable::CannotOpen(detail)));
    }
    let encoding: String = row.get(3);
    if encoding != "UTF8" {
        let detail = format!("its encoding is {encoding}, and only UTF8 keeps every text");
        return Err(Error::unavailable(OPERATION, Unavailable::CannotOpen(detail)));
    }
    let synchronous: String = row.get(2);
    Ok(if synchronous == "off" { ServerCommits::Asynchronous } else { ServerCommits::Synchronous })
}

/// Sets an adjustable clock to the server's time.
pub(super) fn synchronize_clock(
    clock: &Clock,
    ask: impl FnOnce(&str) -> std::result::Result<Vec<postgres::Row>, postgres::Error>,
) -> Result<()> {
    let asked_ms = clock.monotonic_ms();
    let rows = ask("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")
        .map_err(|error| from_postgres("read the database's clock", &error))?;
    let answered_ms = clock.monotonic_ms();
    if let Some(row) = rows.first() {
        clock.adjust(row.get(0), asked_ms..=answered_ms);
    }
    Ok(())
}

/// Whether the schema of the address exists.
enum SchemaState {
    Missing,
    /// It exists, and this role may use it.
    Usable,
}

/// Finds out whether the schema exists. Returns an error if the role may not use it: such a schema looks empty, and the tables
/// would be created in another one.
fn find_schema(sessions: &Sessions) -> Result<SchemaState> {
    let schema = sessions.address.schema();
    let mut session = sessions.connection(OPERATION)?;
    let rows = session.client.query_typed(
        "SELECT has_schema_privilege(oid, 'USAGE'), CAST(current_user AS TEXT)
         FROM pg_catalog.pg_namespace WHERE nspname = $1",
        &[(&schema, postgres::types::Type::TEXT)],
    );
    let rows = rows.map_err(|error| from_postgres(OPERATION, &error))?;
    match rows.first().map(|row| (row.get::<_, bool>(0), row.get::<_, String>(1))) {
        None => Ok(SchemaState::Missing),
        Some((true, _)) => Ok(SchemaState::Usable),
        Some((false, role)) => {
            let lacking = format!(
                "permission denied for schema {schema} (GRANT USAGE ON SCHEMA {schema} TO {role}, and on its \
                 tables)"
            );
            Err(Error::unavailable(OPERATION, Unavailable::Forbidden(lacking)))
        }
    }
}

/// Checks that the role may create the schema, for a clearer message than the server's.
fn check_may_create_schema(sessions: &Sessions) -> Result<()> {
    let mut session = sessions.connection(OPERATION)?;
    let rows = session
        .client
        .query_typed("SELECT has_database_privilege(current_database(), 'CREATE')", &[])
        .map_err(|error| from_postgres(OPERATION, &error))?;
    if rows.first().is_none_or(|row| row.get(0)) {
        return Ok(());
    }
    let lacking = format!(
        "schema {} does not exist, and to create it the role needs the privilege CREATE on the database {}",
        sessions.address.schema(),
        sessions.address.database()
    );
    Err(Error::unavailable(OPERATION, Unavailable::Forbidden(lacking)))
}

fn current_version(sessions: &Sessions) -> Result<Option<i64>> {
    let BegunTransaction { mut session, naming, .. } =
        sessions.begin(OPERATION, Purpose::Read, Naming::Unnamed)?;
    let found = version(&mut PostgresConnection::new(&mut session, naming, &sessions.statements));
    let _has_begun = sessions.end_preamble(&mut session, naming, TransactionState::Open);
    if session.client.batch_execute("ROLLBACK").is_err() {
        session.discard();
    }
    found
}

/// Creates the schema and the tables, or applies missing migrations, in one transaction.
fn migrate_tables(sessions: &Sessions) -> Result<()> {
    let BegunTransaction { mut session, naming, .. } =
        sessions.begin(OPERATION, Purpose::Write, Naming::Unnamed)?;
    let migrated =
        make_tables(sessions, &mut PostgresConnection::new(&mut session, naming, &sessions.statements));
    let _has_begun = sessions.end_preamble(&mut session, naming, TransactionState::Open);
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = session.client.batch_execute(end).map_err(|error| from_postgres(OPERATION, &error));
    if ended.is_err() {
        session.discard();
    }
    migrated.and(ended)
}

fn make_tables(sessions: &Sessions, connection: &mut PostgresConnection<'_>) -> Result<()> {
    // Creating an index on a large table may take long.
    connection.batch("SET LOCAL statement_timeout = 0")?;
    connection.execute("SELECT pg_advisory_xact_lock($1)", &[MIGRATION_LOCK.into()])?;
    let schema = sessions.address.schema();
    let is_there = crate::first(
        connection,
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1",
        &[schema.into()],
        |row| row.integer(0),
    )?;
    if is_there.is_none() {
        connection.batch(&format!("CREATE SCHEMA \"{schema}\""))?;
    }
    let name = uuid::Uuid::now_v7().simple().to_string();
    migrate(connection, sessions.tables, sessions.clock.now_ms(), &name).map(|_versions| ())
}
