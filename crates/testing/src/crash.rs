//! Makes the run of a case again for each of its commits, and ends the engine there. What a new engine makes of it must be
//! what the undisturbed run came to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use windlass_workflow::kinds::http::Method;
use windlass_workflow::{Action, Job, OnInterrupt};

use crate::check::output_text;
use crate::file::{Case, WorkflowJobs, without_items};
use crate::run::{CaseError, Observed, ObservedJob, Subject, run_until};

/// How many commits of a case are tried, at most. The engine is ended after the first of them.
pub const COMMITS_MAX: u64 = 1_000;

/// What ending the engine showed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Crashes {
    /// How many commits the undisturbed case has.
    pub commits: u64,
    /// After how many of them the engine was ended.
    pub tried: u64,
    /// What differs from the undisturbed run, once for each job and aspect.
    pub differences: Vec<CrashDifference>,
    /// The jobs that began again.
    pub repeated: Vec<Repeated>,
    /// The jobs that failed because of `on_interrupt = "fail"`, so that a person decides.
    pub left_to_a_person: Vec<String>,
}

/// Something that differs from the undisturbed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashDifference {
    /// The job; the run, if there is none.
    pub job: Option<String>,
    /// What differs: `status`, `variables`, `output` or `attempts`.
    pub aspect: &'static str,
    /// What the undisturbed run has.
    pub undisturbed: String,
    /// What the disturbed run has.
    pub disturbed: String,
    /// The last error of the job.
    pub error: Option<String>,
    /// The engine was ended after this commit.
    pub after_commit: u64,
    /// After how many commits the same was found.
    pub times: u64,
}

/// A job that began again, because the engine was ended before its end was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The job, without the numbers of items.
    pub job: String,
    /// Whether it is known that the repetition does no harm: the job is a request that only reads or replaces. Nobody but the
    /// author knows it of a process.
    pub is_safe: bool,
}

/// Ends the engine after each commit of a case, up to [`COMMITS_MAX`]. `undisturbed` is the case's run without that.
///
/// # Errors
/// Why a run could not be made.
pub fn crash_everywhere(
    subject: Subject<'_>,
    case: &Case,
    undisturbed: &Observed,
) -> Result<Crashes, CaseError> {
    crash_after(subject, case, undisturbed, 1..=undisturbed.commits.min(COMMITS_MAX))
}

/// Ends the engine after each of these commits of a case, which are counted from 1.
///
/// # Errors
/// Why a run could not be made.
pub fn crash_after(
    subject: Subject<'_>,
    case: &Case,
    undisturbed: &Observed,
    commits: impl IntoIterator<Item = u64>,
) -> Result<Crashes, CaseError> {
    let jobs = WorkflowJobs::of(subject.workflow);
    let (mut tried, mut found) = (0, Found::default());
    for commit in commits {
        tried += 1;
        let disturbed = run_until(subject, case, Some(commit))?;
        found.compare(&jobs, undisturbed, &disturbed, commit);
    }
    let safe = |name: &String| jobs.find(name).is_some_and(is_safe_to_repeat);
    let repeated =
        found.repeated.iter().map(|job| Repeated { is_safe: safe(job), job: job.clone() }).collect();
    Ok(Crashes {
        commits: undisturbed.commits,
        tried,
        differences: found.differences.into_values().collect(),
        repeated,
        left_to_a_person: found.left_to_a_person.into_iter().collect(),
    })
}

/// Whether a repetition of the job does no harm, by what its file says.
fn is_safe_to_repeat(job: &Job) -> bool {
    match &job.action {
        Action::Http(http) => match http.method {
            Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options => true,
            Method::Post | Method::Patch => false,
        },
        Action::Shell(_) => false,
        Action::Sleep(_) | Action::WaitFor(_) | Action::Approval(_) | Action::Signal(_) | Action::Call(_) => {
            true
        }
    }
}

