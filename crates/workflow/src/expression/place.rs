//! Which names can be looked up, by the place where a template or an expression stands.

use super::scope::{HasItems, HasWorkspace, Reader, Scope};
use crate::support::{self, Support};

/// The place of a template or an expression in a file. It decides which names can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `env` of the workflow. It belongs to no single job, so it reads no jobs.
    Workflow,
    /// `command` and `dir` of a job. Everybody on the machine can read them, so they have no secrets.
    Command,
    /// `env` and `stdin` of a job.
    Environment,
    /// `if` of a job, which is asked before its first attempt.
    Condition,
    /// `for_each` of a job, which gives its items.
    Items,
    /// `sleep`, `wait_for` and `approval` of a job, which the scheduler reads when the job is ready.
    Wait,
    /// `success_if`, `skip_if`, `repeat.until`, `retry.if` and `set_variables` of a job, which are evaluated at the end of an
    /// attempt.
    AttemptEnd,
    /// The same of a job of the kind `http`, whose attempts end with an answer. It has no exit code and no signal, and may name
    /// them, because `retry.if` of `[defaults]` may.
    RequestEnd,
    /// A path or a pattern of `artifacts` and `inputs`, which begins in the folder of the job.
    Path,
    /// The key of a `concurrency`, which is rendered before the run exists.
    ConcurrencyKey,
    /// A value in the `params` of a job that calls a workflow.
    CallParams,
    /// An expression of `outputs`, which is evaluated when the run is over.
    Outputs,
    /// A value in the `params` of a schedule, which makes the params of a run.
    Schedule,
    /// `if` and `params` of a trigger that takes events.
    Trigger,
    /// `if` and `params` of a trigger that takes ends of runs.
    RunEndTrigger,
}

/// The names that begin a look-up, in any place.
const ROOTS: [(&str, Support); 16] = [
    ("params", Support::Supported),
    ("run", Support::Supported),
    ("jobs", Support::Supported),
    ("variables", Support::Supported),
    ("item", Support::Supported),
    ("index", Support::Supported),
    ("secrets", support::SECRETS),
    ("scheduled_for", Support::Supported),
    ("event", Support::Supported),
    ("exit_code", support::RESULT_CONDITIONS),
    ("signal", support::RESULT_CONDITIONS),
    ("timed_out", support::RESULT_CONDITIONS),
    ("output", support::RESULT_CONDITIONS),
    ("attempt", support::RESULT_CONDITIONS),
    ("status", support::RESULT_CONDITIONS),
    ("headers", support::RESULT_CONDITIONS),
];

/// The fields of `run` that every run has from its beginning.
pub(super) const RUN: &[&str] = &["id", "workflow", "created_at", "key"];
/// The field of `run` that names the folder of the run.
pub(super) const WORKSPACE: &str = "workspace";
/// The fields of `run` that only handlers know: how the run ended, and the names of the jobs that failed.
pub(super) const RUN_END: &[&str] = &["outcome", "failed"];

/// What is known in one place.
struct Known {
    /// The names that begin a look-up.
    roots: &'static [&'static str],
    /// The fields of `run`, besides those that only handlers know.
    run: &'static [&'static str],
    /// The advice about a name that no place knows.
    summary: &'static str,
    /// The advice about `params`, `run`, `jobs` and `variables`, if the place does not know them.
    reason: &'static str,
}

const WORKFLOW_REASON: &str =
    "only `params`, `run` and `variables` are known here; read the output in the job that needs it";

