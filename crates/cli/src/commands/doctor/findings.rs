//! The findings: pure functions, one for each check.

use windlass_db::Unavailable;
use windlass_db::sqlite::FileSize;
use windlass_engine::store::{Count, Health, Reason, RegisteredTrigger, TargetSummary};
use windlass_views::{FindingState as Severity, FindingView as Finding};

use super::machine::Disk;
use crate::arguments::Durability;
use crate::error::RAISE_LIMITS;
use crate::text::schedules::failed_trigger;
use crate::text::time;
use crate::text::values::counted;

const MEGABYTE: i64 = 1024 * 1024;
const GIGABYTE: i64 = 1024 * MEGABYTE;
/// Less free space than this is a problem: the next checkpoint may fail.
const DISK_PROBLEM_BYTES: u64 = 64 * 1024 * 1024;
/// Less free space than this is a warning.
const DISK_WARNING_BYTES: u64 = 1024 * 1024 * 1024;
/// A WAL of this size does not shrink, because a reader holds it.
pub(super) const WAL_LARGE_BYTES: i64 = 64 * MEGABYTE;
/// A vacuum is worthwhile when at least this much, and half of the file, is free.
const FREE_BYTES: i64 = 64 * MEGABYTE;
/// A larger difference between two clocks, or between a row and now, is reported.
const CLOCK_MS: i64 = 5_000;
/// How many workers are named.
const SHOWN_MAX: usize = 3;

/// Jobs that have waited for long, and the reason for the first one.
#[derive(Debug, Clone)]
pub(super) struct StuckJobs {
    pub(super) label: String,
    pub(super) jobs: Count,
    pub(super) reason: Reason,
    /// The reason as a sentence.
    pub(super) explanation: String,
}

fn ok(about: &'static str, words: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Ok, message: words.into(), next_step: None }
}

fn warning(about: &'static str, words: impl Into<String>, next_step: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Warning, message: words.into(), next_step: Some(next_step.into()) }
}

fn problem(about: &'static str, words: impl Into<String>, next_step: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Problem, message: words.into(), next_step: Some(next_step.into()) }
}

fn size_in_words(bytes: i64) -> String {
    match bytes {
        small if small < MEGABYTE => format!("{} kB", small / 1024),
        medium if medium < 10 * GIGABYTE => format!("{} MB", medium / MEGABYTE),
        large => format!("{} GB", large / GIGABYTE),
    }
}

/// Workers whose processes are gone from this machine are not alive, even if nobody has rescued their jobs yet.
pub(super) fn leave_out_gone_workers(health: &mut Health, gone: &[i64]) {
    if gone.is_empty() {
        return;
    }
    health.live_workers -= gone.len() as i64;
    health.silent_workers.retain(|id| !gone.contains(id));
    health.short_workers.retain(|(id, _host, _shortage)| !gone.contains(id));
    if health.live_workers == 0 {
        health.orphans = health.running;
    }
}

/// Triggers that started no run because of an error. Nothing is said about those that work.
pub(super) fn triggers(
    triggers: &[RegisteredTrigger],
    now_ms: i64,
    hint: impl Fn(&str) -> String,
) -> Option<Finding> {
    let failed: Vec<&RegisteredTrigger> =
        triggers.iter().filter(|trigger| trigger.failure.is_some()).take(SHOWN_MAX).collect();
    let first = failed.first()?;
    let texts: Vec<String> = failed
        .iter()
        .filter_map(|trigger| {
            Some(format!("{} {}", trigger.key(), failed_trigger(trigger.failure.as_ref()?, now_ms)))
        })
        .collect();
    let show = hint(&format!("workflows show {}", first.workflow));
    let next = format!("correct `if` or `params` of the trigger (`{show}`), and register the workflow again");
    Some(warning("triggers", texts.join("; "), next))
}

/// Notifications that do not reach their targets. Nothing is said if there are no targets and nothing failed.
pub(super) fn notifications(
    targets: &[TargetSummary],
    failed_today: i64,
    hint: impl Fn(&str) -> String,
) -> Option<Finding> {
    let without_service = targets.iter().find(|target| !target.is_wanted && target.pending > 0);
    let show = hint("notify");
    if let Some(TargetSummary { name, pending, .. }) = without_service {
        let words = format!(
            "{} for the target `{name}`, which no service has",
            counted(*pending, "notification waits", "notifications wait")
        );
        let next =
            format!("run `{}` with [notify.{name}] in its configuration; `{show}` lists them", hint("serve"));
        return Some(warning("notifications", words, next));
    }
    if failed_today > 0 {
        let given_up = counted(failed_today, "notification was given up", "notifications were given up");
        let next = format!("`{show}` shows why; `{}` tries the targets", hint("notify --test"));
        return Some(warning("notifications", format!("{given_up} in the last day"), next));
    }
    let pending: i64 = targets.iter().map(|target| target.pending).sum();
    let words = format!(
        "{}, {}",
        counted(targets.len() as i64, "target", "targets"),
        counted(pending, "pending", "pending")
    );
    (!targets.is_empty()).then(|| ok("notifications", words))
}

