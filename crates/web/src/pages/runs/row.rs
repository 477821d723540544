//! A row of the list.

use serde_json::Value as Json;
use windlass_engine::store::{FocusedJob, KeyHolder, Run, Taken, Triggered, first_line};
use windlass_engine::{JobStatus, RunSource, RunStatus, WaitsFor};

use super::RunsData;
use crate::pages::fields::FORM_KEY;
use crate::pages::frame::Reader;
use crate::pages::look::{Look, WAITING};
use crate::pages::times::{Stamp, duration, rough_duration};

/// Segments of a progress bar at most. A run with more jobs has one for several jobs.
const SEGMENTS_MAX: i64 = 24;
/// Characters of the params that are shown.
const PARAMS_CHARS: usize = 120;
/// A run is slow if it takes this many times as long as usual, in tenths, and this much longer.
const SLOW_TENTHS: i64 = 15;
const SLOW_MS: i64 = 5_000;

/// A run in the list.
pub(super) struct RunRow {
    pub(super) id: i64,
    pub(super) look: Look,
    pub(super) workflow: String,
    pub(super) params: String,
    pub(super) why: Option<Why>,
    pub(super) jobs: String,
    pub(super) segments: Vec<&'static str>,
    pub(super) trigger: &'static str,
    pub(super) trigger_detail: String,
    pub(super) created: Stamp,
    pub(super) took: String,
    pub(super) usual: Option<String>,
    pub(super) is_slow: bool,
}

/// The job to look at first, and what is to say about it.
pub(super) struct Why {
    pub(super) job: String,
    pub(super) text: String,
    /// Whether the text is output of a program.
    pub(super) is_error: bool,
}

impl RunRow {
    pub(super) fn new(run: &Run, data: &RunsData, reader: &Reader) -> RunRow {
        let focused = data.focused.get(&run.id).filter(|_| run.status != RunStatus::Successful);
        let took_ms = took_ms(run, reader.times.now_ms);
        let usual_ms = data.usual_ms.get(&run.workflow).copied();
        let is_slow = match (took_ms, usual_ms) {
            (Some(took), Some(usual)) => took * 10 > usual * SLOW_TENTHS && took - usual > SLOW_MS,
            (None, _) | (_, None) => false,
        };
        let (trigger, trigger_detail) = trigger(run, data);
        RunRow {
            id: run.id,
            look: look_of(run.status, focused),
            workflow: run.workflow.clone(),
            params: params_in_a_line(&run.params),
            why: waits_for_slot(run, data).or_else(|| focused.and_then(|job| why(run, job, reader))),
            jobs: match run.total_jobs {
                1 => "1 job".to_owned(),
                count => format!("{count} jobs"),
            },
            segments: segments(run, focused, data),
            trigger,
            trigger_detail,
            created: reader.times.stamp(run.created_at),
            took: took_ms.map_or_else(String::new, duration),
            usual: usual_ms.filter(|_| took_ms.is_some()).map(|usual| format!("usually {}", duration(usual))),
            is_slow,
        }
    }
}

/// How long a run has taken until now or until its end, with the time before its last retry.
pub(in crate::pages) fn took_ms(run: &Run, now_ms: i64) -> Option<i64> {
    let started_at = run.started_at?;
    Some((run.finished_at.unwrap_or(now_ms) - started_at).max(0) + run.ran_before_ms)
}

/// A run of which no job runs waits, even if it has begun.
pub(in crate::pages) fn look_of(status: RunStatus, focused: Option<&FocusedJob>) -> Look {
    match (status, focused.map(|job| job.status)) {
        (
            RunStatus::Running,
            Some(JobStatus::Waiting | JobStatus::Pending | JobStatus::Scheduled | JobStatus::Blocked),
        ) => WAITING,
        (status, _) => Look::of_run(status),
    }
}

/// What a run waits for that may not begin yet, because others of its limit are active.
fn waits_for_slot(run: &Run, data: &RunsData) -> Option<Why> {
    let (key, limit) = run.concurrency.as_ref().filter(|_| run.waits_for.is_some())?;
    let holders = data.slot_holders.get(key).map_or(&[][..], Vec::as_slice);
    Some(Why { job: String::new(), text: slot_in_words(key, *limit, holders), is_error: false })
}

/// What a run waits for: `waits for one of 2 slots of key day, held by #3, #4`.
pub(in crate::pages) fn slot_in_words(key: &str, limit: i64, holders: &[i64]) -> String {
    let slots = if limit == 1 { "the slot".to_owned() } else { format!("one of {limit} slots") };
    let names: Vec<String> = holders.iter().map(|id| format!("#{id}")).collect();
    match names.is_empty() {
        true => format!("waits for {slots} of key {key}"),
        false => format!("waits for {slots} of key {key}, held by {}", names.join(", ")),
    }
}

fn why(run: &Run, job: &FocusedJob, reader: &Reader) -> Option<Why> {
    let of = |text: String, is_error| Some(Why { job: job.name.clone(), text, is_error });
    match job.status {
        JobStatus::Failed => of(job.error.as_deref().map_or("", first_line).to_owned(), true),
        JobStatus::Running => {
            let since = job.started_at.unwrap_or(reader.times.now_ms);
            of(format!("running for {}", duration(reader.times.now_ms - since)), false)
        }
        JobStatus::Cancelled if run.finished_at.is_none() => None,
        JobStatus::Cancelled => of(job.error.as_deref().map_or("cancelled", first_line).to_owned(), false),
        JobStatus::Waiting | JobStatus::Pending | JobStatus::Scheduled | JobStatus::Blocked => {
            of(waits(job, reader), false)
        }
        JobStatus::Successful | JobStatus::Skipped => None,
    }
}

