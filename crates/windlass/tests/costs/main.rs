//! What a job costs the database, in units that are the same on every machine: commits, statements and steps of
//! SQLite's virtual machine, and round trips to a server. A change that makes one of them dearer fails here, on a
//! machine of any speed and load.
#![allow(clippy::unwrap_used, missing_docs)]

mod ceilings;
mod postgres;
mod proxy;
mod sqlite;
mod work;
