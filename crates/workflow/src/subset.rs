//! A part of a workflow: some jobs, alone or with the jobs that they need.

use std::collections::BTreeSet;

use crate::graph::Graph;
use crate::model::{Job, When, Workflow};

/// Why a part of a workflow can't be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubsetError {
    /// There is no such job.
    #[error("workflow `{workflow}` has no job `{job}`")]
    NoJob {
        /// The workflow.
        workflow: String,
        /// The name that was given.
        job: String,
    },
    /// It is a job for the end of a run.
    #[error("`{job}` is a job of `{table}`, which runs at the end of a run")]
    Handler {
        /// The job.
        job: String,
        /// Its table.
        table: &'static str,
    },
    /// It reads a job that is left out.
    #[error("job `{job}` reads job `{read}`, which would not run")]
    ReadsLeftOut {
        /// The job.
        job: String,
        /// The job that it reads.
        read: String,
    },
}

impl Workflow {
    /// The workflow with some jobs only. `with_upstream` keeps the jobs that they need, directly or not. Handlers and schedules
    /// are left out.
    ///
    /// # Errors
    /// There is no such job, it is a handler, or it reads a job that is left out.
    pub fn only<S: AsRef<str>>(&self, names: &[S], with_upstream: bool) -> Result<Workflow, SubsetError> {
        let find = |name: &str| self.jobs.iter().position(|job| job.name == name);
        let mut kept = Vec::new();
        for name in names.iter().map(AsRef::as_ref) {
            let Some(index) = find(name) else {
                return Err(SubsetError::NoJob { workflow: self.name.clone(), job: name.to_owned() });
            };
            if let Some(handler) = self.jobs[index].handler {
                return Err(SubsetError::Handler { job: name.to_owned(), table: handler.key() });
            }
            if with_upstream {
                kept.extend(Graph::new(self).ancestors(index));
            }
            kept.push(index);
        }
        kept.sort_unstable();
        kept.dedup();
        let jobs = kept
            .iter()
            .map(|index| {
                let job = &self.jobs[*index];
                let read =
                    reads(job).into_iter().filter_map(|name| find(&name)).chain(job.uses.iter().copied());
                if let Some(left_out) = read.into_iter().find(|read| kept.binary_search(read).is_err()) {
                    let read = self.jobs[left_out].name.clone();
                    return Err(SubsetError::ReadsLeftOut { job: job.name.clone(), read });
                }
                Ok(renumbered(job, self.kept_needs(*index, &kept), &kept))
            })
            .collect::<Result<Vec<Job>, SubsetError>>()?;
        Ok(Workflow { jobs, schedules: Vec::new(), triggers: Vec::new(), ..self.clone() })
    }

    /// The kept jobs that a job needs, as places in `kept`: directly, or through jobs that are left out.
    fn kept_needs(&self, index: usize, kept: &[usize]) -> Vec<usize> {
        let mut needs = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut next = self.jobs[index].needs.clone();
        while let Some(need) = next.pop() {
            match kept.binary_search(&need) {
                Ok(place) => _ = needs.insert(place),
                Err(_left_out) if seen.insert(need) => next.extend(&self.jobs[need].needs),
                Err(_left_out) => {}
            }
        }
        needs.into_iter().collect()
    }
}

/// The names of the jobs that the expressions and the inputs of a job read.
fn reads(job: &Job) -> Vec<String> {
    let expressions = [&job.condition, &job.success_if, &job.skip_if, &job.retry.condition];
    let until = job.repeat.as_ref().map(|repeat| &repeat.until);
    expressions
        .into_iter()
        .flatten()
        .chain(until)
        .chain(job.set_variables.iter().flat_map(|variables| variables.values()))
        .flat_map(|expression| expression.reads())
        .map(|read| read.job)
        .chain(job.action.inputs().iter().map(|input| input.job.clone()))
        .collect()
}

/// The job in a list that has only the kept jobs.
fn renumbered(job: &Job, needs: Vec<usize>, kept: &[usize]) -> Job {
    let places = |list: &[usize]| list.iter().filter_map(|index| kept.binary_search(index).ok()).collect();
    let when = if needs.is_empty() { When::default() } else { job.when };
    Job { needs, when, uses: places(&job.uses), ..job.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::Source;

    const FILE: &str = "
        schedules = [{ cron = '@daily' }]
        [jobs.list]
        run = 'ls'
        [jobs.other]
        run = 'true'
        [jobs.load]
        needs = ['list', 'other']
        when = 'any_successful'
        run = 'true'
        [jobs.report]
        needs = ['load']
        env = { LIST = '{{ jobs.list.output }}' }
        run = 'true'
        [finally.clean]
        run = 'true'";

    #[test]
    fn jobs_run_alone_or_with_the_jobs_that_it_needs() {
        let workflow = crate::parse(&Source::new("a.toml", FILE.into()).unwrap()).unwrap();
        let names = |part: Result<Workflow, SubsetError>| {
            let part = part.unwrap();
            part.check().unwrap();
            part.jobs.into_iter().map(|job| job.name).collect::<Vec<_>>()
        };
        assert_eq!(names(workflow.only(&["load"], false)), ["load"]);
        assert_eq!(names(workflow.only(&["load"], true)), ["list", "other", "load"]);
        assert_eq!(names(workflow.only(&["report"], true)), ["list", "other", "load", "report"]);
        let several = workflow.only(&["report", "list", "list"], false);
        assert_eq!(names(several), ["list", "report"], "the jobs between them are left out");
        let several = workflow.only(&["report", "list"], false).unwrap();
        assert_eq!(several.jobs[1].needs, [0], "their order stays");
        assert_eq!(workflow.only(&["load", "list"], false).unwrap().jobs[1].needs, [0]);
        let error = |name| workflow.only(&[name], false).unwrap_err().to_string();
        assert_eq!(error("report"), "job `report` reads job `list`, which would not run");
        assert_eq!(error("clean"), "`clean` is a job of `finally`, which runs at the end of a run");
        assert_eq!(error("nope"), "workflow `a` has no job `nope`");
    }
}
