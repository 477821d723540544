//! A database that hangs, disappears, comes back, or forgets: what a worker does then.
#![allow(clippy::unwrap_used, missing_docs)]

mod bench;
mod commits;
mod ending;
mod faulty;
mod lease;
mod separate;
mod times;
