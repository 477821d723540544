//! The pages and the REST interface of Windlass, over HTTP. The only crate with an async runtime: the store is
//! called on plain threads.

mod answer;
mod assets;
mod call;
mod connections;
mod door;
mod health;
mod hooks;
mod live;
mod metrics;
mod once;
mod options;
mod page_routes;
pub mod pages;
mod problem;
mod rest;
mod route;
mod sentences;
mod server;
mod sign_in;
mod slow_writes;
mod threads;
mod tls;

pub use hooks::{HOOKS_MAX, Hook, HookForm};
pub use metrics::FileReading;
pub use options::{DEFAULT_ADDRESS, Definitions, ListenAddress, Proxy, WebOptions, check_base_path};
pub use sentences::Sentences;
pub use server::{Listener, WebServer};
pub use tls::{TlsFiles, TlsIdentity};

#[cfg(test)]
mod tests;
