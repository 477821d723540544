//! Signatures of messages between programs, as [Standard Webhooks](https://www.standardwebhooks.com) describes them, and as
//! GitHub makes them. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// What a secret of Standard Webhooks begins with.
const SECRET_PREFIX: &str = "whsec_";
/// What a signature of Standard Webhooks begins with: HMAC-SHA256.
const SIGNATURE_PREFIX: &str = "v1,";
/// What the header of GitHub begins with.
const GITHUB_PREFIX: &str = "sha256=";
/// The fewest bytes of a key.
const KEY_MIN_BYTES: usize = 24;
/// The most bytes of a key.
const KEY_MAX_BYTES: usize = 512;
/// The fewest bytes of a secret that is a text.
const TEXT_MIN_BYTES: usize = 16;
/// How many signatures of one message are compared. A sender has more than one while it changes its secret.
const SIGNATURES_MAX: usize = 16;

/// A key that signs messages. Debug does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SigningKey(…)")
    }
}

/// The parts of a message that a signature is made of.
#[derive(Debug, Clone, Copy)]
pub struct SignedMessage<'m> {
    /// The id of the message, the same in all deliveries.
    pub id: &'m str,
    /// When this delivery was sent: seconds since the Unix epoch, as they are in the header.
    pub timestamp: &'m str,
    /// The bytes of the body.
    pub body: &'m [u8],
}

impl SigningKey {
    /// The key of a secret such as `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`: base64 of 24 bytes or more.
    ///
    /// # Errors
    /// What is wrong with it, without a part of it.
    pub fn standard(secret: &str) -> Result<SigningKey, String> {
        let Some(text) = secret.strip_prefix(SECRET_PREFIX) else {
            return Err(format!("it does not begin with {SECRET_PREFIX}"));
        };
        let key = STANDARD.decode(text).map_err(|_error| format!("no base64 follows {SECRET_PREFIX}"))?;
        check_length(key, KEY_MIN_BYTES)
    }

    /// The key that is the text itself, as GitHub has it.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn text(secret: &str) -> Result<SigningKey, String> {
        check_length(secret.as_bytes().to_vec(), TEXT_MIN_BYTES)
    }

    /// A key that is no secret, for work whose result is not believed.
    #[must_use]
    pub fn of_nobody() -> SigningKey {
        SigningKey(vec![0; KEY_MIN_BYTES])
    }

    fn mac(&self, parts: &[&[u8]]) -> Vec<u8> {
        // HMAC takes keys of all lengths, so this is always a value.
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).map(|mut mac| {
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        });
        mac.unwrap_or_default()
    }

    fn standard_mac(&self, message: SignedMessage<'_>) -> Vec<u8> {
        let SignedMessage { id, timestamp, body } = message;
        self.mac(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body])
    }
}

fn check_length(key: Vec<u8>, least: usize) -> Result<SigningKey, String> {
    match key.len() {
        length if length < least => Err(format!("it has {length} bytes; at least {least} are needed")),
        length if length > KEY_MAX_BYTES => {
            Err(format!("it has {length} bytes; the limit is {KEY_MAX_BYTES}"))
        }
        _ => Ok(SigningKey(key)),
    }
}

/// The header `webhook-signature`: one signature for each key.
#[must_use]
pub fn sign(keys: &[SigningKey], message: SignedMessage<'_>) -> String {
    let sign = |key: &SigningKey| format!("{SIGNATURE_PREFIX}{}", STANDARD.encode(key.standard_mac(message)));
    keys.iter().map(sign).collect::<Vec<_>>().join(" ")
}

/// Whether the header `webhook-signature` has a signature by one of the keys. The time of the answer does not depend on how
/// much of a signature is right.
#[must_use]
pub fn is_signed(keys: &[SigningKey], message: SignedMessage<'_>, header: &str) -> bool {
    let signatures: Vec<Vec<u8>> = header
        .split(' ')
        .filter_map(|signature| signature.strip_prefix(SIGNATURE_PREFIX))
        .take(SIGNATURES_MAX)
        .filter_map(|signature| STANDARD.decode(signature).ok())
        .collect();
    is_any(keys.iter().map(|key| key.standard_mac(message)), &signatures)
}

