//! What a worker does if its database hangs, disappears, comes back, or has lost commits.
#![allow(clippy::unwrap_used, missing_docs)]

mod bench;
mod commits;
mod ending;
mod faulty;
mod lease;
mod separate;
mod times;
