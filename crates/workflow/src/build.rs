//! Workflows and jobs that a program builds. They get the same defaults as those in files.

use std::collections::BTreeMap;

use crate::kinds::Action;
use crate::model::{DEFAULT_MAX_INTERRUPTIONS, DEFAULT_QUEUE, Job, OnInterrupt, Retry, When, Workflow};

impl Workflow {
    /// A workflow of these jobs. Their `needs` are indices into the list.
    #[must_use]
    pub fn new(name: impl Into<String>, jobs: Vec<Job>) -> Workflow {
        Workflow {
            name: name.into(),
            description: None,
            timeout_ms: None,
            params: Vec::new(),
            env: BTreeMap::new(),
            schedules: Vec::new(),
            triggers: Vec::new(),
            tags: Vec::new(),
            secrets: Vec::new(),
            outputs: BTreeMap::new(),
            workflows: Vec::new(),
            workspace: None,
            concurrency: None,
            jobs,
        }
    }

    /// A workflow of jobs that do nothing, for tests and measurements. The jobs are called `j0`, `j1` and so on. `needs` has
    /// one item for each job: the indices of the jobs that it needs, in any order.
    #[must_use]
    pub fn graph(name: impl Into<String>, needs: impl IntoIterator<Item = Vec<usize>>) -> Workflow {
        let job = |(index, mut needs): (usize, Vec<usize>)| {
            needs.sort_unstable();
            needs.dedup();
            Job { needs, ..Job::new(format!("j{index}"), Action::nothing()) }
        };
        Workflow::new(name, needs.into_iter().enumerate().map(job).collect())
    }
}

impl Job {
    /// A job that executes `action`. Everything else has its default.
    #[must_use]
    pub fn new(name: impl Into<String>, action: impl Into<Action>) -> Job {
        Job {
            name: name.into(),
            description: None,
            action: action.into(),
            needs: Vec::new(),
            when: When::default(),
            condition: None,
            for_each: None,
            handler: None,
            uses: Vec::new(),
            retry: Retry::default(),
            timeout_ms: None,
            deadline_ms: None,
            success_if: None,
            skip_if: None,
            repeat: None,
            set_variables: None,
            secrets: Vec::new(),
            queue: DEFAULT_QUEUE.to_owned(),
            priority: 0,
            allow_failure: false,
            on_interrupt: OnInterrupt::default(),
            max_interruptions: DEFAULT_MAX_INTERRUPTIONS,
            requires: Vec::new(),
            code_version: 0,
            concurrency: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Source, Workflow, parse};

    #[test]
    fn a_workflow_built_in_code_equals_the_same_workflow_in_a_file() {
        let text =
            "name = 'made'\n[jobs.j0]\ncommand = ['true']\n[jobs.j1]\ncommand = ['true']\nneeds = ['j0']\n";
        let parsed = parse(&Source::new("made.toml", text.into()).unwrap()).unwrap();
        assert_eq!(Workflow::graph("made", [vec![], vec![0]]), parsed);
    }
}
