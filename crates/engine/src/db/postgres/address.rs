//! Which server, database and schema.

use std::fmt;
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;

/// A database on a server, as a user names it.
#[derive(Clone)]
pub struct PostgresAddress {
    config: postgres::Config,
    schema: String,
    tls: MakeRustlsConnect,
}

/// Why an address is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl PostgresAddress {
    /// Reads `postgres://…`. `variable` looks a name up in the environment, so that tests own it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(
        url: &str,
        _variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<PostgresAddress, AddressError> {
        let (base, schema) = url.split_once("?schema=").unwrap_or((url, "windlass"));
        let config = base.parse().map_err(|error: postgres::Error| AddressError(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| AddressError(error.to_string()))?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Ok(PostgresAddress { config, schema: schema.to_owned(), tls: MakeRustlsConnect::new(tls) })
    }

    /// The schema of the tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// How to connect.
    #[must_use]
    pub fn config(&self) -> postgres::Config {
        self.config.clone()
    }

    /// How to encrypt.
    #[must_use]
    pub fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "postgres://{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// It names a server and not a file.
#[must_use]
pub fn is_postgres(address: &str) -> bool {
    address.starts_with("postgres://") || address.starts_with("postgresql://")
}
