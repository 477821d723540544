//! Delivers traces: reads a run that ended, with the runs below it, and posts its spans to a collector.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value as Json;
use windlass_engine::Store;
use windlass_engine::store::{ClaimedNotification, DeliveryResult, TracedJob, TracedRun};
use windlass_engine::trace::RunTrace;
use windlass_system::Clock;
use windlass_views::{
    SpansLeftOut, attempt_span, job_span, run_span, successful_attempt_span, trace_request,
};
use windlass_worker::{JsonAnswer, JsonRequest, LinkLocal, MessageOutput, NotSent, Stop, send_json};

use super::notifier::result_of;
use crate::config::{Collector, NotifyTarget};

/// The most spans of a request.
const REQUEST_SPANS: usize = 1_000;
/// The most spans of a trace, besides that of its run. The others are left out.
const TRACE_SPANS: usize = 50_000;

/// How much of what a collector says about rejected spans is logged, in characters.
const REASON_CHARS: usize = 300;

/// Posts traces to a collector.
pub(super) struct Export<'e> {
    pub(super) target: &'e NotifyTarget,
    pub(super) collector: &'e Collector,
    pub(super) link_local: LinkLocal,
    pub(super) stop: &'e Stop,
}

/// Why a trace is not delivered.
enum Broken {
    Database(windlass_db::Error),
    NotSent(NotSent),
}

impl From<windlass_db::Error> for Broken {
    fn from(error: windlass_db::Error) -> Broken {
        Broken::Database(error)
    }
}

impl From<NotSent> for Broken {
    fn from(reason: NotSent) -> Broken {
        Broken::NotSent(reason)
    }
}

/// Tries a collector with a request without spans. Returns its status, for people.
pub(crate) fn try_collector(
    target: &NotifyTarget,
    collector: &Collector,
    link_local: LinkLocal,
) -> Result<String, NotSent> {
    let export = Export { target, collector, link_local, stop: &Stop::default() };
    export.post(Vec::new(), target.timeout_ms, MessageOutput::Shown).map(|answer| answer.status)
}

/// Whether the request must not be repeated. OTLP says so of all errors but these four.
fn is_final(status: u16) -> bool {
    (400..600).contains(&status) && !matches!(status, 429 | 502 | 503 | 504)
}

/// Says what to do about an answer that a wrong address gets.
fn with_next_step(reason: NotSent) -> NotSent {
    match reason {
        NotSent::Answered { status: status @ (404 | 405), reason } => NotSent::Answered {
            status,
            reason: format!("{reason}; check the path of `endpoint` in `[traces]`, usually /v1/traces"),
        },
        other @ (NotSent::Answered { .. } | NotSent::Failed(_) | NotSent::Interrupted) => other,
    }
}

/// The part of a collector's answer that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CollectorAnswer {
    partial_success: Option<PartialSuccess>,
}

/// Which spans of a request that it has taken the collector does not keep, and why.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    /// A number of 64 bits is a text in OTLP, and some collectors write a number.
    rejected_spans: Json,
    error_message: String,
}

/// What collectors have said about the requests of one delivery.
#[derive(Debug, Default, PartialEq)]
struct Rejected {
    spans: u64,
    /// The first reason.
    reason: String,
    /// The answers that were too long, or broken off.
    unread_answers: u64,
}

impl Rejected {
    fn add(&mut self, body: Option<&[u8]>) {
        let Some(body) = body else {
            self.unread_answers += 1;
            return;
        };
        let answer: Option<CollectorAnswer> = serde_json::from_slice(body).ok();
        let Some(partial) = answer.and_then(|answer| answer.partial_success) else { return };
        let number = partial.rejected_spans;
        let spans = number.as_u64().or_else(|| number.as_str().and_then(|text| text.parse().ok()));
        self.spans = self.spans.saturating_add(spans.unwrap_or_default());
        if self.reason.is_empty() {
            self.reason = partial.error_message.chars().take(REASON_CHARS).collect();
        }
    }

