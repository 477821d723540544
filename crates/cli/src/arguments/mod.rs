//! Arguments that several verbs share. The arguments of one verb are in its file in `commands/`.

mod database_address;
pub(crate) mod dead_letters;
mod durations_and_instants;
pub(crate) mod filters;
mod global;
mod log;
mod names;
mod run_address;
mod run_or_job;
mod show;
mod work;

pub(crate) use database_address::{DatabaseAddress, DatabaseArgument};
pub(crate) use dead_letters::DeadLetterArgs;
pub(crate) use durations_and_instants::{parse_instant, parse_since};
pub(crate) use global::{
    ColorMode, ConfiguredOptions, Durability, GlobalOptions, MAX_LEASE, MIN_LEASE, OutputFormat,
};
pub(crate) use log::{LogFormat, LogOptions};
pub(crate) use names::{check_name, parse_name};
pub(crate) use run_address::RunAddress;
pub(crate) use run_or_job::{RunOrJob, parse_job_id, parse_run_id};
pub(crate) use show::{Show, ShowOptions};
pub(crate) use windlass_views::parse_duration;
pub(crate) use work::{WorkOptions, push_option};