impl Place {
    fn known(self) -> Known {
        let of_job = "the names are params.NAME, run.id and jobs.NAME.output";
        match self {
            Place::Workflow => Known {
                roots: &["params", "run", "variables"],
                run: RUN,
                summary: "the names are params.NAME and run.id",
                reason: WORKFLOW_REASON,
            },
            Place::Command | Place::Path => Known {
                roots: &["params", "run", "jobs", "variables", "item", "index"],
                run: RUN,
                summary: of_job,
                reason: "",
            },
            Place::Environment => Known {
                roots: &["params", "run", "jobs", "variables", "item", "index", "secrets"],
                run: RUN,
                summary: of_job,
                reason: "",
            },
            Place::Items => Known {
                roots: &["params", "run", "jobs", "variables"],
                run: RUN,
                summary: of_job,
                reason: "",
            },
            Place::Condition => Known {
                roots: &["params", "run", "jobs", "variables"],
                run: RUN,
                summary: "the names are params.NAME, run.id and jobs.NAME.status",
                reason: "",
            },
            Place::Wait | Place::CallParams => Known {
                roots: &["params", "run", "jobs", "variables", "item", "index"],
                run: RUN,
                summary: of_job,
                reason: "",
            },
            Place::AttemptEnd => Known {
                roots: &[
                    "params",
                    "run",
                    "jobs",
                    "variables",
                    "item",
                    "index",
                    "exit_code",
                    "signal",
                    "timed_out",
                    "output",
                    "attempt",
                ],
                run: RUN,
                summary: "the names are exit_code, signal, timed_out, output, attempt, params.NAME, run.id and \
                          jobs.NAME.output",
                reason: "",
            },
            Place::Outputs => {
                Known { roots: &["params", "run", "jobs"], run: RUN, summary: of_job, reason: "" }
            }
            Place::RequestEnd => Known {
                roots: &[
                    "params",
                    "run",
                    "jobs",
                    "variables",
                    "item",
                    "index",
                    "status",
                    "headers",
                    "exit_code",
                    "signal",
                    "timed_out",
                    "output",
                    "attempt",
                ],
                run: RUN,
                summary: "the names are status, headers, timed_out, output, attempt, params.NAME, run.id and \
                          jobs.NAME.output",
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
            Place::Trigger => Known {
                roots: &["event"],
                run: &[],
                summary: "the names are event.name, event.key, event.payload, event.id and event.received_at",
                reason: "a trigger starts the run; only `event` is known here",
            },
            Place::RunEndTrigger => Known {
                roots: &["event"],
                run: &[],
                summary: "the names are event.run.id, event.run.workflow, event.run.status and event.run.finished_at",
                reason: "a trigger starts the run; only `event` is known here",
            },
        }
    }

    /// The names that begin a look-up here.
    pub(super) fn roots(self, scope: &Scope<'_>) -> impl Iterator<Item = &'static str> + use<> {
        let (reader, has_items) = (scope.reader, scope.has_items);
        self.known().roots.iter().copied().filter(move |root| match *root {
            "jobs" => reader != Reader::Workflow,
            "item" | "index" => has_items == HasItems::Yes,
            _ => true,
        })
    }

    /// The fields of `run` that are known here.
    pub(super) fn run_fields(self, scope: &Scope<'_>) -> Vec<&'static str> {
        let known = self.known().run;
        let folder: &[&str] = match (self, scope.has_workspace) {
            (Place::Command | Place::Environment, HasWorkspace::Yes) => &[WORKSPACE],
            (_, HasWorkspace::Yes | HasWorkspace::No) => &[],
        };
        let ends: &[&str] = match scope.reader {
            Reader::Handler if known == RUN => RUN_END,
            Reader::Handler | Reader::Job | Reader::Outputs | Reader::Workflow => &[],
        };
        known.iter().chain(folder).chain(ends).copied().collect()
    }

    /// The fields of `event` that are known here, and those of `event.run`.
    pub(super) fn event_fields(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Place::RunEndTrigger => (&["run"], &["id", "workflow", "status", "finished_at"]),
            Place::Trigger => (&["name", "key", "payload", "id", "received_at"], &[]),
            Place::Workflow
            | Place::Command
            | Place::Path
            | Place::Environment
            | Place::Condition
            | Place::Items
            | Place::Wait
            | Place::CallParams
            | Place::Outputs
            | Place::AttemptEnd
            | Place::RequestEnd
            | Place::ConcurrencyKey
            | Place::Schedule => (&[], &[]),
        }
    }

    /// The advice about a name that no place knows.
    pub(super) fn summary(self) -> &'static str {
        self.known().summary
    }

    /// Why a name that other places know is not known here, and what to do. Nothing if it is known here, or nowhere.
    pub(super) fn why_unknown(
        self,
        root: &str,
        scope: &Scope<'_>,
        accepts: impl Fn(Support) -> bool,
    ) -> Option<&'static str> {
        let reader = scope.reader;
        ROOTS.iter().find(|(name, support)| *name == root && accepts(*support))?;
        if self.roots(scope).any(|known| known == root) {
            return None;
        }
        Some(match root {
            "scheduled_for" => {
                "set a parameter to it in the `params` of the schedule, and write {{ params.NAME }} here"
            }
            "event" => "only a trigger knows it; set a parameter in the `params` of the trigger",
            "item" | "index" if scope.has_items == HasItems::No => {
                "add `for_each` to the job, which gives it an item"
            }
            "item" | "index" => "`if`, `for_each` and `concurrency` are for all items together",
            "secrets" if self == Place::Path => {
                "the path of a file is no secret; a job reads a secret from its `env`"
            }
            "secrets" if self == Place::Command => {
                "anyone can read a command line; pass the secret by `env`, as in env = { TOKEN = \"{{ secrets.TOKEN }}\" }"
            }
            "secrets" => "`env`, `stdin` and `http` of a job can read secrets",
            "status" | "headers" if self == Place::AttemptEnd => {
                "only a job with `http` has it; a process has `exit_code` and `signal`"
            }
            "params" | "run" | "jobs" if reader == Reader::Workflow && self.known().reason.is_empty() => {
                WORKFLOW_REASON
            }
            "variables" if self == Place::Outputs => {
                "`outputs` are evaluated whenever they are read, and a variable may change; read it in a job"
            }
            "params" | "run" | "jobs" | "variables" => self.known().reason,
            _ => {
                "it belongs to an attempt; `success_if`, `skip_if`, `repeat.until`, `retry.if` and `set_variables` can read it"
            }
        })
    }
}

/// Whether this version supports the name that begins a look-up. It may be unknown.
pub(super) fn support_of_root(root: &str) -> Support {
    ROOTS.iter().find(|(name, _)| *name == root).map_or(Support::Supported, |(_, support)| *support)
}
