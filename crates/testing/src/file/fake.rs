//! Reads the fake of a job: its attempts.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use windlass_worker::{FakeEnd, HowItEnds};
use windlass_workflow::strict::{Named, Table};
use windlass_workflow::{Action, Job};

use super::FakeAttempt;

/// The longest time that an attempt may take: ten years.
pub(super) const LONGEST_MS: i64 = 10 * 366 * 24 * 3_600_000;

/// The exit codes of a process.
const EXIT_CODES: std::ops::RangeInclusive<i64> = 0..=255;
const SIGNALS: std::ops::RangeInclusive<i64> = 1..=64;
const STATUSES: std::ops::RangeInclusive<i64> = 100..=599;
const DEFAULT_STATUS: u16 = 200;

/// Reads the fake of this job.
pub(super) fn take(named: &mut Named<'_, '_>, job: &Job) -> Vec<FakeAttempt> {
    let attempt = match &job.action {
        Action::Shell(_) => process,
        Action::Http(_) => request,
        Action::Sleep(_) | Action::WaitFor(_) | Action::Approval(_) | Action::Signal(_) => {
            let message = format!("`{}` is not executed by a worker, so it has no fake", named.name());
            named.refuse_name(
                message,
                "sleeps end by themselves; for waits use `case.events` and `case.approvals`",
            );
            return Vec::new();
        }
        Action::Call(_) => {
            let message = format!("`{}` is a run of another workflow, so it has no fake", named.name());
            named.refuse_name(
                message,
                format!("write the fakes of its jobs: [case.jobs.\"{}/JOB\"]", job.name),
            );
            return Vec::new();
        }
    };
    let attempts = named.table("a fake job", |table| {
        let attempts = table.tables("attempts", "an attempt", attempt).unwrap_or_default();
        if attempts.is_empty() {
            table.refuse("the fake has no attempts", "write attempts = [{ exit_code = 0 }]");
        }
        attempts
    });
    attempts.unwrap_or_default()
}

fn process(table: &mut Table<'_, '_>) -> FakeAttempt {
    let exit_code = table.integer("exit_code", EXIT_CODES);
    let signal = table.integer("signal", SIGNALS);
    let how = match (exit_code, signal) {
        (Some(_), Some(_)) => {
            table.refuse_key(
                "signal",
                "a process ends with an exit code or by a signal",
                "remove one of them",
            );
            HowItEnds::Exit(0)
        }
        (exit_code, None) => HowItEnds::Exit(small(exit_code)),
        (None, signal @ Some(_)) => HowItEnds::Signal(small(signal)),
    };
    let (output, error) = (bytes_of(table.value("output")), table.text("error"));
    FakeAttempt { takes_ms: takes_ms(table), end: FakeEnd { how, output, error } }
}

/// The ranges above are within those of a byte.
fn small(number: Option<i64>) -> u8 {
    u8::try_from(number.unwrap_or(0)).unwrap_or(u8::MAX)
}

fn request(table: &mut Table<'_, '_>) -> FakeAttempt {
    let status = table.integer("status", STATUSES).and_then(|status| u16::try_from(status).ok());
    let mut headers = BTreeMap::new();
    table.named("headers", |mut named| {
        let name = named.name().to_owned();
        match named.value() {
            Some(Json::String(value)) => {
                headers.insert(name, value);
            }
            Some(_) => named.refuse_value(format!("the header `{name}` must be a text"), "not a text"),
            None => {}
        }
    });
    let body = table.value("output");
    let is_json = body.as_ref().is_some_and(|body| !body.is_string());
    if is_json && !headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        headers.insert("content-type".to_owned(), "application/json".to_owned());
    }
    let error = table.text("error");
    if let (Some(_), Some(_)) = (status, &error) {
        table.refuse_key(
            "error",
            "a request has a `status`, or an `error` if no answer came",
            "remove one of them",
        );
    }
    let how = match error {
        Some(_) => HowItEnds::NoAnswer,
        None => HowItEnds::Answer { status: status.unwrap_or(DEFAULT_STATUS), headers },
    };
    FakeAttempt { takes_ms: takes_ms(table), end: FakeEnd { how, output: bytes_of(body), error } }
}

fn takes_ms(table: &mut Table<'_, '_>) -> i64 {
    table.duration_ms("takes", 0..=LONGEST_MS).unwrap_or(0)
}

/// A text as it is, and any other value as JSON.
fn bytes_of(value: Option<Json>) -> Option<Vec<u8>> {
    let value = value?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(text.into_bytes())
}
