//! Every limit of a workflow file in one place.
//!
//! A limit is there so that a file made by mistake (or by an adversary) ends in a clear message and
//! not in a full memory. Each is far above what people write by hand.

/// Schedules of one workflow.
pub const SCHEDULES: usize = 100;
/// Occurrences that one schedule may catch up at a time.
pub const CATCHUP: i64 = 100_000;
/// What `catchup_max` is when a schedule does not say.
pub const CATCHUP_DEFAULT: i64 = 1_000;
/// Capabilities that one job may require.
pub const CAPABILITIES: usize = 32;
/// The largest `version` of a job: the largest integer that every reader of JSON keeps.
pub const VERSION: i64 = 9_007_199_254_740_991;
/// The largest `limit` of a `concurrency`.
pub const CONCURRENCY: i64 = 1_000;
/// Bytes that the key of a `concurrency` may have when its templates are filled in.
pub const CONCURRENCY_KEY_BYTES: usize = 1_000;
/// Jobs of one workflow.
pub const JOBS: usize = 200_000;
/// Entries of all `needs` lists of one workflow together.
pub const EDGES: usize = 1_000_000;
/// Bytes of a workflow file.
pub const FILE_BYTES: usize = 64 * 1024 * 1024;
/// Parts of a file: words, texts, signs and spaces, where a table counts for several of them. A file within this limit
/// and that of its bytes is read in less than 256 MiB of memory; that is some 95,000 small jobs in TOML, and all of
/// [`JOBS`] in JSON.
pub const PARTS: usize = 3_000_000;
/// Tables and lists inside each other.
pub const NESTING: usize = 32;
/// Characters of the name of a workflow, a job, a parameter, a queue or a variable.
pub const NAME_CHARS: usize = 200;
/// Parameters of one workflow.
pub const PARAMS: usize = 1_000;
/// Values that one `choices` list allows.
pub const CHOICES: usize = 1_000;
/// Entries of one `env` table.
pub const ENV_ENTRIES: usize = 1_000;
/// Items of one `command` or `shell`.
pub const COMMAND_ITEMS: usize = 1_000;
/// Bytes of one script (`run`).
pub const SCRIPT_BYTES: usize = 1024 * 1024;
/// Bytes of any other text: an item of `command`, a value of `env`, `dir`, a description.
pub const TEXT_BYTES: usize = 128 * 1024;
/// Bytes of a text that contains a template.
pub const TEMPLATE_BYTES: usize = 64 * 1024;
/// Bytes between one `{{` and its `}}`. It also bounds how deep an expression can nest.
pub const EXPRESSION_BYTES: usize = 500;
/// Bytes that one text with templates may grow to when it is rendered.
pub const TEMPLATE_OUTPUT_BYTES: usize = 1024 * 1024;
/// Steps that the evaluation of one expression may take.
pub const TEMPLATE_FUEL: u64 = 300;
/// Different jobs whose output is read by a job that does not need them directly.
pub const INDIRECT_OUTPUTS: usize = 20_000;
/// The longest duration: ten years, in milliseconds.
pub const DURATION_MS: i64 = 10 * 365 * 24 * 60 * 60 * 1_000;
/// The largest `max_attempts` and `max_interruptions`.
pub const ATTEMPTS: i64 = 1_000_000;
/// The largest `factor` of a `retry`.
pub const RETRY_FACTOR: f64 = 1_000.0;
/// The highest priority; the lowest is its negative.
pub const PRIORITY: i64 = 1_000;

/// Bytes of a cron expression.
pub const CRON_BYTES: usize = 500;
/// The shortest `every`, in milliseconds.
pub const SCHEDULE_INTERVAL_MS: i64 = 1_000;
/// Years in which a day of a cron rule must be found: Monday the 29th of February comes every 28 years, and
/// once in 40 around a year like 2100.
pub const SCHEDULE_SEARCH_YEARS: i32 = 41;
/// Occurrences are after this instant, in milliseconds since the Unix epoch: the year 1.
pub const SCHEDULE_FIRST_MS: i64 = -62_135_596_800_000;
/// Occurrences are not after this instant: the end of the year 9999.
pub const SCHEDULE_LAST_MS: i64 = 253_402_300_799_999;

/// Errors that a report shows; it counts the rest.
pub const ERRORS_SHOWN: usize = 50;
/// Errors that are kept while a file is read, before the first ones by place are shown.
pub(crate) const ERRORS_KEPT: usize = 1_000;
/// Cycles that are shown.
pub const CYCLES_SHOWN: usize = 20;
/// Names that are compared in search of the nearest spelling, for all errors of a file together.
pub(crate) const SUGGESTION_COMPARISONS: usize = 2_000_000;
/// Jobs that a picture (`svg`) can show.
pub const PICTURE_NODES: usize = 2_000;
/// Edges that a picture (`svg`) can show.
pub const PICTURE_EDGES: usize = 10_000;
