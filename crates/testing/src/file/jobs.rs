//! The names of the jobs of a workflow, as a test file writes them.

use windlass_workflow::{Job, Workflow};

/// The jobs of a workflow by the names that a test file uses.
pub(crate) struct WorkflowJobs<'w> {
    jobs: Vec<(String, &'w Job)>,
}

impl<'w> WorkflowJobs<'w> {
    pub(crate) fn of(workflow: &'w Workflow) -> WorkflowJobs<'w> {
        WorkflowJobs { jobs: workflow.jobs.iter().map(|job| (job.name.clone(), job)).collect() }
    }

    /// The job with this name. `load[3]` is an item of `load`.
    pub(crate) fn find(&self, written: &str) -> Option<&'w Job> {
        let name = without_items(written);
        let (_, job) = self.jobs.iter().find(|(known, _)| *known == name)?;
        (name == written || job.for_each.is_some()).then_some(*job)
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.jobs.iter().map(|(name, _)| name.as_str())
    }
}

/// The name without the numbers of items: `load` for `load[3]`.
pub(crate) fn without_items(name: &str) -> String {
    let mut parts = Vec::new();
    for part in name.split('/') {
        let number = part.strip_suffix(']').and_then(|part| part.rsplit_once('['));
        let is_item = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        parts.push(match number {
            Some((base, number)) if is_item(number) => base,
            Some(_) | None => part,
        });
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::without_items;

    #[test]
    fn an_item_has_the_name_of_its_group() {
        let cases =
            [("load", "load"), ("load[3]", "load"), ("a[0]/b[12]", "a/b"), ("x[]", "x[]"), ("x[y]", "x[y]")];
        for (name, expected) in cases {
            assert_eq!(without_items(name), expected);
        }
    }
}
