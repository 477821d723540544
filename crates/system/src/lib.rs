//! What Windlass takes from its surroundings: time, chance, wake-ups between threads, and files that other programs made.
//!
//! Nothing else in the workspace reads a clock, draws a random number or waits for another thread by a way of its own,
//! so a test can own all of it.

pub mod clock;
pub mod event;
pub mod files;
pub mod process;
pub mod random;
pub mod shortage;
pub mod steps;
pub mod wake_ups;

pub use clock::Clock;
pub use random::Random;
