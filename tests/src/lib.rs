//! What the black-box tests share: a folder and a database of their own, the `windlass` binary as a
//! process, the tables as rows, and the checks that prove the engine's promises from what was
//! recorded. Every check is a plain function over rows that returns the problems it found, so that
//! its own tests show that it can fail.

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
