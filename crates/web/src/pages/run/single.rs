//! The page of a job without a run: the lower half of the page of a run, with its state above.

use askama::Template;
use windlass_engine::JobStatus;
use windlass_engine::store::first_line;

use super::job::{CardPage, JobCard, Shown};
use super::{FailureBox, JobData, RunQuery, failure_title};
use crate::pages::escape::without_terminal_sequences;
use crate::pages::fields::FieldSort;
use crate::pages::frame::{Frame, Reader, Section};
use crate::pages::times::{Stamp, duration};

/// What the page shows.
#[derive(Debug)]
pub struct SingleData {
    /// What is asked for.
    pub query: RunQuery,
    /// The job.
    pub job: JobData,
    /// If it failed: the number of the first error's line, if the output has one, and its text.
    pub first_error: Option<(i64, String)>,
}

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    frame: Frame,
    job: JobCard,
    kind: String,
    queue: String,
    created: Stamp,
    took: Option<String>,
    is_running: bool,
    is_stopping: bool,
    failures: i64,
    max_attempts: i64,
    /// If it is not the usual one.
    priority: Option<i64>,
    failure: Option<FailureBox>,
    can_cancel: bool,
    can_retry: bool,
}

impl JobPage {
    /// The address of another job, as the card asks for it.
    fn job_href(&self, id: &i64) -> String {
        format!("{}/jobs/{id}", self.frame.base)
    }
}

/// The page of a job without a run.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &SingleData, reader: &Reader) -> askama::Result<String> {
    let job = &data.job.job;
    let frame = Frame::new(reader, Section::Queues, &format!("{} job {}", job.kind, job.id));
    let path = format!("/jobs/{}", job.id);
    let is_over = job.status.is_terminal();
    let is_stopping = job.cancel_requested_at.is_some() && !is_over;
    let ended = job.finished_at.or((job.status == JobStatus::Running).then_some(reader.times.now_ms));
    JobPage {
        can_cancel: !is_over && !is_stopping && frame.may_run(),
        can_retry: matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) && frame.may_run(),
        failure: (job.status == JobStatus::Failed).then(|| failure_box(data, reader)),
        job: JobCard::new(&data.job, &CardPage { path, query: &data.query, params: None }, reader),
        kind: job.kind.clone(),
        queue: job.queue.clone(),
        created: reader.times.stamp(job.created_at),
        took: job.started_at.zip(ended).map(|(from, until)| duration(until - from)),
        is_running: job.status == JobStatus::Running,
        is_stopping,
        failures: job.failures,
        max_attempts: job.max_attempts,
        priority: (job.priority != 0).then_some(job.priority),
        frame,
    }
    .render()
}

fn failure_box(data: &SingleData, reader: &Reader) -> FailureBox {
    let job = &data.job.job;
    let text = data
        .first_error
        .as_ref()
        .map_or_else(String::new, |(_line, text)| without_terminal_sequences(text).trim().to_owned());
    let error = job.last_error.as_deref().map_or("", first_line);
    FailureBox {
        called: None,
        title: failure_title("It", job.failures, error, &text),
        text,
        others: None,
        last_successful: None,
        first_error: data.first_error.as_ref().map(|(line, _text)| {
            let query =
                RunQuery { attempt: Some(job.attempt), line: Some(*line), ..data.query.of_job(job.id) };
            (*line, format!("{}/jobs/{}{}#L{line}", reader.base, job.id, query.to_query()))
        }),
    }
}