    /// Says it once. The protocol forbids a repetition, because it would have the same result.
    fn log(&self, claimed: &ClaimedNotification, secrets: &[(String, String)]) {
        let ClaimedNotification { id, target, subject, subject_id, .. } = claimed;
        let mut reason = self.reason.clone();
        for (_name, value) in secrets.iter().filter(|(_name, value)| !value.is_empty()) {
            reason = reason.replace(value, "***");
        }
        let rejected = self.spans;
        if self.unread_answers > 0 {
            tracing::warn!(
                notification = id, %target, %subject, subject_id,
                "the collector has taken a trace, but its answer is longer than 64 KiB or broken off: it may have rejected spans"
            );
        }
        if rejected > 0 {
            tracing::warn!(
                notification = id, %target, %subject, subject_id, rejected, reason,
                "the collector has rejected spans of a trace; they are not sent again"
            );
        } else if !reason.is_empty() {
            tracing::warn!(
                notification = id, %target, %subject, subject_id, reason,
                "the collector has taken a trace with a warning"
            );
        }
    }
}

impl Export<'_> {
    /// Delivers the trace of a run that ended. There is nothing to deliver if the run was retried since, because its next end
    /// is delivered too, or if its caller does not record the trace.
    pub(super) fn deliver(
        &self,
        store: &Store,
        claimed: &ClaimedNotification,
    ) -> windlass_db::Result<DeliveryResult> {
        let Some((run, trace)) = store.runs().traced(claimed.subject_id, claimed.happened_at)? else {
            return Ok(DeliveryResult::Delivered);
        };
        if !trace.is_sampled() {
            return Ok(DeliveryResult::Delivered);
        }
        let clock = store.clock().clone();
        let deadline_ms = clock.monotonic_ms().saturating_add(self.target.timeout_ms);
        let left_out = SpansLeftOut::None;
        let mut spans = Spans {
            export: self,
            store,
            trace,
            clock,
            deadline_ms,
            waiting: Vec::new(),
            total: 0,
            left_out,
            rejected: Rejected::default(),
        };
        let sent = spans.send(&run);
        spans.rejected.log(claimed, &self.collector.headers);
        match sent {
            Ok(()) => Ok(DeliveryResult::Delivered),
            Err(Broken::NotSent(NotSent::Answered { status, reason })) if is_final(status) => {
                Ok(DeliveryResult::Refused(reason))
            }
            Err(Broken::Database(error)) => Err(error),
            Err(Broken::NotSent(reason)) => Ok(result_of(Err(reason))),
        }
    }

    fn post(&self, spans: Vec<Json>, timeout_ms: i64, output: MessageOutput) -> Result<JsonAnswer, NotSent> {
        let Collector { url, headers, .. } = self.collector;
        let json = trace_request(spans).to_string();
        let link_local = self.link_local;
        send_json(&JsonRequest { url, headers, json: &json, timeout_ms, link_local }, output, self.stop)
            .map_err(with_next_step)
    }
}

/// The spans of one trace, which are sent while they are read.
struct Spans<'s> {
    export: &'s Export<'s>,
    store: &'s Store,
    trace: RunTrace,
    clock: Clock,
    deadline_ms: i64,
    /// Those of the next request.
    waiting: Vec<Json>,
    total: usize,
    left_out: SpansLeftOut,
    rejected: Rejected,
}

