//! PostgreSQL servers of the tests' own, started from the binaries that the machine has.
//!
//! - [`SharedServer`]: one for all test processes; it starts with the first and stops by itself some
//!   seconds after the last has gone, however that ended.
//! - [`PrivateServer`]: one for one test, which may stop, pause and break it.
//! - [`Pooler`]: PgBouncer before one of them.
//! - [`Schema`]: what a test needs of a shared server to be alone.
//!
//! Nothing here touches a server that the machine runs for somebody else, unless [`SERVER_VARIABLE`] names
//! it. Where a server cannot be had, the test that wanted it fails and says what to install: none is
//! skipped.

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
