//! What the retry state mean: pure, one function a line.

use serde::Serialize;
use windlass::store::{Health, Reason};
use windlass::{FileSize, Unavailable};

use super::machine::Disk;
use crate::cli::Durability;
use crate::describe::counted;
use crate::error::RAISE_LIMITS;
use crate::time;

const MEGABYTE: i64 = 1024 * 1024;
/// Less room than this is a problem: the next checkpoint may fail.
const DISK_PROBLEM_BYTES: u64 = 64 * 1024 * 1024;
/// Less room than this is a warning.
const DISK_WARNING_BYTES: u64 = 1024 * 1024 * 1024;
/// A WAL of this size does not shrink by itself.
pub(super) const WAL_LARGE_BYTES: i64 = 64 * MEGABYTE;
/// Free pages that are worth giving back: so many bytes, and half of the file.
const FREE_BYTES: i64 = 64 * MEGABYTE;
/// Clocks that differ by more, or rows from a later future than this, are told of, in milliseconds.
const CLOCK_MS: i64 = 5_000;
/// Reasons that are shown.
const SHOWN_MAX: usize = 3;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Ok,
    Warning,
    Problem,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) about: &'static str,
    pub(super) state: Severity,
    pub(super) words: String,
    pub(super) next_step: Option<String>,
}

/// Jobs that wait for long, and why the first of them does.
#[derive(Debug, Clone)]
pub(super) struct Stuck {
    pub(super) label: String,
    pub(super) jobs: i64,
    pub(super) reason: Reason,
    pub(super) words: String,
}

fn ok(about: &'static str, words: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Ok, words: words.into(), next_step: None }
}

fn warning(about: &'static str, words: impl Into<String>, next_step: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Warning, words: words.into(), next_step: Some(next_step.into()) }
}

fn problem(about: &'static str, words: impl Into<String>, next_step: impl Into<String>) -> Finding {
    Finding { about, state: Severity::Problem, words: words.into(), next_step: Some(next_step.into()) }
}

fn megabytes(bytes: i64) -> String {
    match bytes {
        small if small < MEGABYTE => format!("{} kB", small / 1024),
        large => format!("{} MB", large / MEGABYTE),
    }
}

/// Workers whose processes are gone from this machine are not alive, although nobody has taken back their jobs.
pub(super) fn take_out(health: &mut Health, gone: &[i64]) {
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

pub(super) fn version(health: &Health) -> Finding {
    ok("version", format!("{}, tables of version {}", health.version, health.schema_version))
}

pub(super) fn durability(durability: Durability) -> Finding {
    match durability {
        Durability::Full => ok("durability", "full: what is accepted survives a power cut"),
        Durability::Normal => warning(
            "durability",
            "normal: a power cut may take what was accepted in the last moments",
            "leave --durability and WINDLASS_DURABILITY out if that must not be",
        ),
    }
}

pub(super) fn writable() -> Finding {
    ok("writes", "a row was written, and taken back")
}

/// The words are those that a verb says which wants to write.
pub(super) fn not_writable(message: &str, help: &str) -> Finding {
    problem("writes", message, help)
}

/// Reasons for which a database that can be read takes no writes.
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
            "workers follow the server's clock, so nothing goes wrong; start a time service here",
        );
    }
    let future_ms = health.latest_ms.map_or(0, |latest_ms| latest_ms - health.database_now_ms);
    if future_ms > CLOCK_MS {
        return problem(
            "clock",
            format!("something happened {} in the future: the clock was set back", time::duration(future_ms)),
            "set it right (`timedatectl`); until then what is due waits, and schedules fire nothing twice",
        );
    }
    ok("clock", "nothing in the tables is from the future")
}

