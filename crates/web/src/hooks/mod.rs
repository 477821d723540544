//! Messages of other services, which become events. A message says who sent it by its signature only.

mod message;
mod receive;

use std::sync::Arc;

use windlass_engine::signature::SigningKey;

pub(crate) use receive::ROUTES;

/// The most hooks.
pub const HOOKS_MAX: usize = 100;

/// How messages are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookForm {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    #[default]
    Standard,
    /// `X-Hub-Signature-256`, which signs the body only.
    Github,
}

/// An address for messages of one sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The last part of its address.
    pub name: String,
    /// The name of the events that its messages become.
    pub event: String,
    /// How its messages are signed.
    pub form: HookForm,
    /// The keys that its messages may be signed with.
    pub keys: Vec<SigningKey>,
}

/// All hooks, which change when the configuration is read again.
pub(crate) type Hooks = Arc<[Hook]>;
