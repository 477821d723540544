//! The keys of the file, and those of jobs of every kind.

use crate::expression::Place;
use crate::key::ValueType::{
    AnyValues, Boolean, Duration, Instant, Integer, List, Number, Tables, Text, Texts, Values, Word,
};
use crate::key::{Key, Table, ValueType};
use crate::{env, kinds, support};

const TIMEOUT_ELSEWHERE: &[&str] = &["timeoutsec", "timeoutminutes", "executiontimeout"];
const PARAMS_ELSEWHERE: &[&str] = &["parameters", "inputs"];

/// `env` of the workflow.
pub(crate) const WORKFLOW_ENV: Key = Key::new("env", &[Values], "environment of every job")
    .template(Place::Workflow)
    .elsewhere(env::ELSEWHERE);

/// `params` of a schedule.
pub(crate) const SCHEDULE_PARAMS: Key =
    Key::new("params", &[AnyValues], "values of the workflow's parameters")
        .template(Place::Schedule)
        .elsewhere(PARAMS_ELSEWHERE);

/// `outputs` of the workflow.
pub(crate) const OUTPUTS: Key =
    Key::new("outputs", &[Values], "what a run gives to the job that called the workflow")
        .support(support::CALLS)
        .expression(Place::Outputs)
        .elsewhere(&["output", "returns", "results"]);

/// The keys of the top level that a workflow in `workflows` has too.
pub(super) const LOCAL_WORKFLOW: &[&str] = &[
    "description",
    "timeout",
    "params",
    "env",
    "defaults",
    "jobs",
    "outputs",
    "workspace",
    "concurrency",
    "on_success",
    "on_failure",
    "on_cancel",
    "finally",
];

/// `include` of the file.
pub(crate) const INCLUDE: Key = Key::new(
    "include",
    &[Texts, Text],
    "files whose `workflows`, `secrets`, `env` and `defaults` are a part of this one",
)
.elsewhere(&["includes", "import", "imports", "extends"]);

pub(super) const WORKFLOW: &[Key] = &[
    Key::new("name", &[Text], "the workflow's name").default("the name of the file"),
    Key::new("description", &[Text], "what it is for"),
    INCLUDE,
    Key::new("timeout", &[Duration], "how long a run may take in all").elsewhere(TIMEOUT_ELSEWHERE),
    Key::new("params", &[Tables(Table::Param)], "its parameters").elsewhere(PARAMS_ELSEWHERE),
    WORKFLOW_ENV,
    Key::new("schedules", &[List(Table::Schedule)], "when it runs by itself")
        .elsewhere(&["schedule", "scheduleinterval"]),
    Key::new("triggers", &[List(Table::Trigger)], "what else starts a run: events, ends of other runs")
        .elsewhere(&["trigger", "on"]),
    Key::new("defaults", &[ValueType::Table(Table::Defaults)], "values for all jobs without the key"),
    Key::new("jobs", &[Tables(Table::Job)], "the jobs by name").elsewhere(&["tasks", "steps"]),
    OUTPUTS,
    Key::new(
        "concurrency",
        &[ValueType::Table(Table::RunConcurrency)],
        "how many runs may be active at a time, and what happens to one more",
    )
    .elsewhere(&["maxactiveruns", "synchronization", "concurrencypolicy"]),
    Key::new("workflows", &[Tables(Table::LocalWorkflow)], "workflows that jobs of this file call by name")
        .support(support::CALLS)
        .elsewhere(&["subworkflows", "templates"]),
    Key::new("tags", &[Texts, Text], "words by which lists of runs are filtered").elsewhere(&["labels"]),
    Key::new("secrets", &[Tables(Table::Secret)], "where the values of secrets come from")
        .support(support::SECRETS),
    Key::new(
        "workspace",
        &[Boolean, ValueType::Table(Table::Workspace)],
        "whether each run has a folder of its own, in which its jobs start",
    )
    .default("false"),
    Key::new("on_success", &[Tables(Table::Job)], "jobs for the end of a run whose jobs succeeded")
        .support(support::HANDLERS)
        .elsewhere(&["onsuccesscallback"]),
    Key::new("on_failure", &[Tables(Table::Job)], "jobs for the end of a run with a failed job")
        .support(support::HANDLERS)
        .elsewhere(&["onfail", "onfailurecallback", "onerror", "errors"]),
    Key::new("on_cancel", &[Tables(Table::Job)], "jobs for the end of a run that was cancelled")
        .support(support::HANDLERS)
        .elsewhere(&["onabort"]),
    Key::new("finally", &[Tables(Table::Job)], "jobs for the end of every run, after the others")
        .support(support::HANDLERS)
        .elsewhere(&["onexit", "always", "handleron"]),
];

