//! A schema for one test, on a server that it shares with others.

use postgres::{Client, Config, NoTls};

use crate::cluster::random_number;
use crate::shared::SharedServer;

/// A schema that is dropped, with all that is in it, at the end of the test.
///
/// It is only a name until a program opens the address and creates it.
#[derive(Debug)]
pub struct Schema {
    server: String,
    name: String,
}

/// How long dropping a schema waits for its users. Then it ends their connections.
const LOCK_TIMEOUT: &str = "3s";

impl Schema {
    /// An unused name, on the shared server.
    ///
    /// # Panics
    /// When no server can be started; the message says why, and what to install.
    #[must_use]
    pub fn new() -> Schema {
        Schema::on(SharedServer::get().url())
    }

    /// An unused name, on the server of an address.
    #[must_use]
    pub fn on(server: &str) -> Schema {
        Schema { server: server.to_owned(), name: format!("test_{:016x}", random_number()) }
    }

    /// The schema's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address: that of the server, with the schema as a parameter.
    #[must_use]
    pub fn url(&self) -> String {
        let separator = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{separator}schema={}", self.server, self.name)
    }

    /// A connection whose tables are those of the schema.
    ///
    /// # Panics
    /// When the server cannot be reached.
    #[must_use]
    pub fn client(&self) -> Client {
        self.try_client().unwrap_or_else(|error| panic!("{}: {error}", self.server))
    }

    fn try_client(&self) -> Result<Client, postgres::Error> {
        let mut config: Config = self.server.parse()?;
        config.options(&format!("-c search_path={}", self.name));
        config.connect(NoTls)
    }

    fn remove(&self) -> Result<(), postgres::Error> {
        let mut client = self.try_client()?;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        client.batch_execute(&format!(
            "SET client_min_messages = error; SET lock_timeout = '{LOCK_TIMEOUT}'"
        ))?;
        if client.batch_execute(&drop).is_ok() {
            return Ok(());
        }
        client.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks
             JOIN pg_class ON pg_class.oid = pg_locks.relation
             WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
               AND pid <> pg_backend_pid()",
            &[&self.name],
        )?;
        client.batch_execute(&drop)
    }
}

impl Default for Schema {
    fn default() -> Self {
        Schema::new()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // Only a message: a test may have stopped its server, and a shared server loses its schemas when it ends.
        if let Err(error) = self.remove() {
            eprintln!("the schema {} was not dropped: {error}", self.name);
        }
    }
}
