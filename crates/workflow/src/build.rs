//! Workflows that a program makes, with the defaults of those in files.

use std::collections::BTreeMap;

use crate::model::{
    Action, DEFAULT_MAX_INTERRUPTIONS, DEFAULT_QUEUE, Job, OnInterrupt, OutputSource, Retry, Workflow,
};

impl Workflow {
    /// A workflow of these jobs, of which `needs` are indices into the list.
    #[must_use]
    pub fn new(name: impl Into<String>, jobs: Vec<Job>) -> Workflow {
        Workflow {
            name: name.into(),
            description: None,
            timeout_ms: None,
            params: Vec::new(),
            env: BTreeMap::new(),
            schedules: Vec::new(),
            jobs,
        }
    }

    /// A graph of jobs that do nothing, for measurements and tests: `j0`, `j1` and so on, each with the indices of the
    /// jobs that it needs, in any order.
    #[must_use]
    pub fn graph(name: impl Into<String>, needs: impl IntoIterator<Item = Vec<usize>>) -> Workflow {
        let nothing = || Action::Command(vec!["true".to_owned()]);
        let job = |(index, mut needs): (usize, Vec<usize>)| {
            needs.sort_unstable();
            needs.dedup();
            Job { needs, ..Job::new(format!("j{index}"), nothing()) }
        };
        Workflow::new(name, needs.into_iter().enumerate().map(job).collect())
    }
}

impl Job {
    /// A job that says no more than what it executes.
    #[must_use]
    pub fn new(name: impl Into<String>, action: Action) -> Job {
        Job {
            name: name.into(),
            description: None,
            action,
            needs: Vec::new(),
            uses: Vec::new(),
            env: BTreeMap::new(),
            dir: None,
            retry: Retry::default(),
            timeout_ms: None,
            queue: DEFAULT_QUEUE.to_owned(),
            priority: 0,
            allow_failure: false,
            on_interrupt: OnInterrupt::default(),
            max_interruptions: DEFAULT_MAX_INTERRUPTIONS,
            output: OutputSource::default(),
            requires: Vec::new(),
            version: 0,
            concurrency: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Source, Workflow, parse};

    #[test]
    fn what_a_program_makes_is_what_a_file_says() {
        let text =
            "name = 'made'\n[jobs.j0]\ncommand = ['true']\n[jobs.j1]\ncommand = ['true']\nneeds = ['j0']\n";
        let parsed = parse(&Source::new("made.toml", text.into()).unwrap()).unwrap();
        assert_eq!(Workflow::graph("made", [vec![], vec![0]]), parsed);
    }
}
