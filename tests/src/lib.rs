//! The harness of the black-box tests: a sandbox with a folder and a database, the `windlass` binary as a process, the
//! tables as rows, and the checks of the promises. A check is a pure function from rows to problems, and its own tests
//! show that it can fail.

pub mod audit;
pub mod binary;
pub mod claims;
pub mod graphs;
pub mod journal;
pub mod leftovers;
pub mod order;
pub mod partition;
pub mod process;
pub mod sandbox;
pub mod seed;
pub mod tables;
pub mod wait;

pub use binary::windlass;
pub use process::{Engine, Outcome};
pub use sandbox::Sandbox;
pub use wait::{eventually, within};