pub(super) fn version(health: &Health) -> Finding {
    ok("version", format!("{}, tables of version {}", health.version, health.schema_version))
}

pub(super) fn durability(durability: Durability) -> Finding {
    match durability {
        Durability::Full => ok("durability", "full: accepted jobs survive a power cut"),
        Durability::Normal => warning(
            "durability",
            "normal: a power cut may lose the jobs accepted in the last moments",
            "to prevent this, leave out --durability and WINDLASS_DURABILITY",
        ),
    }
}

pub(super) fn writable() -> Finding {
    ok("writes", "a test row was written and rolled back")
}

/// `message` and `help` are those of the failed write.
pub(super) fn not_writable(message: &str, help: &str) -> Finding {
    problem("writes", message, help)
}

/// Whether a database that can be read may refuse writes for this reason.
pub(super) fn stops_writes(reason: &Unavailable) -> bool {
    match reason {
        Unavailable::Locked
        | Unavailable::DiskFull
        | Unavailable::ReadOnly
        | Unavailable::InputOutput(_)
        | Unavailable::Exhausted(_)
        | Unavailable::Cancelled(_)
        | Unavailable::Incomplete(_)
        | Unavailable::Forbidden(_)
        | Unavailable::Standby => true,
        Unavailable::Missing(_)
        | Unavailable::NoTables(_)
        | Unavailable::CannotOpen(_)
        | Unavailable::NotADatabase
        | Unavailable::HardLinked { .. }
        | Unavailable::Foreign { .. }
        | Unavailable::NewerVersion { .. }
        | Unavailable::Corrupt(_)
        | Unavailable::Unreachable(_)
        | Unavailable::NoConnectionFree(_)
        | Unavailable::Refused { .. }
        | Unavailable::CommitUnknown
        | Unavailable::OutOfResources(_)
        | Unavailable::Closed => false,
    }
}

pub(super) fn clock(health: &Health, now_ms: i64, is_file: bool) -> Finding {
    let apart_ms = health.database_now_ms - now_ms;
    if !is_file && apart_ms.abs() > CLOCK_MS {
        let direction = if apart_ms > 0 { "behind" } else { "ahead of" };
        return warning(
            "clock",
            format!("this machine is {} {direction} the server", time::duration(apart_ms.abs())),
            "this is harmless, because workers use the server's clock; start a time service here",
        );
    }
    let future_ms = health.latest_ms.map_or(0, |latest_ms| latest_ms - health.database_now_ms);
    if future_ms > CLOCK_MS {
        return problem(
            "clock",
            format!("a row is {} in the future: the clock was set back", time::duration(future_ms)),
            "correct the clock (`timedatectl`); until then due jobs wait, and no schedule fires twice",
        );
    }
    ok("clock", "no row is from the future")
}

pub(super) fn workers(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    if health.live_workers == 0 { no_worker(health, hint) } else { live_workers(health) }
}

/// The finding if no worker is alive.
fn no_worker(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    let work = health.pending + health.overdue;
    if health.orphans.number > 0 {
        return problem(
            "workers",
            format!(
                "no worker is alive, and {} left by dead workers",
                counted_up_to(health.orphans, "job was", "jobs were")
            ),
            format!("`{}` continues them once, `{}` runs permanently", hint("resume"), hint("serve")),
        );
    }
    if work.number > 0 || health.schedules > 0 {
        return problem(
            "workers",
            format!(
                "no worker is alive; {}, and {} active",
                counted_up_to(work, "job is due", "jobs are due"),
                counted(health.schedules, "schedule is", "schedules are")
            ),
            format!("start a worker with `{}`", hint("serve")),
        );
    }
    ok("workers", "no worker is alive, and no job waits")
}