pub(super) const WORKSPACE: &[Key] = &[Key::new("keep", &[Word], "which runs keep their folder")
    .words(&["never", "on_failure", "always"])
    .default("never")
    .elsewhere(&["retain", "cleanup", "retention"])];

/// A secret has one of these, or none.
pub(super) const SECRET: &[Key] = &[
    Key::new("env", &[Text], "the worker's variable that has the value")
        .elsewhere(&["variable", "environment"]),
    Key::new("file", &[Text], "the file that has the value").elsewhere(&["path"]),
    Key::new("command", &[Texts], "the program that prints the value").elsewhere(&["cmd", "exec"]),
];

pub(super) const PARAM: &[Key] = &[
    Key::new("type", &[Word], "what values may be")
        .default("string")
        .words(&["string", "integer", "number", "boolean", "date", "datetime", "duration", "choice", "list"]),
    Key::new("description", &[Text], "what it is for"),
    Key::new(
        "default",
        &[Text, Integer, Number, Boolean, Instant, ValueType::Items],
        "the value of a run that gives none",
    ),
    Key::new("required", &[Boolean], "whether a run must give a value").default("true without `default`"),
    Key::new("choices", &[Texts], "the values of a `choice`"),
];

pub(super) const SCHEDULE: &[Key] = &[
    Key::new("name", &[Text], "the schedule's name").default("default"),
    Key::new("cron", &[Text], "the times as a cron expression").elsewhere(&[
        "schedule",
        "scheduleinterval",
        "oncalendar",
        "expression",
    ]),
    Key::new("every", &[Duration], "the interval").elsewhere(&["interval"]),
    Key::new("at", &[Instant, Text], "the instant of a schedule that occurs once")
        .elsewhere(&["once", "runat", "runonce"]),
    Key::new("enabled", &[Boolean], "whether the schedule is registered")
        .default("true")
        .elsewhere(&["disabled", "paused", "suspend", "active"]),
    Key::new("timezone", &[Text], "the zone whose clock `cron` and `at` read")
        .default("UTC")
        .elsewhere(&["tz", "zone"]),
    Key::new("overlap", &[Word], "what happens at an occurrence while an earlier run is unfinished")
        .words(&["skip", "queue_one", "queue_all", "allow", "cancel_running", "terminate_running"])
        .default("skip")
        .elsewhere(&["concurrencypolicy", "overlappolicy", "maxactiveruns"]),
    Key::new("catchup", &[Word], "which missed occurrences get a run")
        .words(&["none", "last", "all"])
        .default("last")
        .elsewhere(&["persistent"]),
    Key::new("catchup_window", &[Duration], "how old a missed occurrence may be to get a run"),
    Key::new("catchup_max", &[Integer], "how many missed occurrences get a run").default("1000"),
    Key::new("start", &[Instant, Text], "the first instant of the schedule").elsewhere(&[
        "startdate",
        "startat",
        "from",
    ]),
    Key::new("end", &[Instant, Text], "the instant at which the schedule ends")
        .elsewhere(&["enddate", "endat", "until", "to"]),
    Key::new("jitter", &[Duration], "the largest random delay of a run").elsewhere(&["randomizeddelaysec"]),
    SCHEDULE_PARAMS,
];

/// `if` of a trigger.
pub(crate) const TRIGGER_IF: Key = Key::new("if", &[Text], "a condition for starting a run")
    .expression(Place::Trigger)
    .elsewhere(&["condition", "filter", "when"]);

/// `params` of a trigger.
pub(crate) const TRIGGER_PARAMS: Key =
    Key::new("params", &[AnyValues], "values of the workflow's parameters")
        .template(Place::Trigger)
        .elsewhere(PARAMS_ELSEWHERE);

pub(super) const TRIGGER: &[Key] = &[
    Key::new("name", &[Text], "the trigger's name").default("default"),
    Key::new("event", &[Text], "the name of the event that starts a run").elsewhere(&["on", "signal"]),
    Key::new("key", &[Text], "the key of the event").default("any"),
    Key::new(
        "after",
        &[Texts, Text],
        "the workflows whose ended runs start a run; `*` stands for any characters",
    )
    .elsewhere(&["workflows", "workflowrun"]),
    Key::new("status", &[Texts, Text], "how those runs ended: SUCCESSFUL, FAILED, CANCELLED")
        .default("any")
        .elsewhere(&["types", "state", "outcome"]),
    TRIGGER_IF,
    TRIGGER_PARAMS,
];

/// `if` of a job.
pub(crate) const IF: Key = Key::new("if", &[Text], "a condition for executing the job")
    .support(support::CONDITIONS)
    .expression(Place::Condition)
    .elsewhere(&["condition", "onlyif", "preconditions", "runif"]);

