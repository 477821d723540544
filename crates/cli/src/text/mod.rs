//! Text for people: runs, jobs, schedules, reasons, tables, times and colours.

pub(crate) mod called_jobs;
pub(crate) mod failed_jobs;
pub(crate) mod reasons;
pub(crate) mod runs_and_jobs;
pub(crate) mod schedules;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod values;
pub(crate) mod wrap;