pub(super) fn workers(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    let work = health.pending + health.overdue;
    if health.live_workers == 0 && health.orphans > 0 {
        return problem(
            "workers",
            format!("none is alive, and {} under dead ones", counted(health.orphans, "job runs", "jobs run")),
            format!("`{}` carries on, or `{}` for good", hint("resume"), hint("serve")),
        );
    }
    if health.live_workers == 0 && (work > 0 || health.schedules > 0) {
        return problem(
            "workers",
            format!(
                "none is alive; {}, and {} to fire",
                counted(work, "job is due", "jobs are due"),
                counted(health.schedules, "schedule is", "schedules are")
            ),
            format!("start one: `{}`", hint("serve")),
        );
    }
    if health.live_workers == 0 {
        return ok("workers", "none is alive, and nothing waits");
    }
    if let Some((id, host, shortage)) = health.short_workers.first() {
        let others = match health.short_workers.len() - 1 {
            0 => String::new(),
            others => format!("; and {others} more"),
        };
        return problem(
            "workers",
            format!("worker {id} on {host} can't start jobs: {shortage}{others}"),
            RAISE_LIMITS,
        );
    }
    if health.orphans > 0 {
        return warning(
            "workers",
            format!(
                "{} alive; {} under dead ones",
                counted(health.live_workers, "is", "are"),
                counted(health.orphans, "job runs", "jobs run")
            ),
            "look again in a few seconds: they are taken back by those that live",
        );
    }
    if !health.silent_workers.is_empty() {
        let ids: Vec<String> =
            health.silent_workers.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
        return warning(
            "workers",
            format!(
                "{} alive; silent for longer than their lease: {}",
                counted(health.live_workers, "is", "are"),
                ids.join(", ")
            ),
            "if they are stopped or gone, the others take their jobs; `windlass stats` shows where they run",
        );
    }
    ok(
        "workers",
        format!(
            "{} {}",
            counted(health.live_workers, "is alive and runs", "are alive and run"),
            counted(health.running, "job", "jobs")
        ),
    )
}

/// Reasons that nothing but a person changes.
fn is_stuck(reason: &Reason) -> bool {
    match reason {
        Reason::NobodyKeepsTime
        | Reason::NoWorker { .. }
        | Reason::NoCapability { .. }
        | Reason::WorkersTooOld { .. } => true,
        Reason::WaitsForParents(_)
        | Reason::WaitsForTime { .. }
        | Reason::QueuePaused(_)
        | Reason::QueueFull { .. }
        | Reason::QueueRate { .. }
        | Reason::NotItsTurn { .. }
        | Reason::KeyTaken { .. }
        | Reason::WorkersBusy { .. }
        | Reason::Behind(_)
        | Reason::Runs { .. }
        | Reason::WaitsForEvent
        | Reason::Over(_) => false,
    }
}

pub(super) fn waiting(health: &Health, stuck: &[Stuck], hint: impl Fn(&str) -> String) -> Finding {
    let bad: Vec<&Stuck> = stuck.iter().filter(|stuck| is_stuck(&stuck.reason)).collect();
    if let Some(first) = bad.first() {
        let jobs: i64 = bad.iter().map(|stuck| stuck.jobs).sum();
        return problem(
            "jobs",
            format!(
                "{} for more than a minute for a worker that there is not: {}",
                counted(jobs, "waits", "wait"),
                first.words
            ),
            format!(
                "start one that takes them; `{}` tells about the first",
                hint(&format!("why {}", first.label))
            ),
        );
    }
    if health.overdue > 0 {
        return problem(
            "jobs",
            format!(
                "{} due for more than ten seconds, and nobody made them claimable",
                counted(health.overdue, "is", "are")
            ),
            format!(
                "a worker or `{}` keeps time; one that is alive is held up: look at its log",
                hint("serve")
            ),
        );
    }
    let old: i64 = stuck.iter().map(|stuck| stuck.jobs).sum();
    if let Some(first) = stuck.first() {
        return warning(
            "jobs",
            format!("{old} can be claimed for more than a minute: {}", first.words),
            format!(
                "`{}` tells more; more threads or workers, if it is too slow",
                hint(&format!("why {}", first.label))
            ),
        );
    }
    ok(
        "jobs",
        format!(
            "{}, {} can be claimed, {} for a concurrency key",
            counted(health.running, "runs", "run"),
            health.pending,
            counted(health.waiting, "waits", "wait")
        ),
    )
}

