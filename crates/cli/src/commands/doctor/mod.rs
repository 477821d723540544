//! `windlass doctor`: checks for problems, one line for each check.

mod findings;
mod machine;

use std::path::Path;

use clap::Args;
use windlass_db::Error;
use windlass_engine::store::{OldPending, Why};
use windlass_scheduler::gone_workers;
use windlass_views::{DoctorView, FindingState as Severity, FindingView as Finding};

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::text::style::{GREEN, RED, YELLOW, paint, printable};
use crate::text::{reasons, time};
use findings::StuckJobs;

/// Check for problems, and show how to solve each
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass doctor
  windlass doctor -o json | jq '.findings[] | select(.state != \"ok\")'

The command changes nothing and rescues no jobs. To check that writes work, it
writes a row and rolls back. The exit code is 1 if there is a problem; a
warning is not a problem. `windlass db check` reads every row and finds
inconsistent ones.";

/// How far back given up notifications count.
const DAY_MS: i64 = 86_400_000;

/// Makes all checks.
pub(crate) fn execute(global: &GlobalOptions, _args: &DoctorArgs) -> Result<(), Failure> {
    let database = Database::existing_without_rescue(global)?;
    let report = report(global, &database)?;
    Output { format: global.output }.object(&report, text)?;
    if report.ok { Ok(()) } else { Err(Failure::ProblemsFound) }
}

/// Makes all checks, also for the web server.
pub(crate) fn report(global: &GlobalOptions, database: &Database) -> Result<DoctorView, Failure> {
    let mut health = database.ask(|store| store.upkeep().health())?;
    let gone = database.ask(gone_workers)?;
    findings::leave_out_gone_workers(&mut health, &gone);
    let now_ms = time::now_ms();
    let stuck = stuck_jobs(global, database, &health.old_pending, now_ms)?;
    let mut findings = vec![
        findings::version(&health),
        findings::durability(global.durability()),
        writes(database)?,
        findings::clock(&health, now_ms, matches!(database.address(), DatabaseAddress::File(_))),
        findings::workers(&health, |verb| global.hint(verb)),
        findings::waiting(&health, &stuck, |verb| global.hint(verb)),
        findings::reports(&health, |verb| global.hint(verb)),
        findings::schedules(&health, now_ms, |verb| global.hint(verb)),
        findings::queues(&health, |verb| global.hint(verb)),
    ];
    if let (Some(file), DatabaseAddress::File(path)) = (database.windlass().file(), database.address()) {
        let size = file.file_size().map_err(|error| database.failure(error))?;
        findings.push(findings::disk(machine::disk(path), size));
        findings.push(findings::file(size, |verb| global.hint(verb)));
        findings.push(findings::wal(size, &openers(path, size.wal_bytes)));
    }
    let triggers = database.ask(|store| store.registrations().triggers())?;
    findings.extend(findings::triggers(&triggers, now_ms, |verb| global.hint(verb)));
    let targets = database.ask(|store| store.notifications().targets())?;
    let failed_today = database.ask(|store| store.notifications().failed_since(now_ms - DAY_MS))?;
    findings.extend(findings::notifications(&targets, failed_today, |verb| global.hint(verb)));
    findings.push(findings::backup(matches!(database.address(), DatabaseAddress::File(_)), |verb| {
        global.hint(verb)
    }));
    let ok = findings.iter().all(|finding| finding.state != Severity::Problem);
    Ok(DoctorView { ok, findings })
}

/// What the machine says of the database's file, for monitors.
#[cfg(feature = "web")]
pub(crate) fn file_reading(database: &Database) -> windlass_web::FileReading {
    let (Some(file), DatabaseAddress::File(path)) = (database.windlass().file(), database.address()) else {
        return windlass_web::FileReading::default();
    };
    windlass_web::FileReading {
        wal_bytes: file.file_size().ok().map(|size| size.wal_bytes),
        disk_free_bytes: machine::disk(path).map(|disk| disk.free_bytes),
    }
}

/// Whether the database accepts writes. A lost connection is an error and not a finding.
fn writes(database: &Database) -> Result<Finding, Failure> {
    let Err(error) = database.store().upkeep().try_write() else { return Ok(findings::writable()) };
    let is_finding = match &error {
        Error::Unavailable { reason, .. } => findings::stops_writes(reason),
        Error::NotFound { .. } | Error::Conflict { .. } | Error::Invalid { .. } | Error::Internal { .. } => {
            false
        }
    };
    let failure = database.failure(error);
    match failure.parts() {
        Some((message, help)) if is_finding => Ok(findings::not_writable(message, help)),
        Some(_) | None => Err(failure),
    }
}

/// The processes that have the file open. They matter only if the WAL does not shrink.
fn openers(path: &Path, wal_bytes: i64) -> Vec<(i32, String)> {
    if wal_bytes >= findings::WAL_LARGE_BYTES { machine::openers(path) } else { Vec::new() }
}

/// Why jobs that have long been claimable are not claimed.
fn stuck_jobs(
    global: &GlobalOptions,
    database: &Database,
    old: &[OldPending],
    now_ms: i64,
) -> Result<Vec<StuckJobs>, Failure> {
    let mut stuck = Vec::new();
    for OldPending { first_id, jobs } in old {
        // The job may have been claimed or deleted meanwhile.
        let Ok(Why { job, reasons }) = database.store().jobs().why(*first_id) else { continue };
        let Some(reason) = reasons.first() else { continue };
        let explanation = reasons::sentence(reason, &job, now_ms, global);
        stuck.push(StuckJobs { label: job.label(), jobs: *jobs, reason: reason.clone(), explanation });
    }
    Ok(stuck)
}

fn text(report: &DoctorView) -> String {
    let mut text = String::new();
    for Finding { about, state, message, next_step } in &report.findings {
        let state = match state {
            Severity::Ok => paint(GREEN, format!("{:<8}", "ok")),
            Severity::Warning => paint(YELLOW, format!("{:<8}", "warning")),
            Severity::Problem => paint(RED, format!("{:<8}", "problem")),
        };
        text.push_str(&format!("{state} {about:<13} {}\n", printable(message)));
        if let Some(next_step) = next_step {
            text.push_str(&format!("{:23}next: {}\n", "", printable(next_step)));
        }
    }
    text
}