/// Why a job waits, in a few words.
fn waits(job: &FocusedJob, reader: &Reader) -> String {
    let retried = job.error.as_deref().filter(|_| job.failures > 0).map(first_line);
    match (job.status, job.waits_for) {
        (JobStatus::Waiting, Some(WaitsFor::Slot)) => {
            let key = job.concurrency_key.as_deref().unwrap_or_default();
            match job.key_holder {
                Some(KeyHolder::Run(id)) => format!("waits for key {key}, held by #{id}"),
                Some(KeyHolder::Job(id)) => format!("waits for key {key}, held by job {id}"),
                None => format!("waits for key {key}"),
            }
        }
        (JobStatus::Waiting, Some(WaitsFor::Event)) => {
            format!("waits for event {}", job.event_name.as_deref().unwrap_or_default())
        }
        (JobStatus::Waiting, Some(WaitsFor::Approval)) => "waits for a person".to_owned(),
        (JobStatus::Waiting, Some(WaitsFor::Items)) => "waits for its items".to_owned(),
        (JobStatus::Waiting, Some(WaitsFor::Run)) => "waits for the run that it has started".to_owned(),
        (JobStatus::Waiting, Some(WaitsFor::Decision) | None) => "is decided next".to_owned(),
        (JobStatus::Pending, _) if job.queue_is_paused => format!("queue {} is paused", job.queue),
        (JobStatus::Pending, _) => {
            let ready_ms = reader.times.now_ms - job.execute_after;
            format!("ready for {}, waits for a worker", rough_duration(ready_ms))
        }
        (JobStatus::Scheduled, _) => {
            let at = reader.times.stamp(job.execute_after).short;
            match retried {
                Some(error) => format!("next attempt at {at}: {error}"),
                None => format!("starts at {at}"),
            }
        }
        (
            JobStatus::Blocked
            | JobStatus::Running
            | JobStatus::Successful
            | JobStatus::Failed
            | JobStatus::Skipped
            | JobStatus::Cancelled,
            _,
        ) => "waits for the jobs before it".to_owned(),
    }
}

/// The classes of the segments of the progress bar.
fn segments(run: &Run, focused: Option<&FocusedJob>, data: &RunsData) -> Vec<&'static str> {
    let [ok, failed, running, rest] = match data.counts_of_jobs.get(&run.id) {
        Some(counts) => {
            let allowed = counts.allowed_failures();
            let ok = counts.of(JobStatus::Successful) + allowed;
            let failed = counts.of(JobStatus::Failed) - allowed;
            let running = counts.of(JobStatus::Running);
            [ok, failed, running, counts.total() - ok - failed - running]
        }
        None => {
            let running = i64::from(focused.is_some_and(|job| job.status == JobStatus::Running));
            let running = running.min(run.unfinished_jobs);
            let ok = (run.total_jobs - run.unfinished_jobs - run.failed_jobs).max(0);
            [ok, run.failed_jobs, running, run.unfinished_jobs - running]
        }
    };
    let total = (ok + failed + running + rest).max(1);
    let parts = [("k", ok), ("f", failed), ("r", running), ("", rest)];
    // A part with few jobs still has a segment.
    let scaled = parts.map(|(class, count)| match total > SEGMENTS_MAX {
        true if count > 0 => (class, (count * SEGMENTS_MAX / total).max(1)),
        true | false => (class, count),
    });
    scaled.into_iter().flat_map(|(class, count)| (0..count).map(move |_| class)).collect()
}

fn trigger(run: &Run, data: &RunsData) -> (&'static str, String) {
    let schedule = run.schedule_id.and_then(|id| data.schedules.get(&id)).cloned().unwrap_or_default();
    let by = run.started_by.clone().unwrap_or_default();
    let list =
        |parts: [String; 2]| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    match run.source {
        None => {
            let key = run.run_key.as_ref().filter(|key| !key.starts_with(FORM_KEY));
            ("By hand", list([by, key.map_or_else(String::new, |key| format!("key {key}"))]))
        }
        Some(RunSource::Schedule) => ("Schedule", schedule),
        Some(RunSource::Catchup) => ("Catch-up", schedule),
        Some(RunSource::Backfill) => ("Backfill", schedule),
        Some(RunSource::Manual) => ("Schedule, by hand", list([schedule, by])),
        Some(RunSource::Event) => match data.triggered.get(&run.id) {
            None => ("Event", String::new()),
            Some(Triggered { trigger, taken }) => match taken {
                Some(Taken::Event { name: Some(name), .. }) => {
                    ("Event", format!("{name}, trigger {trigger}"))
                }
                Some(Taken::EndOfRun(id)) => ("End of a run", format!("#{id}, trigger {trigger}")),
                Some(Taken::Event { name: None, .. }) | None => ("Event", format!("trigger {trigger}")),
            },
        },
    }
}

/// The params of a run: `day = 2026-11-21, full = true`.
pub(in crate::pages) fn params_in_a_line(params: &str) -> String {
    let Ok(Json::Object(params)) = serde_json::from_str(params) else { return String::new() };
    let texts = params.iter().map(|(name, value)| format!("{name} = {}", value_as_text(value)));
    let line = texts.collect::<Vec<_>>().join(", ");
    match line.char_indices().nth(PARAMS_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// A value without the quotes of a text.
pub(in crate::pages) fn value_as_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
