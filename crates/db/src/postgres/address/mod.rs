//! The address of a PostgreSQL database: a URL, completed from the environment and from files, by the rules of libpq.
//!
//! Each parameter is taken from the first of these sources that has it: the URL, the service that the URL or `PGSERVICE` names,
//! the environment (`PGHOST` and so on), libpq's default. If none has a password, it is looked up in the password file.
//! Comments in the code name the differences from libpq. Windlass is always stricter.

mod config;
mod display;
mod error;
mod explain;
mod files;
mod hosts;
mod parameters;
mod passfile;
mod service;
mod settings;
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
/// The longest name of a schema. The name of the notification channel contains it, and PostgreSQL truncates that at 63 bytes.
const SCHEMA_MAX_BYTES: usize = 40;

/// The address of a database on a server. Its `Display` and `Debug` forms contain no password.
#[derive(Clone)]
pub struct PostgresAddress {
    /// The configuration without the servers.
    config: tokio_postgres::Config,
    connector: MakeRustlsConnect,
    trust: Trust,
    servers: Vec<Server>,
    /// For each server whether it accepted the last connection and did not answer.
    are_silent: Arc<[AtomicBool]>,
    user: String,
    database: String,
    schema: String,
    password_source: Option<String>,
}

impl PostgresAddress {
    /// Parses `postgres://…`, and reads the files that it or the environment names. `environment` returns the value of a
    /// variable, so that tests can control it.
    ///
    /// # Errors
    /// What is wrong, where, and what to do about it.
    pub fn parse(
        url: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<PostgresAddress, AddressError> {
        let mut settings = url::read(url)?;
        service::fill(&mut settings, environment)?;
        settings.fill_from_environment(environment)?;
        let servers = hosts::servers(&settings)?;
        let user = user(&settings)?;
        let database = settings.text("dbname").unwrap_or(&user).to_owned();
        let schema = schema(&settings)?;
        let (password, password_source) = match settings.text("password") {
            Some(password) => {
                (Some(password.to_owned()), settings.source("password").map(settings::Source::describe))
            }
            None => match passfile::look_up(&settings, environment, &servers, &database, &user)? {
                Some(found) => {
                    let source = format!("in the password file {}", found.file.display());
                    (Some(found.password).filter(|password| !password.is_empty()), Some(source))
                }
                None => (None, None),
            },
        };
        let Tls { connector, ssl_mode, trust } = tls::tls(&settings, environment)?;
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

    /// A URL without its password, which may be shown. Any other text is returned unchanged.
    #[must_use]
    pub fn redacted(url: &str) -> String {
        url::redacted(url)
    }

    /// A URL for PostgreSQL's own programs: without the password, and without parameters that only Windlass knows.
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

    /// Where the password was found, as part of a sentence.
    #[must_use]
    pub fn password_source(&self) -> Option<&str> {
        self.password_source.as_deref()
    }

    /// The complete configuration for connecting.
    #[must_use]
    pub fn config(&self) -> postgres::Config {
        config::with_servers(&self.config, &self.servers).into()
    }

    /// A configuration for each server, and whether that server did not answer the last time. Such servers come last, because
    /// otherwise each new connection would wait for them.
    pub(super) fn client_configs(&self) -> Vec<(tokio_postgres::Config, &AtomicBool)> {
        let config_at = |server| config::with_servers(&self.config, std::slice::from_ref(server));
        let mut configs: Vec<_> = self.servers.iter().map(config_at).zip(&*self.are_silent).collect();
        configs.sort_by_key(|(_config, is_silent)| is_silent.load(Ordering::Relaxed));
        configs
    }

    /// How to encrypt connections.
    #[must_use]
    pub fn tls(&self) -> MakeRustlsConnect {
        self.connector.clone()
    }
}

/// The role that was given, or the name of the system's user.
fn user(settings: &Settings) -> Result<String, AddressError> {
    if let Some(user) = settings.text("user") {
        return Ok(user.to_owned());
    }
    whoami::username().map_err(|error| {
        let message = format!("no user is named, and the name of the system's user is not known: {error}");
        AddressError::new(message, "write postgres://USER@host/dbname, or set PGUSER")
    })
}

/// The schema that was given, or the default. Its name must need no quotes in SQL.
fn schema(settings: &Settings) -> Result<String, AddressError> {
    let schema = settings.text(parameters::SCHEMA).unwrap_or(SCHEMA_DEFAULT);
    let begins = schema.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !begins || !schema.bytes().all(is_plain) || schema.len() > SCHEMA_MAX_BYTES {
        let rule = format!(
            "use lower case letters, digits and `_`, not a digit first, {SCHEMA_MAX_BYTES} bytes at most"
        );
        return Err(settings.invalid_value(parameters::SCHEMA, &rule));
    }
    if schema.starts_with("pg_") || schema == "information_schema" {
        return Err(
            settings.invalid_value(parameters::SCHEMA, "that name belongs to PostgreSQL itself: use another")
        );
    }
    Ok(schema.to_owned())
}

#[cfg(test)]
mod tests;