/// The finding if at least one worker is alive.
fn live_workers(health: &Health) -> Finding {
    if let Some((id, host, shortage)) = health.short_workers.first() {
        let others = match health.short_workers.len() - 1 {
            0 => String::new(),
            others => format!(
                "; {} the same problem",
                counted(others as i64, "other worker has", "other workers have")
            ),
        };
        return problem(
            "workers",
            format!("worker {id} on {host} cannot start jobs: {shortage}{others}"),
            RAISE_LIMITS,
        );
    }
    if health.orphans.number > 0 {
        return warning(
            "workers",
            format!(
                "{} alive; {} left by dead workers",
                counted(health.live_workers, "worker is", "workers are"),
                counted_up_to(health.orphans, "job was", "jobs were")
            ),
            "check again in a few seconds: live workers rescue these jobs",
        );
    }
    if !health.silent_workers.is_empty() {
        let ids: Vec<String> =
            health.silent_workers.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
        return warning(
            "workers",
            format!(
                "{} alive; without heartbeat for longer than their lease: {}",
                counted(health.live_workers, "worker is", "workers are"),
                ids.join(", ")
            ),
            "if they are gone, other workers take their jobs; `windlass stats` shows where they run",
        );
    }
    ok(
        "workers",
        format!(
            "{} {}",
            counted(health.live_workers, "worker is alive and runs", "workers are alive and run"),
            counted_up_to(health.running, "job", "jobs")
        ),
    )
}

/// Whether only a person can change the reason.
fn is_stuck(reason: &Reason) -> bool {
    match reason {
        Reason::NoScheduler
        | Reason::NoWorker { .. }
        | Reason::NoCapability { .. }
        | Reason::WorkersTooOld { .. } => true,
        Reason::WaitsForParents(_)
        | Reason::WaitsForTime { .. }
        | Reason::WaitsForRound { .. }
        | Reason::Sleeps { .. }
        | Reason::QueuePaused(_)
        | Reason::QueueFull { .. }
        | Reason::QueueRate { .. }
        | Reason::NotItsTurn { .. }
        | Reason::KeyTaken { .. }
        | Reason::RunWaitsForSlot(_)
        | Reason::WorkersBusy { .. }
        | Reason::Behind(_)
        | Reason::Runs { .. }
        | Reason::WaitsForRun { .. }
        | Reason::WaitsForDecision
        | Reason::WaitsForEvent { .. }
        | Reason::WaitsForApproval { .. }
        | Reason::WaitsForItems { .. }
        | Reason::WaitsForTurn { .. }
        | Reason::WaitsForEndOfRun
        | Reason::HasDeadline(_)
        | Reason::Over { .. } => false,
    }
}

fn total<'s>(stuck: impl Iterator<Item = &'s StuckJobs>) -> Count {
    stuck.fold(Count { number: 0, is_exact: true }, |total, stuck| total + stuck.jobs)
}

/// A number with a noun. It says so if there are more.
fn counted_up_to(count: Count, one: &str, several: &str) -> String {
    format!("{}{}", at_least(count), counted(count.number, one, several))
}

/// The words before a number, because counting stopped at a bound.
fn at_least(count: Count) -> &'static str {
    if count.is_exact { "" } else { "at least " }
}

pub(super) fn waiting(health: &Health, stuck: &[StuckJobs], hint: impl Fn(&str) -> String) -> Finding {
    let bad: Vec<&StuckJobs> = stuck.iter().filter(|stuck| is_stuck(&stuck.reason)).collect();
    if let Some(first) = bad.first() {
        let jobs = total(bad.iter().copied());
        return problem(
            "jobs",
            format!(
                "{}{} waited for more than a minute, and no worker can take {}: {}",
                at_least(jobs),
                counted(jobs.number, "job has", "jobs have"),
                if jobs.number == 1 { "it" } else { "them" },
                first.explanation
            ),
            format!(
                "start a worker that takes such jobs; `{}` explains the first one",
                hint(&format!("why {}", first.label))
            ),
        );
    }
    if health.overdue.number > 0 {
        return problem(
            "jobs",
            format!(
                "{} due for more than ten seconds, and no scheduler made them claimable",
                counted_up_to(health.overdue, "job has been", "jobs have been")
            ),
            format!("start a worker or `{}`; if one is running, look at its log", hint("serve")),
        );
    }
    if let Some(first) = stuck.first() {
        let old = total(stuck.iter());
        return warning(
            "jobs",
            format!(
                "{}{} claimable for more than a minute: {}",
                at_least(old),
                counted(old.number, "job has been", "jobs have been"),
                first.explanation
            ),
            format!(
                "`{}` explains the first one; if this is too slow, add threads or workers",
                hint(&format!("why {}", first.label))
            ),
        );
    }
    ok(
        "jobs",
        format!(
            "{}, {} claimable, {} waiting for a slot of a concurrency key",
            counted_up_to(health.running, "job is running", "jobs are running"),
            health.pending,
            health.waiting
        ),
    )
}

