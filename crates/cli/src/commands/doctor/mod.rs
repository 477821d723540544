//! `windlass doctor`: checks for problems, one line for each check.

mod findings;
mod machine;

use std::path::Path;

use clap::Args;
use windlass_db::Error;
use windlass_engine::Store;
use windlass_engine::store::{Health, OldPending, Why};
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

/// How much the checks read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All that helps, because a person asked.
    Whole,
    /// What is read fast: old jobs are explained for some claim partitions, and no processes are looked for.
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages ask for it"))]
    Brief,
}

/// For how many claim partitions with old jobs a page says why they wait.
const EXPLAINED_MAX: usize = 10;
/// The place of the check that writes.
const WRITES_AT: usize = 2;
/// How far back given up notifications count.
const DAY_MS: i64 = 86_400_000;

/// Makes all checks.
pub(crate) fn execute(global: &GlobalOptions, _args: &DoctorArgs) -> Result<(), Failure> {
    let database = Database::existing_without_rescue(global)?;
    let report = report(global, &database, TrialWrite::Made).map_err(|error| database.failure(error))?;
    Output { format: global.output }.object(&report, text)?;
    if report.ok { Ok(()) } else { Err(Failure::ProblemsFound) }
}

/// Whether the checks try a write. On a file it is rolled back together with the commits of others in the same group, which
/// are then made again. So pages, which check often, leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialWrite {
    Made,
    #[cfg(feature = "web")]
    LeftOut,
}

/// Makes the checks, also for the web server.
pub(crate) fn report(
    global: &GlobalOptions,
    database: &Database,
    trial: TrialWrite,
) -> windlass_db::Result<DoctorView> {
    let upkeep = database.store().upkeep();
    let health = match trial {
        TrialWrite::Made => upkeep.health()?,
        #[cfg(feature = "web")]
        TrialWrite::LeftOut => upkeep.health_for_pages()?,
    };
    let mut findings = readings(global, database, database.store(), health, Extent::Whole)?;
    match trial {
        TrialWrite::Made => findings.insert(WRITES_AT, writes(database)?),
        #[cfg(feature = "web")]
        TrialWrite::LeftOut => {}
    }
    let ok = findings.iter().all(|finding| finding.state != Severity::Problem);
    Ok(DoctorView { ok, findings })
}

/// What is wrong, for a page that is read often.
#[cfg(feature = "web")]
pub(crate) fn attention(
    global: &GlobalOptions,
    database: &Database,
    store: &Store,
) -> windlass_db::Result<Vec<Finding>> {
    let health = store.upkeep().health_for_pages()?;
    let findings = readings(global, database, store, health, Extent::Brief)?;
    Ok(findings.into_iter().filter(|finding| finding.state != Severity::Ok).collect())
}

/// The checks that write nothing.
fn readings(
    global: &GlobalOptions,
    database: &Database,
    store: &Store,
    mut health: Health,
    extent: Extent,
) -> windlass_db::Result<Vec<Finding>> {
    let gone = gone_workers(store)?;
    findings::leave_out_gone_workers(&mut health, &gone);
    let now_ms = time::now_ms();
    let explained = match extent {
        Extent::Whole => health.old_pending.as_slice(),
        Extent::Brief => &health.old_pending[..health.old_pending.len().min(EXPLAINED_MAX)],
    };
    let stuck = stuck_jobs(global, store, explained, now_ms)?;
    let mut findings = vec![
        findings::version(&health),
        findings::durability(global.durability()),
        findings::clock(&health, now_ms, matches!(database.address(), DatabaseAddress::File(_))),
        findings::workers(&health, |verb| global.hint(verb)),
        findings::waiting(&health, &stuck, |verb| global.hint(verb)),
        findings::reports(&health, |verb| global.hint(verb)),
        findings::schedules(&health, now_ms, |verb| global.hint(verb)),
        findings::queues(&health, |verb| global.hint(verb)),
    ];
    if let (Some(file), DatabaseAddress::File(path)) = (database.windlass().file(), database.address()) {
        let size = file.file_size()?;
        findings.push(findings::disk(machine::disk(path), size));
        findings.push(findings::file(size, |verb| global.hint(verb)));
        let openers = match extent {
            Extent::Whole => openers(path, size.wal_bytes),
            Extent::Brief => None,
        };
        findings.push(findings::wal(size, openers.as_deref()));
    }
    let triggers = store.registrations().triggers()?;
    findings.extend(findings::triggers(&triggers, now_ms, |verb| global.hint(verb)));
    let targets = store.notifications().targets()?;
    let failed_today = store.notifications().failed_since(now_ms - DAY_MS)?;
    findings.extend(findings::notifications(&targets, failed_today, |verb| global.hint(verb)));
    findings.push(findings::backup(matches!(database.address(), DatabaseAddress::File(_)), |verb| {
        global.hint(verb)
    }));
    Ok(findings)
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
fn writes(database: &Database) -> windlass_db::Result<Finding> {
    let Err(error) = database.store().upkeep().try_write() else { return Ok(findings::writable()) };
    let is_finding = match &error {
        Error::Unavailable { reason, .. } => findings::stops_writes(reason),
        Error::NotFound { .. } | Error::Conflict { .. } | Error::Invalid { .. } | Error::Internal { .. } => {
            false
        }
    };
    match database.failure(error.clone()).parts() {
        Some((message, help)) if is_finding => Ok(findings::not_writable(message, help)),
        Some(_) | None => Err(error),
    }
}

/// The processes that have the file open. They matter only if the WAL does not shrink.
fn openers(path: &Path, wal_bytes: i64) -> Option<Vec<(i32, String)>> {
    (wal_bytes >= findings::WAL_LARGE_BYTES).then(|| machine::openers(path))
}

/// Why jobs that have long been claimable are not claimed.
fn stuck_jobs(
    global: &GlobalOptions,
    store: &Store,
    old: &[OldPending],
    now_ms: i64,
) -> windlass_db::Result<Vec<StuckJobs>> {
    let first_ids: Vec<i64> = old.iter().map(|partition| partition.first_id).collect();
    // A job may have been claimed or deleted meanwhile.
    let whys = store.jobs().why_each(&first_ids)?;
    let jobs_of = |first_id| old.iter().find(|partition| partition.first_id == first_id);
    let explained = whys.into_iter().filter_map(|Why { job, reasons }| {
        let (reason, jobs) = (reasons.first()?, jobs_of(job.id)?.jobs);
        let explanation = reasons::sentence(reason, &job, now_ms, global);
        Some(StuckJobs { label: job.label(), jobs, reason: reason.clone(), explanation })
    });
    Ok(explained.collect())
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
