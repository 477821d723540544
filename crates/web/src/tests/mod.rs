//! Tests of the whole door, on either database. A request goes to the router as it comes from a connection.
#![allow(clippy::unwrap_used)]

mod approvals;
mod attack_addresses;
mod attack_values;
mod attacks;
mod browser_pages;
mod changes;
mod connections;
mod counted;
mod definitions;
mod details;
mod hooks;
mod job_page;
mod lists;
mod live;
mod metrics;
mod once;
mod output;
mod pages;
mod raw_requests;
mod rest;
mod roles;
mod run_page;
mod sessions;
mod site;
mod slow_clients;
