//! The cost of a job for the database, in units that do not depend on the machine: commits, statements and steps of
//! SQLite's virtual machine, and round trips to a server. A change that raises one of them fails here, at any speed
//! and load of the machine.
#![allow(clippy::unwrap_used, missing_docs)]

mod ceilings;
mod postgres;
mod proxy;
mod sqlite;
mod work;
