//! Tests of the command line: the output of each verb, its streams and its exit code.

#![allow(clippy::unwrap_used)]

mod alone;
mod audit;
mod completing;
mod configuring;
mod database;
mod doctor;
mod faults;
mod help;
mod jobs;
mod json;
mod measuring;
mod naming;
mod notifying;
mod output;
mod planning;
mod postgres_address;
mod postgres_refusals;
mod queues;
mod reading;
mod registering;
mod retrying;
mod runs;
mod schedules;
mod schemas;
mod serving;
mod sqlite_files;
mod sqlite_restore;
mod stopping;
mod support;
mod testing;
mod web;
mod workflows;
mod writing;