/// `for_each` of a job.
pub(crate) const FOR_EACH: Key = Key::new(
    "for_each",
    &[ValueType::Items, Text, ValueType::Table(Table::ForEach)],
    "the items for each of which the job is executed",
)
.expression(Place::Items)
.elsewhere(&["foreach", "matrix", "withitems", "withparam", "expand", "dynamic", "mapped"]);

/// `in` of `for_each`.
pub(crate) const FOR_EACH_IN: Key =
    Key::new("in", &[Text, ValueType::Items], "an expression that gives the items, or a list")
        .expression(Place::Items)
        .elsewhere(&["items", "list", "values"]);

/// `matrix` of `for_each`. The texts in its values are templates, as those of a written list are.
pub(crate) const MATRIX: Key =
    Key::new("matrix", &[ValueType::Lists], "names and values, whose combinations are the items")
        .template(Place::Workflow);

pub(super) const FOR_EACH_TABLE: &[Key] = &[
    FOR_EACH_IN,
    MATRIX,
    Key::new("exclude", &[ValueType::Items], "combinations of the matrix that are left out")
        .template(Place::Workflow),
    Key::new("max_parallel", &[Integer], "how many items run at a time").default("all").elsewhere(&[
        "maxparallel",
        "parallelism",
        "concurrency",
        "maxconcurrency",
    ]),
    Key::new("fail_fast", &[Boolean], "whether the first item that fails ends the others")
        .default("false")
        .elsewhere(&["failfast"]),
    Key::new("limit", &[Integer], "how many items there may be").default("10000").elsewhere(&["max"]),
];

/// `success_if` of a job.
pub(crate) const SUCCESS_IF: Key =
    Key::new("success_if", &[Text], "a condition that makes an attempt a success")
        .support(support::RESULT_CONDITIONS)
        .expression(Place::AttemptEnd)
        .default("exit_code == 0")
        .elsewhere(&["successexitstatus", "markedsuccess"]);

/// `skip_if` of a job.
pub(crate) const SKIP_IF: Key =
    Key::new("skip_if", &[Text], "a condition that makes the job SKIPPED after an attempt")
        .support(support::RESULT_CONDITIONS)
        .expression(Place::AttemptEnd)
        .elsewhere(&["skiponexitcode"]);

/// `set_variables` of a job.
pub(crate) const SET_VARIABLES: Key =
    Key::new("set_variables", &[Values], "variables that get a value when the job succeeds")
        .value(Place::AttemptEnd)
        .elsewhere(&["kv", "kvset", "setkv"]);

/// `if` of `retry`.
pub(crate) const RETRY_IF: Key = Key::new("if", &[Text], "a condition for another attempt")
    .support(support::RESULT_CONDITIONS)
    .expression(Place::AttemptEnd)
    .elsewhere(&["when", "on", "exitcodes", "exitcode"]);

/// `until` of `repeat`.
pub(crate) const REPEAT_UNTIL: Key = Key::new("until", &[Text], "the condition that ends the rounds")
    .expression(Place::AttemptEnd)
    .elsewhere(&["condition", "if"]);

/// The keys that a job may have, whatever its kind.
pub(super) const JOB: &[Key] = &[
    Key::new("needs", &[Texts, Text], "jobs that must be done before this job").elsewhere(&[
        "dependson",
        "depends",
        "dependencies",
        "after",
        "upstream",
    ]),
    Key::new("description", &[Text], "what it is for"),
    IF,
    Key::new("when", &[Word], "how the jobs that it needs must have ended")
        .words(&["all_successful", "none_failed", "any_successful", "any_failed", "all_finished"])
        .support(support::CONDITIONS)
        .default("all_successful")
        .elsewhere(&["triggerrule", "rule"]),
    FOR_EACH,
    SUCCESS_IF,
    SKIP_IF,
    Key::new(
        "repeat",
        &[ValueType::Table(Table::Repeat)],
        "the job is executed in rounds until a condition holds",
    )
    .elsewhere(&["repeatpolicy", "poll", "poke", "loop"]),
    SET_VARIABLES,
    Key::new("deadline", &[Duration], "how long the job may take, over all attempts and their pauses")
        .support(support::DEADLINE),
    Key::new("secrets", &[Texts, Text], "secrets that the job gets as variables").support(support::SECRETS),
    Key::new(
        "retry",
        &[ValueType::Table(Table::Retry), Integer],
        "when and how often a failed attempt is repeated",
    )
    .in_defaults()
    .elsewhere(&["retries", "retrypolicy", "retrydelay", "maxretries", "maxattempts", "attempts"]),
    Key::new("timeout", &[Duration], "how long one attempt may take")
        .in_defaults()
        .elsewhere(TIMEOUT_ELSEWHERE),
    Key::new("queue", &[Text], "the queue in which the job waits")
        .in_defaults()
        .default("default")
        .elsewhere(&["pool"]),
    Key::new("priority", &[Word, Integer], "jobs with a higher priority are claimed first")
        .words(&["low", "normal", "high", "critical"])
        .in_defaults()
        .default("normal")
        .elsewhere(&["priorityweight", "weight"]),
    Key::new("allow_failure", &[Boolean], "whether a failure of the job is no failure of the run")
        .in_defaults()
        .default("false")
        .elsewhere(&["continueonerror", "continueon", "ignoreerrors"]),
    Key::new("on_interrupt", &[Word], "what happens when the job's worker dies")
        .words(&["rerun", "fail"])
        .in_defaults()
        .default("rerun"),
    Key::new("max_interruptions", &[Integer], "how many deaths of its worker the job survives")
        .in_defaults()
        .default("25"),
    Key::new("requires", &[Texts, Text], "capabilities that a worker must have").in_defaults().elsewhere(&[
        "capabilities",
        "runson",
        "labels",
    ]),
    Key::new(
        "code_version",
        &[Integer],
        "the lowest version of the code on a worker that may execute the job",
    )
    .in_defaults()
    .elsewhere(&["version", "minversion"])
    .default("0"),
    Key::new(
        "concurrency",
        &[ValueType::Table(Table::Concurrency)],
        "how many jobs with the same key run at a time",
    )
    .in_defaults(),
];