impl Spans<'_> {
    /// The span of the run at the top is the last one, because it says whether others are left out.
    fn send(&mut self, top: &TracedRun) -> Result<(), Broken> {
        self.add_jobs(top)?;
        self.add_below(top)?;
        self.push(run_span(&self.trace, top, self.left_out))?;
        self.post()
    }

    fn add_below(&mut self, top: &TracedRun) -> Result<(), Broken> {
        let mut after = 0;
        while self.left_out == SpansLeftOut::None {
            let runs = self.store.runs().traced_below(top.id, after)?;
            let Some(last) = runs.last() else { break };
            after = last.id;
            for run in &runs {
                self.add(Some(run_span(&self.trace, run, SpansLeftOut::None)))?;
                self.add_jobs(run)?;
            }
        }
        Ok(())
    }

    fn add_jobs(&mut self, run: &TracedRun) -> Result<(), Broken> {
        let mut after = String::new();
        while self.left_out == SpansLeftOut::None {
            let jobs = self.store.runs().traced_jobs(run.id, &after)?;
            let Some(last) = jobs.last() else { break };
            after.clone_from(&last.name);
            for job in &jobs {
                self.add(Some(job_span(&self.trace, run, job)))?;
                self.add(successful_attempt_span(&self.trace, run, job))?;
            }
            self.add_attempts(run, &jobs)?;
        }
        Ok(())
    }

    /// Adds the attempts that did not succeed, and those that a retry has replaced.
    fn add_attempts(&mut self, run: &TracedRun, jobs: &[TracedJob]) -> Result<(), Broken> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
        let by_id: HashMap<i64, &TracedJob> = jobs.iter().map(|job| (job.id, job)).collect();
        let mut after = (0, 0);
        while self.left_out == SpansLeftOut::None {
            let attempts = self.store.runs().traced_attempts(&ids, after)?;
            let Some((job_id, last)) = attempts.last() else { break };
            after = (*job_id, last.attempt);
            for (job_id, attempt) in &attempts {
                let job = by_id.get(job_id);
                self.add(job.and_then(|job| attempt_span(&self.trace, run, job, attempt)))?;
            }
        }
        Ok(())
    }

    /// Adds a span, if there is one and the trace may have one more.
    fn add(&mut self, span: Option<Json>) -> Result<(), Broken> {
        let Some(span) = span else { return Ok(()) };
        if self.total == TRACE_SPANS {
            self.left_out = SpansLeftOut::Some;
            return Ok(());
        }
        self.total += 1;
        self.push(span)
    }

    fn push(&mut self, span: Json) -> Result<(), Broken> {
        if self.waiting.len() == REQUEST_SPANS {
            self.post()?;
        }
        self.waiting.push(span);
        Ok(())
    }

    fn post(&mut self) -> Result<(), Broken> {
        let left_ms = self.deadline_ms - self.clock.monotonic_ms();
        let spans = std::mem::take(&mut self.waiting);
        let answer = self.export.post(spans, left_ms, MessageOutput::Discarded)?;
        self.rejected.add(answer.body.as_deref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_otlp_calls_retryable_is_repeated() {
        for status in [400, 401, 403, 404, 405, 408, 413, 415, 422, 500, 501, 505, 507] {
            assert!(is_final(status), "{status}");
        }
        for status in [307, 429, 502, 503, 504] {
            assert!(!is_final(status), "{status}");
        }
    }

    #[test]
    fn rejected_spans_are_counted_over_all_requests() {
        let mut rejected = Rejected::default();
        for body in ["", "{}", "no JSON", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":null}"#] {
            rejected.add(Some(body.as_bytes()));
            assert_eq!(rejected, Rejected::default(), "{body}");
        }
        rejected.add(Some(br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#));
        rejected.add(None);
        rejected.add(Some(br#"{"partialSuccess":{"rejectedSpans":4,"errorMessage":"too new"}}"#));
        assert_eq!(rejected, Rejected { spans: 7, reason: "too old".to_owned(), unread_answers: 1 });
        let mut long = Rejected::default();
        let reason = "x".repeat(1_000);
        long.add(Some(format!(r#"{{"partialSuccess":{{"errorMessage":"{reason}"}}}}"#).as_bytes()));
        assert_eq!((long.spans, long.reason.len()), (0, REASON_CHARS));
    }
}