pub(super) fn reports(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    match health.reported.number {
        0 => ok("reports", "all reports of workers in other languages were processed"),
        _some => problem(
            "reports",
            format!(
                "{} from workers in other languages not processed",
                counted_up_to(health.reported, "report is", "reports are")
            ),
            format!("run a worker of windlass or `{}` beside them", hint("serve")),
        ),
    }
}

pub(super) fn schedules(health: &Health, now_ms: i64, hint: impl Fn(&str) -> String) -> Finding {
    let Some((name, due_ms)) = health.late_schedules.first() else {
        if health.schedules == 0 && health.paused_schedules > 0 {
            return warning(
                "schedules",
                match health.paused_schedules {
                    1 => "the only schedule is paused".to_owned(),
                    paused => format!("all {paused} schedules are paused, as after `db restore`"),
                },
                format!(
                    "`{}` lists them, `{}` lets one fire again; after a restore look at the unfinished runs first \
                     (`{}`)",
                    hint("schedule list"),
                    hint("schedule resume NAME"),
                    hint("runs --status RUNNING")
                ),
            );
        }
        return ok(
            "schedules",
            format!(
                "{}, none is late",
                counted(health.schedules, "schedule is active", "schedules are active")
            ),
        );
    };
    problem(
        "schedules",
        format!("schedule {name} was due {} ago and has not fired", time::duration(now_ms - due_ms)),
        format!("`{}` fires schedules: start it, or look at its log", hint("serve")),
    )
}

pub(super) fn queues(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    match health.paused_queues.first() {
        None => ok("queues", "no queue is paused"),
        Some(first) => warning(
            "queues",
            format!(
                "{} paused: {}",
                counted(health.paused_queues.len() as i64, "queue is", "queues are"),
                health.paused_queues.join(", ")
            ),
            format!("`{}` ends a pause", hint(&format!("queue resume {first}"))),
        ),
    }
}

pub(super) fn disk(disk: Option<Disk>, size: FileSize) -> Finding {
    let Some(Disk { free_bytes, total_bytes }) = disk else {
        return warning("disk", "the free space is unknown", "look with `df`");
    };
    let shown = |bytes: u64| size_in_words(i64::try_from(bytes).unwrap_or(i64::MAX));
    let words = format!("{} of {} are free", shown(free_bytes), shown(total_bytes));
    // A checkpoint copies the WAL into the file, which may grow by as much.
    let needed = DISK_PROBLEM_BYTES.max(size.wal_bytes.unsigned_abs());
    match free_bytes {
        free if free < needed => problem("disk", words, "free some space: a full disk accepts no jobs"),
        free if free < DISK_WARNING_BYTES => {
            warning("disk", words, "free some space, or delete old runs (retention)")
        }
        _enough => ok("disk", words),
    }
}

pub(super) fn file(size: FileSize, hint: impl Fn(&str) -> String) -> Finding {
    let words =
        format!("{}, of which {} are free", size_in_words(size.bytes), size_in_words(size.free_bytes));
    if size.free_bytes < FREE_BYTES || size.free_bytes < size.bytes / 2 {
        return ok("file", words);
    }
    let command = if size.is_incremental { "db vacuum" } else { "db vacuum --full" };
    warning(
        "file",
        words,
        format!("new rows use the free pages; `{}` returns them to the disk", hint(command)),
    )
}

/// `openers` are the processes that have the file open, if somebody has looked for them.
pub(super) fn wal(size: FileSize, openers: Option<&[(i32, String)]>) -> Finding {
    let words = format!("the write-ahead log has {}", size_in_words(size.wal_bytes));
    if size.wal_bytes < WAL_LARGE_BYTES {
        return ok("wal", words);
    }
    let who = openers.map(|openers| {
        let programs: Vec<String> = openers.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
        let programs =
            if programs.is_empty() { "no visible program".to_owned() } else { programs.join(", ") };
        format!("; the file is open in {programs}")
    });
    warning(
        "wal",
        format!("{words}{}", who.unwrap_or_default()),
        "one of them has a read transaction that does not end; end it, and the next checkpoint truncates the log",
    )
}

pub(super) fn backup(is_file: bool, hint: impl Fn(&str) -> String) -> Finding {
    let command =
        if is_file { format!("`{}` makes one", hint("db backup FILE")) } else { "see pg_dump".to_owned() };
    ok("backup", format!("windlass keeps no list of backups; {command}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_that_people_read() {
        let words = [2_048, 3 * MEGABYTE, 9_999 * MEGABYTE, 258_019 * MEGABYTE].map(size_in_words);
        assert_eq!(words, ["2 kB", "3 MB", "9999 MB", "251 GB"]);
    }
}
