//! The names of the jobs of a workflow, as a test file writes them.

use windlass_workflow::{Action, Job, Workflow};

/// The most names. Workflows that call others several times have more jobs than are written.
const NAMES_MAX: usize = 20_000;

/// The jobs of a workflow by the names that a test file uses.
pub(crate) struct WorkflowJobs<'w> {
    jobs: Vec<NamedJob<'w>>,
}

struct NamedJob<'w> {
    /// `load`, and `load/copy` for the job `copy` of the workflow that `load` calls.
    name: String,
    job: &'w Job,
    /// Whether it is an item or a job of one.
    is_of_items: bool,
}

impl<'w> WorkflowJobs<'w> {
    pub(crate) fn of(workflow: &'w Workflow) -> WorkflowJobs<'w> {
        let mut jobs = Vec::new();
        add(&mut jobs, &workflow.workflows, workflow, "", false);
        WorkflowJobs { jobs }
    }

    /// The job with this name. `load[3]` is an item of `load`.
    pub(crate) fn find(&self, written: &str) -> Option<&'w Job> {
        let name = without_items(written);
        let known = self.jobs.iter().find(|known| known.name == name)?;
        (name == written || known.is_of_items).then_some(known.job)
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.jobs.iter().map(|known| known.name.as_str())
    }
}

fn add<'w>(
    jobs: &mut Vec<NamedJob<'w>>,
    called: &'w [Workflow],
    workflow: &'w Workflow,
    before: &str,
    is_of_items: bool,
) {
    for job in &workflow.jobs {
        if jobs.len() >= NAMES_MAX {
            return;
        }
        let name = format!("{before}{}", job.name);
        let is_of_items = is_of_items || job.for_each.is_some();
        jobs.push(NamedJob { name: name.clone(), job, is_of_items });
        if let Action::Call(call) = &job.action
            && let Some(inner) = call.called.and_then(|index| called.get(index))
        {
            add(jobs, called, inner, &format!("{name}/"), is_of_items);
        }
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