pub(super) fn reports(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    match health.reported {
        0 => ok("reports", "every end that a worker in another language reported is taken up"),
        reported => problem(
            "reports",
            format!(
                "{} reported by workers in other languages, and nobody took that up",
                counted(reported, "end was", "ends were")
            ),
            format!("a worker of Windlass or `{}` must run beside them", hint("serve")),
        ),
    }
}

pub(super) fn schedules(health: &Health, now_ms: i64, hint: impl Fn(&str) -> String) -> Finding {
    let Some((name, due_ms)) = health.late_schedules.first() else {
        return ok("schedules", format!("{} can fire, and none is late", health.schedules));
    };
    problem(
        "schedules",
        format!("{name} was due {} ago, and is not fired", time::duration(now_ms - due_ms)),
        format!("`{}` fires schedules: start it, or look at its log", hint("serve")),
    )
}

pub(super) fn queues(health: &Health, hint: impl Fn(&str) -> String) -> Finding {
    match health.paused_queues.first() {
        None => ok("queues", "none is paused"),
        Some(first) => warning(
            "queues",
            format!(
                "{} paused: {}",
                counted(health.paused_queues.len() as i64, "is", "are"),
                health.paused_queues.join(", ")
            ),
            format!("`{}` ends a pause", hint(&format!("queue resume {first}"))),
        ),
    }
}

pub(super) fn disk(disk: Option<Disk>, size: FileSize) -> Finding {
    let Some(Disk { free_bytes, total_bytes }) = disk else {
        return warning("disk", "how much room there is can't be told", "look with `df`");
    };
    let shown = |bytes: u64| megabytes(i64::try_from(bytes).unwrap_or(i64::MAX));
    let words = format!("{} are free of {}", shown(free_bytes), shown(total_bytes));
    // The WAL is moved into the file, which may grow by as much.
    let needed = DISK_PROBLEM_BYTES.max(size.wal_bytes.unsigned_abs());
    match free_bytes {
        free if free < needed => problem("disk", words, "make room: nothing can be accepted on a full disk"),
        free if free < DISK_WARNING_BYTES => {
            warning("disk", words, "make room, or let old runs go (retention)")
        }
        _enough => ok("disk", words),
    }
}

pub(super) fn file(size: FileSize, hint: impl Fn(&str) -> String) -> Finding {
    let words = format!("{}, of which {} are free", megabytes(size.bytes), megabytes(size.free_bytes));
    if size.free_bytes < FREE_BYTES || size.free_bytes < size.bytes / 2 {
        return ok("file", words);
    }
    let command = if size.is_incremental { "db vacuum" } else { "db vacuum --full" };
    warning("file", words, format!("new rows take the free pages; `{}` gives them back", hint(command)))
}

pub(super) fn wal(size: FileSize, openers: &[(i32, String)]) -> Finding {
    let words = format!("the write-ahead log has {}", megabytes(size.wal_bytes));
    if size.wal_bytes < WAL_LARGE_BYTES {
        return ok("wal", words);
    }
    let programs: Vec<String> = openers.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    let who =
        if programs.is_empty() { "no program that can be seen".to_owned() } else { programs.join(", ") };
    warning(
        "wal",
        format!("{words}; the file is open in {who}"),
        "one of them reads in a transaction that does not end: end it, and the next checkpoint cuts the log off",
    )
}

pub(super) fn backup(is_file: bool, hint: impl Fn(&str) -> String) -> Finding {
    let command =
        if is_file { format!("`{}` makes one", hint("db backup FILE")) } else { "see pg_dump".to_owned() };
    ok("backup", format!("no record of backups is kept here; {command}"))
}
