//! Secrets of callers: 256 random bits. They need no slow hash, because nobody can guess them.

use std::io;

use sha2::{Digest, Sha256};
use windlass_system::random::secret_bytes;

/// What a secret begins with, so that people and programs that look for secrets in files recognize it.
const PREFIX: &str = "windlass_";

/// A new secret. It can be shown once, and is stored nowhere.
pub struct Secret(String);

impl Secret {
    /// Makes a secret of random bytes of the operating system.
    ///
    /// # Errors
    /// The system's, if it has no random bytes.
    pub fn generate() -> io::Result<Secret> {
        Ok(Secret(format!("{PREFIX}{}", hex(&secret_bytes()?))))
    }

    /// The secret itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What the tables have of it.
    #[must_use]
    pub fn hash(&self) -> String {
        secret_hash(&self.0)
    }
}

/// The SHA-256 of a secret.
#[must_use]
pub fn secret_hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn secrets_have_256_bits_and_differ() {
        let (one, other) = (Secret::generate().unwrap(), Secret::generate().unwrap());
        assert_eq!(one.text().len(), PREFIX.len() + 64);
        assert_ne!(one.text(), other.text());
        assert_eq!(one.hash(), secret_hash(one.text()));
        assert!(!one.hash().contains(&one.text()[PREFIX.len()..]));
    }
}
