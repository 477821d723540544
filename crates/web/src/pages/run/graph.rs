//! The graph of the jobs: what needs what. It has the layout of `windlass graph`.

use std::collections::BTreeMap;

use windlass_engine::JobStatus;
use windlass_engine::store::JobOfRun;
use windlass_workflow::draw::{Drawing, Node};

use crate::pages::look::{Failure, Look};
use crate::pages::times::{duration, grouped};

/// Up to so many jobs, the whole graph is shown; of a larger one, the jobs around one of them.
pub(super) const WHOLE_MAX: i64 = 500;
pub(super) const AROUND_MAX: usize = 60;
const WIDTH: f64 = 168.0;
const HEIGHT: f64 = 44.0;
/// Characters of a name that fit into a box.
const NAME_CHARS: usize = 18;
const MARGIN: f64 = 4.0;

/// The picture.
pub(super) struct Graph {
    pub(super) width: String,
    pub(super) height: String,
    pub(super) lines: Vec<GraphLine>,
    pub(super) boxes: Vec<GraphBox>,
    /// What is not shown, or why there is no picture.
    pub(super) note: Option<String>,
}

/// A line from a job to one that needs it.
pub(super) struct GraphLine {
    pub(super) path: String,
    /// It leads to a job that failed.
    pub(super) is_bad: bool,
}

/// A job.
pub(super) struct GraphBox {
    pub(super) id: i64,
    pub(super) x: String,
    pub(super) y: String,
    pub(super) name: String,
    pub(super) short: String,
    pub(super) detail: String,
    pub(super) look: Look,
    pub(super) is_current: bool,
}

impl Graph {
    /// `edges` are the ids of a needed job and of the one that needs it. Items are shown by the job that they belong to.
    /// `around` is the job in the middle, if the run has more jobs than these: so many.
    pub(super) fn new(
        jobs: &[JobOfRun],
        edges: &[(i64, i64)],
        current: Option<i64>,
        around: Option<(i64, i64)>,
    ) -> Graph {
        let shown: Vec<&JobOfRun> = jobs.iter().filter(|job| job.group_id.is_none()).collect();
        let note = around.map(|(middle, all)| {
            let name = shown.iter().find(|job| job.id == middle).map_or("", |job| job.name.as_str());
            format!("The {} jobs around {name}, of {}.", shown.len(), grouped(all))
        });
        let index: BTreeMap<i64, usize> = shown.iter().enumerate().map(|(at, job)| (job.id, at)).collect();
        let drawing = Drawing {
            nodes: shown.iter().map(|job| Node { name: job.name.clone(), ..Node::default() }).collect(),
            edges: edges
                .iter()
                .filter_map(|(needed, job)| Some((*index.get(needed)?, *index.get(job)?)))
                .collect(),
        };
        let positions = match drawing.positions(WIDTH, HEIGHT) {
            Ok(positions) => positions,
            Err(error) => {
                let note = Some(format!("There is no picture: {error}."));
                return Graph {
                    width: "1".to_owned(),
                    height: "1".to_owned(),
                    lines: vec![],
                    boxes: vec![],
                    note,
                };
            }
        };
        let number = |value: f64| format!("{value:.1}");
        Graph {
            width: number(positions.width + 2.0 * MARGIN),
            height: number(positions.height + 2.0 * MARGIN),
            lines: positions
                .lines
                .into_iter()
                .map(|((_, to), path)| GraphLine { path, is_bad: is_bad(shown[to]) })
                .collect(),
            boxes: shown
                .iter()
                .zip(positions.boxes)
                .map(|(job, (x, y))| GraphBox {
                    id: job.id,
                    x: number(x),
                    y: number(y),
                    name: job.name.clone(),
                    short: shorten(&job.name),
                    detail: detail(job),
                    look: Look::of_job(job.status, Failure::of(job.allow_failure)),
                    is_current: current == Some(job.id),
                })
                .collect(),
            note,
        }
    }
}

fn is_bad(job: &JobOfRun) -> bool {
    job.status == JobStatus::Failed && !job.allow_failure
}

fn detail(job: &JobOfRun) -> String {
    let took = match (job.started_at, job.finished_at) {
        (Some(from), Some(until)) => Some(duration(until - from)),
        (_, None) | (None, _) => None,
    };
    let attempts = (job.attempt > 1).then(|| format!("{} attempts", job.attempt));
    let state = match job.status {
        JobStatus::Successful => None,
        JobStatus::Failed if job.allow_failure => Some("failed, allowed".to_owned()),
        JobStatus::Blocked => Some("not started".to_owned()),
        JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Waiting
        | JobStatus::Failed
        | JobStatus::Skipped
        | JobStatus::Cancelled => Some(job.status.as_str().to_lowercase()),
    };
    let took = took.filter(|_| job.status == JobStatus::Successful);
    [state, took, attempts].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn shorten(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}
