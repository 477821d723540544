//! Which names a template can look up, by the place where it stands.

/// The place of a template in a file. It decides which names the template can look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `env` of the workflow. It belongs to no single job, so it reads no outputs.
    Workflow,
    /// A key of a job.
    Job,
    /// The key of a `concurrency`, which is rendered before the run exists.
    ConcurrencyKey,
    /// A value in the `params` of a schedule, which makes the params of a run.
    Schedule,
}

/// The fields of `run`.
pub(super) const RUN_FIELDS: &[&str] = &["id", "workflow", "created_at", "key"];

/// The names that begin a look-up, in any place.
pub(super) const ROOTS: [&str; 4] = ["params", "run", "jobs", "scheduled_for"];

/// What is known in one place.
pub(super) struct Known {
    /// The names that begin a look-up, each with advice for a place where it is not known.
    pub(super) roots: &'static [&'static str],
    /// The fields of `run`.
    pub(super) run: &'static [&'static str],
    /// The advice about names that no place knows.
    pub(super) summary: &'static str,
    /// The advice about a name that is known in other places only.
    reason: &'static str,
}

impl Place {
    /// What is known here.
    pub(super) fn known(self) -> Known {
        match self {
            Place::Workflow => Known {
                roots: &["params", "run"],
                run: RUN_FIELDS,
                summary: "the names are params.NAME and run.id",
                reason: "only `params` and `run` are known here; read the output in the job that needs it",
            },
            Place::Job => Known {
                roots: &["params", "run", "jobs"],
                run: RUN_FIELDS,
                summary: "the names are params.NAME, run.id and jobs.NAME.output",
                reason: "",
            },
            Place::ConcurrencyKey => Known {
                roots: &["params", "run"],
                run: &["workflow"],
                summary: "the names are params.NAME and run.workflow",
                reason: "the key is made before any job runs; a key can read `params` and `run.workflow`",
            },
            Place::Schedule => Known {
                roots: &["scheduled_for"],
                run: &[],
                summary: "a schedule can read `scheduled_for`, as in {{ scheduled_for | date }}",
                reason: "a schedule makes the params of a run; only `scheduled_for` is known here",
            },
        }
    }

    /// Why a name that other places know is not known here, and what to do. Nothing if it is known here, or nowhere.
    pub(super) fn why_unknown(self, root: &str) -> Option<&'static str> {
        let known = self.known();
        if known.roots.contains(&root) || !ROOTS.contains(&root) {
            return None;
        }
        Some(match root {
            "scheduled_for" => {
                "set a parameter to it in the `params` of the schedule, and write {{ params.NAME }} here"
            }
            _ => known.reason,
        })
    }
}
