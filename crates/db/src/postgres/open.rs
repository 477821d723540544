//! Opens a database on a server: what it is, what it allows, and its tables.

use super::client::Client;
use super::connection::PostgresConnection;
use super::error::from_postgres;
use super::preamble::{IsAsynchronous, Purpose};
use super::session::{Begun, Sessions, Transaction};
use super::token::Naming;
use super::{PostgresAddress, PostgresOptions};
use crate::error::{Error, Result, Unavailable};
use crate::migrate::{migrate, version};
use crate::{Connection, OpenMode, Tables};
use windlass_system::clock::Clock;

/// The oldest version whose maintainers still mend it.
const SERVER_VERSION_MIN: i64 = 140_000;
const OPENING: &str = "open the database";
/// The lock under which tables are made: one process at a time, whatever the schema.
const MIGRATION_LOCK: i64 = 0x0077_696e_646c_6173;

/// Connects, checks the server, and brings the tables to the version that this program knows.
pub(super) fn open(
    address: &PostgresAddress,
    tables: &'static Tables,
    options: &PostgresOptions,
) -> Result<Sessions> {
    // The pool would only say that it waited in vain: the first connection is made by hand.
    let mut client = Client::connect(address).map_err(|error| error.of(OPENING, address))?;
    let is_asynchronous = check_server(&mut client)?;
    lead(&options.clock, |question| client.query_typed(question, &[]))?;
    drop(client);
    let PostgresOptions { durability, mode, clock, random } = options;
    let sessions = Sessions::new(address, tables, clock, random, *durability, is_asynchronous)?;
    let found = match (find_schema(&sessions)?, mode) {
        (SchemaState::Usable, OpenMode::Create | OpenMode::Existing) => current_version(&sessions)?,
        (SchemaState::Missing, OpenMode::Existing) => None,
        (SchemaState::Missing, OpenMode::Create) => {
            may_make_schema(&sessions)?;
            None
        }
    };
    match (found, mode) {
        (Some(version), OpenMode::Create | OpenMode::Existing) if version == tables.version() => {}
        (None, OpenMode::Existing) => {
            let place = format!("schema `{}` of {address}", address.schema());
            return Err(Error::unavailable(OPENING, Unavailable::NoTables(place)));
        }
        (None, OpenMode::Create) | (Some(_), OpenMode::Create | OpenMode::Existing) => {
            migrate_tables(&sessions)?
        }
    }
    Ok(sessions)
}

fn check_server(client: &mut Client) -> Result<IsAsynchronous> {
    let row = client
        .query_typed(
            "SELECT CAST(current_setting('server_version_num') AS BIGINT), current_setting('server_version'),
                    current_setting('synchronous_commit'), getdatabaseencoding()",
            &[],
        )
        .map_err(|error| from_postgres(OPENING, &error))?
        .pop()
        .ok_or_else(|| Error::internal(OPENING, "the server did not say what it is"))?;
    let (number, name): (i64, String) = (row.get(0), row.get(1));
    if number < SERVER_VERSION_MIN {
        let detail = format!("its server is PostgreSQL {name}, and 14 is the oldest that can be used");
        return Err(Error::unavailable(OPENING, Unavailable::CannotOpen(detail)));
    }
    let encoding: String = row.get(3);
    if encoding != "UTF8" {
        let detail = format!("its encoding is {encoding}, and only UTF8 keeps every text");
        return Err(Error::unavailable(OPENING, Unavailable::CannotOpen(detail)));
    }
    let synchronous: String = row.get(2);
    Ok(if synchronous == "off" { IsAsynchronous::Yes } else { IsAsynchronous::No })
}

/// Sets a led clock by the server's. The answer was on its way for half of the time at most.
pub(super) fn lead(
    clock: &Clock,
    ask: impl FnOnce(&str) -> std::result::Result<Vec<postgres::Row>, postgres::Error>,
) -> Result<()> {
    let asked_ms = clock.monotonic_ms();
    let rows = ask("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")
        .map_err(|error| from_postgres("read the database's clock", &error))?;
    let answered_ms = clock.monotonic_ms();
    if let Some(row) = rows.first() {
        clock.lead(row.get(0), asked_ms + (answered_ms - asked_ms) / 2);
    }
    Ok(())
}

/// What is there of a schema.
enum SchemaState {
    Missing,
    /// By this role.
    Usable,
}

/// A schema that the role may not use looks as if it were empty, and tables would be made elsewhere.
fn find_schema(sessions: &Sessions) -> Result<SchemaState> {
    let schema = sessions.address.schema();
    let mut session = sessions.connection(OPENING)?;
    let rows = session.client.query_typed(
        "SELECT has_schema_privilege(oid, 'USAGE'), CAST(current_user AS TEXT)
         FROM pg_catalog.pg_namespace WHERE nspname = $1",
        &[(&schema, postgres::types::Type::TEXT)],
    );
    let rows = rows.map_err(|error| from_postgres(OPENING, &error))?;
    match rows.first().map(|row| (row.get::<_, bool>(0), row.get::<_, String>(1))) {
        None => Ok(SchemaState::Missing),
        Some((true, _)) => Ok(SchemaState::Usable),
        Some((false, role)) => {
            let lacking = format!(
                "permission denied for schema {schema} (GRANT USAGE ON SCHEMA {schema} TO {role}, and on its \
                 tables)"
            );
            Err(Error::unavailable(OPENING, Unavailable::Forbidden(lacking)))
        }
    }
}

/// Says what is missing before the server refuses something else for lack of it.
fn may_make_schema(sessions: &Sessions) -> Result<()> {
    let mut session = sessions.connection(OPENING)?;
    let rows = session
        .client
        .query_typed("SELECT has_database_privilege(current_database(), 'CREATE')", &[])
        .map_err(|error| from_postgres(OPENING, &error))?;
    if rows.first().is_none_or(|row| row.get(0)) {
        return Ok(());
    }
    let lacking = format!(
        "schema {} does not exist, and to make it the role needs the right CREATE on the database {}",
        sessions.address.schema(),
        sessions.address.database()
    );
    Err(Error::unavailable(OPENING, Unavailable::Forbidden(lacking)))
}

fn current_version(sessions: &Sessions) -> Result<Option<i64>> {
    let Begun { mut session, naming, .. } = sessions.begin(OPENING, Purpose::Read, Naming::Unnamed)?;
    let found = version(&mut PostgresConnection::new(&mut session, naming, &sessions.statements));
    let _has_begun = sessions.end_preamble(&mut session, naming, Transaction::Open);
    if session.client.batch_execute("ROLLBACK").is_err() {
        session.discard();
    }
    found
}

/// Makes the schema and its tables, or what is missing of them, all or nothing.
fn migrate_tables(sessions: &Sessions) -> Result<()> {
    let Begun { mut session, naming, .. } = sessions.begin(OPENING, Purpose::Write, Naming::Unnamed)?;
    let migrated = make(sessions, &mut PostgresConnection::new(&mut session, naming, &sessions.statements));
    let _has_begun = sessions.end_preamble(&mut session, naming, Transaction::Open);
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = session.client.batch_execute(end).map_err(|error| from_postgres(OPENING, &error));
    if ended.is_err() {
        session.discard();
    }
    migrated.and(ended)
}

fn make(sessions: &Sessions, connection: &mut PostgresConnection<'_>) -> Result<()> {
    // An index over a large table takes what it takes.
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
