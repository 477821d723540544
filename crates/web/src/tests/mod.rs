//! Tests of the whole door, on either database. A request goes to the router as it comes from a connection.
#![allow(clippy::unwrap_used)]

mod approvals;
mod attacks;
mod browser_pages;
mod changes;
mod connections;
mod counted;
mod details;
mod hooks;
mod live;
mod metrics;
mod output;
mod pages;
mod rest;
mod roles;
mod sessions;
mod site;