pub(super) const RETRY: &[Key] = &[
    Key::new("max_attempts", &[Integer], "how often the job is tried in all").default("1").elsewhere(&[
        "attempts",
        "retries",
        "maxretries",
        "limit",
    ]),
    Key::new("delay", &[Duration], "the pause after the first attempt").default("1s").elsewhere(&[
        "retrydelay",
        "interval",
        "intervalsec",
    ]),
    Key::new("factor", &[Number], "the factor from one pause to the next").default("2").elsewhere(&[
        "backoff",
        "backofffactor",
        "backoffmultiplier",
        "multiplier",
    ]),
    Key::new("max_delay", &[Duration], "the longest pause").default("5m, or `delay` if that is longer"),
    Key::new("jitter", &[Number], "the random share of a pause").default("0.1"),
    RETRY_IF,
];

pub(super) const REPEAT: &[Key] = &[
    REPEAT_UNTIL,
    Key::new("every", &[Duration], "the pause after a round").elsewhere(&[
        "interval",
        "pokeinterval",
        "intervalsec",
    ]),
    Key::new("max", &[Integer], "how many rounds there may be")
        .default("1000")
        .elsewhere(&["limit", "rounds"]),
];

/// `key` of `concurrency`.
pub(crate) const CONCURRENCY_KEY: Key = Key::new("key", &[Text], "jobs with this key share the limit")
    .template(Place::ConcurrencyKey)
    .elsewhere(&["group"]);

pub(super) const CONCURRENCY: &[Key] = &[
    CONCURRENCY_KEY,
    Key::new("limit", &[Integer], "how many of them run at a time").default("1").elsewhere(&["max"]),
    Key::new("on_full", &[Word], "what happens to a job when that many run")
        .words(&["wait", "skip", "cancel_oldest"])
        .default("wait"),
];

/// `key` of the `concurrency` of the file.
pub(crate) const RUN_CONCURRENCY_KEY: Key = Key::new("key", &[Text], "runs with this key share the limit")
    .template(Place::ConcurrencyKey)
    .default("the name of the workflow")
    .elsewhere(&["group", "mutex", "semaphore"]);

pub(super) const RUN_CONCURRENCY: &[Key] = &[
    RUN_CONCURRENCY_KEY,
    Key::new("limit", &[Integer], "how many of these runs may be active at a time")
        .default("1")
        .elsewhere(&["max", "maxactiveruns"]),
    Key::new("on_full", &[Word], "what happens to one more run")
        .words(&["wait", "skip", "cancel_oldest"])
        .default("wait")
        .elsewhere(&["behavior", "policy", "concurrencypolicy"]),
];

pub(super) const SLEEP: &[Key] = &[kinds::sleep::UNTIL];

pub(super) const WAIT_FOR: &[Key] = &[
    kinds::wait_for::EVENT,
    kinds::wait_for::EVENT_KEY,
    kinds::wait_for::TIMEOUT,
    kinds::wait_for::ON_TIMEOUT,
];

pub(super) const APPROVAL: &[Key] = &[
    kinds::approval::PROMPT,
    kinds::approval::FIELDS,
    kinds::wait_for::TIMEOUT,
    kinds::wait_for::ON_TIMEOUT,
];

pub(super) const SIGNAL: &[Key] =
    &[kinds::wait_for::EVENT, kinds::wait_for::EVENT_KEY, kinds::signal::PAYLOAD];
