//! Windlass's access to the operating system: time, random numbers, wake-ups between threads, processes and what they write,
//! and files of other programs.
//!
//! The rest of the workspace reads the clock, draws random numbers and waits for other threads through this crate, so that
//! a test can control all of them.

pub mod clock;
pub mod event;
pub mod files;
pub mod first_error;
pub mod process;
pub mod random;
pub mod shortage;
pub mod steps;
pub mod terminal_text;
pub mod wake_ups;

pub use clock::Clock;
pub use random::Random;