/// Whether the header `X-Hub-Signature-256` of GitHub is a signature of the body by one of the keys.
#[must_use]
pub fn is_signed_by_github(keys: &[SigningKey], body: &[u8], header: &str) -> bool {
    let signature = header.strip_prefix(GITHUB_PREFIX).and_then(from_hex).unwrap_or_default();
    is_any(keys.iter().map(|key| key.mac(&[body])), &[signature])
}

/// Compares all with all.
fn is_any(expected: impl Iterator<Item = Vec<u8>>, found: &[Vec<u8>]) -> bool {
    let mut fits = Choice::from(0);
    for expected in expected.filter(|expected| !expected.is_empty()) {
        for found in found {
            fits |= expected.as_slice().ct_eq(found.as_slice());
        }
    }
    fits.into()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// From the tests of the libraries of Standard Webhooks.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const MESSAGE: SignedMessage<'static> = SignedMessage {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: "1614265330",
        body: br#"{"test": 2432232314}"#,
    };
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn key() -> SigningKey {
        SigningKey::standard(SECRET).unwrap()
    }

    fn other() -> SigningKey {
        SigningKey::standard("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap()
    }

    #[test]
    fn the_vector_of_standard_webhooks() {
        assert_eq!(sign(&[key()], MESSAGE), SIGNATURE);
        assert!(is_signed(&[key()], MESSAGE, SIGNATURE));
        let both = sign(&[other(), key()], MESSAGE);
        assert!(both.ends_with(&format!(" {SIGNATURE}")), "{both}");
    }

    #[test]
    fn one_key_and_one_signature_of_several_must_fit() {
        let header = format!("v1,AAAA v2,x v1a,x {SIGNATURE}");
        assert!(is_signed(&[other(), key()], MESSAGE, &header));
        assert!(!is_signed(&[other()], MESSAGE, &header));
        assert!(!is_signed(&[], MESSAGE, &header));
        let too_late = format!("{}{SIGNATURE}", "v1,AAAA ".repeat(SIGNATURES_MAX));
        assert!(!is_signed(&[key()], MESSAGE, &too_late));
    }

    #[test]
    fn each_part_of_a_message_is_signed() {
        let changed = [
            SignedMessage { id: "msg_other", ..MESSAGE },
            SignedMessage { timestamp: "1614265331", ..MESSAGE },
            SignedMessage { body: b"{}", ..MESSAGE },
        ];
        for message in changed {
            assert!(!is_signed(&[key()], message, SIGNATURE), "{message:?}");
        }
        let plain = SIGNATURE.trim_start_matches("v1,");
        for header in
            ["", "v1,", "v1,g0hM9SsE", plain, &format!("v2,{plain}"), &SIGNATURE[..SIGNATURE.len() - 4]]
        {
            assert!(!is_signed(&[key()], MESSAGE, header), "{header}");
        }
    }

    #[test]
    fn the_vector_of_github() {
        let keys = [SigningKey::text("It's a Secret to Everybody").unwrap()];
        let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(is_signed_by_github(&keys, b"Hello, World!", header));
        assert!(!is_signed_by_github(&keys, b"Hello, World?", header));
        assert!(!is_signed_by_github(&[key()], b"Hello, World!", header));
        for header in ["", "sha256=", "sha256=75", &header[7..], "sha256=zz", "sha1=757107ea"] {
            assert!(!is_signed_by_github(&keys, b"Hello, World!", header), "{header}");
        }
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused_without_being_shown() {
        for (secret, reason) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin with whsec_"),
            ("whsec_", "0 bytes; at least 24"),
            ("whsec_MfKQ9r8G", "6 bytes; at least 24"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "no base64"),
        ] {
            let error = SigningKey::standard(secret).unwrap_err();
            assert!(error.contains(reason) && !error.contains("MfKQ"), "{secret}: {error}");
        }
        assert!(
            SigningKey::standard(&format!("whsec_{}", "A".repeat(1_000))).unwrap_err().contains("the limit")
        );
        assert!(SigningKey::text("short").unwrap_err().contains("at least 16"));
        assert_eq!(format!("{:?}", key()), "SigningKey(…)");
    }
}
