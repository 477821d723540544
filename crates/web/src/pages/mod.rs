//! The pages, as functions from data to HTML. A page is complete without its script; colour means state and nothing else.
//!
//! Nothing here knows the server or reads the database but the files named `read.rs`.

pub mod access;
pub mod approvals;
pub mod assets;
pub mod batch;
pub mod choose;
pub mod definition;
pub mod escape;
pub mod fields;
pub mod frame;
pub mod look;
pub mod prose;
pub mod queues;
pub mod run;
pub mod runs;
pub mod start;
pub mod system;
pub mod times;
pub mod url;
pub mod workflows;

pub use frame::{Badges, Frame, Reader, Rights, Section, SignedIn};
