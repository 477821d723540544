//! Messages to people and other systems, outside of jobs: a POST to an address, or a command that gets the message on its
//! standard input.

mod command;

use std::path::PathBuf;

use windlass_engine::signature::{SignedMessage, SigningKey, sign};

use crate::handler::{LinkLocal, Stop};
use crate::kinds::http::patience::Patience;
pub use crate::kinds::http::post::check_url;

/// The longest message, in bytes. A pipe takes so much without a reader.
pub(crate) const MESSAGE_MAX_BYTES: usize = 32 * 1024;

/// Who gets a message.
#[derive(Clone, PartialEq, Eq)]
pub enum Recipient {
    /// It is sent to an address with POST.
    Url {
        /// The address.
        url: String,
        /// The keys that sign it. Without one, it is not signed.
        keys: Vec<SigningKey>,
    },
    /// This command is executed for each message.
    Command(MessageCommand),
}

/// A command for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The folder in which it starts.
    pub dir: Option<PathBuf>,
}

/// Debug shows neither the address nor the command, because they may contain secrets.
impl std::fmt::Debug for Recipient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Recipient::Url { .. } => "Url(…)",
            Recipient::Command(_) => "Command(…)",
        })
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same in all deliveries of this message.
    pub id: String,
    /// The seconds since the Unix epoch at which this delivery began.
    pub sent_at_s: i64,
    /// The message, at most 32 KiB.
    pub json: String,
    /// Variables for a command, besides those of this process. Their names begin with `WINDLASS_`.
    pub variables: Vec<(&'static str, String)>,
}

/// JSON for an address. Without a limit of its size.
#[derive(Clone, Copy)]
pub struct JsonRequest<'r> {
    /// The address.
    pub url: &'r str,
    /// Headers besides the type of the content.
    pub headers: &'r [(String, String)],
    /// The body.
    pub json: &'r str,
    /// How long it may take.
    pub timeout_ms: i64,
    /// Whether the address may be link-local.
    pub link_local: LinkLocal,
}

/// What happens to what a command prints, and to the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutput {
    /// Nobody sees it: it may repeat secrets.
    Discarded,
    /// It is shown to the person who tries the recipient: on standard error, or in the error.
    Shown,
}

/// What a recipient answered to a request that it has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonAnswer {
    /// The status, for people.
    pub status: String,
    /// The body; `None` if it is longer than 64 KiB or was broken off.
    pub body: Option<Vec<u8>>,
}

/// Why a message did not reach its recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSent {
    /// For this reason, which has neither the address nor the command in it.
    Failed(String),
    /// The recipient answered with a status that is no success.
    Answered {
        /// The status.
        status: u16,
        /// The status and what belongs to it, for people.
        reason: String,
    },
    /// The sender was asked to stop.
    Interrupted,
}

/// Sends a message once. Returns what the recipient said, for people: a status or an exit code. No wait is longer than the
/// timeout, or than until `stop` is requested.
///
/// # Errors
/// Why it did not reach the recipient, as far as that is known.
pub fn send(
    message: &Message,
    recipient: &Recipient,
    timeout_ms: i64,
    link_local: LinkLocal,
    output: MessageOutput,
    stop: &Stop,
) -> Result<String, NotSent> {
    if message.json.len() > MESSAGE_MAX_BYTES {
        return Err(NotSent::Failed(format!("the message is longer than {} KiB", MESSAGE_MAX_BYTES / 1024)));
    }
    let patience = Patience::of(timeout_ms, stop);
    match recipient {
        Recipient::Url { url, keys } => {
            let headers = headers(message, keys);
            let json = &message.json;
            crate::kinds::http::post::post(url, &headers, json, patience, link_local, output)
                .map(crate::kinds::http::post::Accepted::status)
        }
        Recipient::Command(command) => command::execute(command, message, &patience, output),
    }
}

/// Sends JSON to an address with POST, once, with these headers. Returns the answer. No wait is longer than the
/// timeout, or than until `stop` is requested. Redirects are not followed.
///
/// # Errors
/// Why it did not reach the address, as far as that is known.
pub fn send_json(
    request: &JsonRequest<'_>,
    output: MessageOutput,
    stop: &Stop,
) -> Result<JsonAnswer, NotSent> {
    let JsonRequest { url, headers, json, timeout_ms, link_local } = *request;
    let patience = Patience::of(timeout_ms, stop);
    let headers: Vec<(&str, String)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    crate::kinds::http::post::post(url, &headers, json, patience, link_local, output)
        .map(crate::kinds::http::post::Accepted::read)
}

/// The headers of a message, as Standard Webhooks names them.
fn headers(message: &Message, keys: &[SigningKey]) -> Vec<(&'static str, String)> {
    let timestamp = message.sent_at_s.to_string();
    let signed = SignedMessage { id: &message.id, timestamp: &timestamp, body: message.json.as_bytes() };
    let signature = (!keys.is_empty()).then(|| ("webhook-signature", sign(keys, signed)));
    let mut headers = vec![("webhook-id", message.id.clone()), ("webhook-timestamp", timestamp.clone())];
    headers.extend(signature);
    headers
}
