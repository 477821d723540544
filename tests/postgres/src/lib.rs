//! PostgreSQL servers for tests, started from the programs on the machine.
//!
//! - [`SharedServer`]: a server for all test processes. The first process starts it. It stops some seconds after the last
//!   process has ended, even if that was killed.
//! - [`PrivateServer`]: a server for one test, which may stop, pause and break it.
//! - [`Pooler`]: PgBouncer in front of a server.
//! - [`Schema`]: a schema of the shared server for one test.
//!
//! Other servers of the machine are not used, unless [`SERVER_VARIABLE`] names one. If no server can be started, the test
//! fails and says what to install. No test is skipped.

mod binaries;
mod cluster;
mod guardian;
mod pooler;
mod private;
mod processes;
mod schema;
mod shared;

pub use pooler::Pooler;
pub use private::PrivateServer;
pub use schema::Schema;
pub use shared::{LINGER_VARIABLE, SERVER_VARIABLE, SharedServer};
