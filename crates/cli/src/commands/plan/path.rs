//! The critical path: the jobs that take longest one after the other. Pure.

use windlass_views::CriticalPathView;
use windlass_workflow::plan::{Forecast, PlannedJob};
use windlass_workflow::{Job, Workflow};

/// The critical path through the jobs that are not skipped, without handlers. Jobs without a time count nothing. `None` if no
/// job has a time.
pub(super) fn critical(
    workflow: &Workflow,
    planned: &[PlannedJob],
    duration_ms: impl Fn(&Job) -> Option<i64>,
) -> Option<CriticalPathView> {
    // By the index of a job: the end of the longest path to it, and the job before it on this path.
    let mut ends: Vec<Option<(i64, Option<usize>)>> = vec![None; workflow.jobs.len()];
    let mut is_known = false;
    for PlannedJob { index, forecast, .. } in planned {
        let job = &workflow.jobs[*index];
        if job.handler.is_some() || matches!(forecast, Forecast::Skipped(_)) {
            continue;
        }
        let own_ms = duration_ms(job);
        is_known |= own_ms.is_some();
        let before = job.needs.iter().filter_map(|needed| Some((ends[*needed]?.0, *needed))).max();
        let begins_ms = before.map_or(0, |(end_ms, _)| end_ms);
        ends[*index] = Some((begins_ms + own_ms.unwrap_or(0), before.map(|(_, needed)| needed)));
    }
    let (duration_ms, last) =
        ends.iter().enumerate().filter_map(|(index, end)| Some((end.as_ref()?.0, index))).max()?;
    let mut jobs = Vec::new();
    let mut next = Some(last);
    while let Some(index) = next {
        jobs.push(workflow.jobs[index].name.clone());
        next = ends[index].and_then(|(_, before)| before);
    }
    jobs.reverse();
    is_known.then_some(CriticalPathView { jobs, duration_ms })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_workflow::{Source, parse, plan::plan};

    #[test]
    fn the_longest_way_is_found_and_skipped_jobs_are_left_out() {
        let text = "name = 'w'\n[jobs.a]\nrun = 'x'\n[jobs.b]\nneeds = ['a']\nrun = 'x'\n[jobs.c]\nneeds = ['a']\nrun = 'x'\n\
                    [jobs.d]\nneeds = ['b', 'c']\nrun = 'x'\n[jobs.e]\nneeds = ['a']\nif = '1 == 2'\nrun = 'x'\n\
                    [finally.f]\nrun = 'x'\n";
        let workflow = parse(&Source::new("w.toml", text.into()).unwrap()).unwrap();
        let planned = plan(&workflow, &serde_json::Map::new());
        let times = |job: &Job| match job.name.as_str() {
            "a" => Some(1),
            "b" => Some(5),
            "c" => Some(7),
            "e" | "f" => Some(100),
            _no_time => None,
        };
        let path = critical(&workflow, &planned, times).unwrap();
        assert_eq!((path.jobs.join(" "), path.duration_ms), ("a c d".to_owned(), 8));
        assert!(critical(&workflow, &planned, |_job| None).is_none());
    }
}
