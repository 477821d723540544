//! Which server, database and schema, and how to get in: a URL, completed by what PostgreSQL's users keep in
//! their environment and their home, by libpq's rules.
//!
//! The first of these that has a parameter decides it: the address, the service that it or `PGSERVICE` names,
//! the environment (`PGHOST` and so on), libpq's default. A password that is nowhere among them is looked
//! up in the password file. What differs from libpq is said where it is done, and is always stricter.

mod config;
mod error;
mod explain;
mod files;
mod hosts;
mod parameters;
mod passfile;
mod service;
mod settings;
mod shown;
mod tls;
mod url;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres_rustls::MakeRustlsConnect;

pub use error::AddressError;
pub use url::is_postgres;

use hosts::Server;
use settings::Settings;
use tls::{Tls, Trust};

/// The schema of the tables when none is named.
const SCHEMA_DEFAULT: &str = "windlass";
/// The longest name of a schema. Names of channels are made of it, and PostgreSQL cuts those at 63 bytes.
const SCHEMA_MAX_BYTES: usize = 40;

/// A database on a server, as a user names it. Shown, it has no password.
#[derive(Clone)]
pub struct PostgresAddress {
    /// How to connect, but for the servers.
    config: tokio_postgres::Config,
    connector: MakeRustlsConnect,
    trust: Trust,
    servers: Vec<Server>,
    /// Which of the servers took the last connection and said nothing.
    are_silent: Arc<[AtomicBool]>,
    user: String,
    database: String,
    schema: String,
    password_source: Option<String>,
}

impl PostgresAddress {
    /// Reads `postgres://…`, and the files that it or the environment names. `variable` looks a name up in the
    /// environment, so that tests own it.
    ///
    /// # Errors
    /// What is wrong with it, where, and what to do.
    pub fn parse(
        url: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<PostgresAddress, AddressError> {
        let mut settings = url::read(url)?;
        service::fill(&mut settings, variable)?;
        settings.fill_from_environment(variable)?;
        let servers = hosts::servers(&settings)?;
        let user = user(&settings)?;
        let database = settings.text("dbname").unwrap_or(&user).to_owned();
        let schema = schema(&settings)?;
        let (password, password_source) = match settings.text("password") {
            Some(password) => {
                (Some(password.to_owned()), settings.source("password").map(settings::Source::place))
            }
            None => match passfile::look_up(&settings, variable, &servers, &database, &user)? {
                Some(found) => {
                    let source = format!("in the password file {}", found.file.display());
                    (Some(found.password).filter(|password| !password.is_empty()), Some(source))
                }
                None => (None, None),
            },
        };
        let Tls { connector, ssl_mode, trust } = tls::tls(&settings, variable)?;
        let mut config = config::config(&settings, &servers, ssl_mode)?;
        config.user(user.as_str()).dbname(database.as_str());
        if let Some(password) = password {
            config.password(password);
        }
        let are_silent = servers.iter().map(|_server| AtomicBool::new(false)).collect();
        Ok(PostgresAddress {
            config,
            connector,
            trust,
            servers,
            are_silent,
            user,
            database,
            schema,
            password_source,
        })
    }

    /// A URL as it may be shown, and typed again: without the password in it. One that is none is returned
    /// as it is.
    #[must_use]
    pub fn redacted(url: &str) -> String {
        url::redacted(url)
    }

    /// A URL as PostgreSQL's own programs take it: without the password, and without what is Windlass's.
    #[must_use]
    pub fn for_libpq(url: &str) -> String {
        url::for_libpq(url)
    }

    /// Whether a URL has a password in it.
    #[must_use]
    pub fn has_password(url: &str) -> bool {
        url::has_password(url)
    }

    /// The schema of the tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The role that connects.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The database on the server.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Where the password is from, as part of a sentence, if there is one.
    #[must_use]
    pub fn password_source(&self) -> Option<&str> {
        self.password_source.as_deref()
    }

    /// How to connect, complete.
    #[must_use]
    pub fn config(&self) -> postgres::Config {
        config::at(&self.config, &self.servers).into()
    }

    /// The same for the asynchronous client, for each server by itself, and whether it was silent when it was last
    /// connected to. Those are tried after the others: else each connection would wait for them once more.
    pub(super) fn client_configs(&self) -> Vec<(tokio_postgres::Config, &AtomicBool)> {
        let config_at = |server| config::at(&self.config, std::slice::from_ref(server));
        let mut configs: Vec<_> = self.servers.iter().map(config_at).zip(&*self.are_silent).collect();
        configs.sort_by_key(|(_config, is_silent)| is_silent.load(Ordering::Relaxed));
        configs
    }

    /// How to encrypt. A clone for each connection costs next to nothing.
    #[must_use]
    pub fn tls(&self) -> MakeRustlsConnect {
        self.connector.clone()
    }
}

/// The role: as given, or the name of the system's user.
fn user(settings: &Settings) -> Result<String, AddressError> {
    if let Some(user) = settings.text("user") {
        return Ok(user.to_owned());
    }
    whoami::username().map_err(|error| {
        let message = format!("no user is named, and the system does not tell who this is: {error}");
        AddressError::new(message, "write postgres://USER@host/dbname, or set PGUSER")
    })
}

/// A name that needs no quotes anywhere.
fn schema(settings: &Settings) -> Result<String, AddressError> {
    let schema = settings.text(parameters::SCHEMA).unwrap_or(SCHEMA_DEFAULT);
    let begins = schema.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !begins || !schema.bytes().all(is_plain) || schema.len() > SCHEMA_MAX_BYTES {
        let rule = format!(
            "use lower case letters, digits and `_`, not a digit first, {SCHEMA_MAX_BYTES} bytes at most"
        );
        return Err(settings.wrong(parameters::SCHEMA, &rule));
    }
    if schema.starts_with("pg_") || schema == "information_schema" {
        return Err(settings.wrong(parameters::SCHEMA, "that name belongs to PostgreSQL itself: use another"));
    }
    Ok(schema.to_owned())
}

#[cfg(test)]
mod tests;