#[derive(Default)]
struct Found {
    differences: BTreeMap<(Option<String>, &'static str, String), CrashDifference>,
    repeated: BTreeSet<String>,
    left_to_a_person: BTreeSet<String>,
}

impl Found {
    fn compare(
        &mut self,
        jobs: &WorkflowJobs<'_>,
        undisturbed: &Observed,
        disturbed: &Observed,
        commit: u64,
    ) {
        let begins_again =
            |job: &ObservedJob| job.interruptions.attempts > 0 && job.attempts > job.interruptions.attempts;
        let again = disturbed.jobs.iter().filter(|(_, job)| begins_again(job));
        self.repeated.extend(again.map(|(name, _)| without_items(name)));
        let left = left_to_a_person(jobs, disturbed);
        if !left.is_empty() {
            // Such a run waits for a person, so it is not to end like the undisturbed one.
            self.left_to_a_person.extend(left);
            return;
        }
        if disturbed.status != undisturbed.status {
            let (before, after) = (undisturbed.status.to_string(), disturbed.status.to_string());
            self.note(None, "status", before, after, None, commit);
        }
        if disturbed.variables != undisturbed.variables {
            let text = |variables| serde_json::to_string(variables).unwrap_or_default();
            let (before, after) = (text(&undisturbed.variables), text(&disturbed.variables));
            self.note(None, "variables", before, after, None, commit);
        }
        let names: BTreeSet<&String> = undisturbed.jobs.keys().chain(disturbed.jobs.keys()).collect();
        for name in names {
            let (before, after) = (undisturbed.jobs.get(name), disturbed.jobs.get(name));
            self.compare_job(jobs, name, before, after, commit);
        }
    }

    fn compare_job(
        &mut self,
        jobs: &WorkflowJobs<'_>,
        name: &str,
        undisturbed: Option<&ObservedJob>,
        disturbed: Option<&ObservedJob>,
        commit: u64,
    ) {
        let status = |job: Option<&ObservedJob>| job.map_or("none".to_owned(), |job| job.status.to_string());
        let output = |job: Option<&ObservedJob>| output_text(timeless(jobs, name, job).as_ref());
        let error = || disturbed.and_then(|job| job.error.clone());
        let (before, after) = (status(undisturbed), status(disturbed));
        if before != after {
            self.note(Some(name), "status", before, after, error(), commit);
        }
        let (before, after) = (output(undisturbed), output(disturbed));
        if before != after {
            self.note(Some(name), "output", before, after, error(), commit);
        }
        let (Some(undisturbed), Some(disturbed)) = (undisturbed, disturbed) else { return };
        if undisturbed.status != disturbed.status {
            return;
        }
        // An interrupted attempt is repeated, unless it was to be stopped, and that is all.
        let interruptions = disturbed.interruptions;
        let after = disturbed.attempts - interruptions.attempts + interruptions.stopped;
        let before = undisturbed.attempts;
        if before != after {
            let after = format!("{after} and {} interrupted", interruptions.attempts);
            self.note(Some(name), "attempts", before.to_string(), after, error(), commit);
        }
    }

    fn note(
        &mut self,
        job: Option<&str>,
        aspect: &'static str,
        undisturbed: String,
        disturbed: String,
        error: Option<String>,
        after_commit: u64,
    ) {
        let job = job.map(str::to_owned);
        let key = (job.clone(), aspect, disturbed.clone());
        let new = CrashDifference { job, aspect, undisturbed, disturbed, error, after_commit, times: 0 };
        self.differences.entry(key).or_insert(new).times += 1;
    }
}

/// The output of a job without the instants in it: after a crash the same happens later.
fn timeless(jobs: &WorkflowJobs<'_>, name: &str, job: Option<&ObservedJob>) -> Option<Json> {
    let mut output = job?.output.clone()?;
    let instant = match &jobs.find(name)?.action {
        Action::Approval(_) => "at",
        Action::WaitFor(_) => "received_at",
        Action::Shell(_) | Action::Http(_) | Action::Sleep(_) | Action::Call(_) | Action::Signal(_) => {
            return Some(output);
        }
    };
    // A group has a list of the outputs of its items.
    let outputs = if output.is_array() {
        output.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default()
    } else {
        std::slice::from_mut(&mut output)
    };
    for fields in outputs.iter_mut().filter_map(Json::as_object_mut) {
        fields.remove(instant);
    }
    Some(output)
}

/// The jobs of a disturbed run that were interrupted, and may not be repeated without a person.
fn left_to_a_person(jobs: &WorkflowJobs<'_>, disturbed: &Observed) -> Vec<String> {
    let is_left = |name: &str, job: &ObservedJob| {
        let on_interrupt = jobs.find(name).map(|job| job.on_interrupt);
        job.interruptions.has_failed && on_interrupt == Some(OnInterrupt::Fail)
    };
    let left = disturbed.jobs.iter().filter(|(name, job)| is_left(name, job));
    left.map(|(name, _)| without_items(name)).collect()
}
