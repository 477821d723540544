//! All random numbers of these tests come from one seed. It is printed, so that a failure can be repeated.

use fastrand::Rng;

/// The variable that sets the seed.
pub const SEED_VARIABLE: &str = "WINDLASS_SEED";

const DEFAULT_SEED: u64 = 1;

/// The seed of this test run, printed with the name of the test that uses it.
#[must_use]
pub fn seed(test: &str) -> u64 {
    let seed = number_from(SEED_VARIABLE).unwrap_or(DEFAULT_SEED);
    println!("{test}: {SEED_VARIABLE}={seed}");
    seed
}

/// The random numbers of one round of a test, so that round 7 can be repeated alone.
#[must_use]
pub fn round_rng(seed: u64, round: u64) -> Rng {
    Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(round))
}

/// The whole number in an environment variable, if it is set.
///
/// # Panics
/// When it is set to something else.
#[must_use]
pub fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")))
}
