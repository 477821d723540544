//! The only source of random numbers. It has a seed, so that a test or a simulation can be repeated.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A seeded generator shared by the threads of a process, cheap to clone.
#[derive(Debug, Clone)]
pub struct Random {
    generator: Arc<Mutex<fastrand::Rng>>,
    /// A generator of its own, so that the number of tokens does not change the other random numbers.
    tokens: Arc<Mutex<fastrand::Rng>>,
}

impl Random {
    /// The same seed gives the same sequences.
    #[must_use]
    pub fn from_seed(seed: u64) -> Random {
        let shared = |seed| Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        Random { generator: shared(seed), tokens: shared(!seed) }
    }

    /// A seed from the operating system.
    #[must_use]
    pub fn from_entropy() -> Random {
        Random::from_seed(fastrand::u64(..))
    }

    /// A random number of 63 bits. Together with the millisecond in which a row is made it identifies the row.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).i64(0..)
    }

    /// A random number in [0, 1).
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }
}

/// Random bytes of the operating system, which nobody can predict. They are for secrets, so no seed repeats them.
///
/// # Errors
/// The system's.
pub fn secret_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Random;

    #[test]
    fn tokens_differ_and_are_not_negative() {
        let randoms =
            [Random::from_seed(1), Random::from_seed(2), Random::from_entropy(), Random::from_entropy()];
        let tokens: Vec<i64> = randoms.iter().flat_map(|random| (0..1_000).map(|_| random.token())).collect();
        assert!(tokens.iter().all(|token| *token >= 0));
        assert_eq!(tokens.iter().collect::<HashSet<_>>().len(), tokens.len());
        assert_eq!(Random::from_seed(1).token(), tokens[0], "the same seed gives the same");
    }
}
