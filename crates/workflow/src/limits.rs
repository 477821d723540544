//! All limits of a workflow file.
//!
//! A limit makes sure that a file which was made by mistake, or by an attacker, gives a clear error and does not fill the
//! memory. Every limit is far above what people write by hand.

/// The largest number of schedules of a workflow.
pub const SCHEDULES: usize = 100;
/// The largest number of triggers of a workflow.
pub const TRIGGERS: usize = 100;
/// The largest number of items of `after` and of `status` of a trigger.
pub const TRIGGER_PATTERNS: usize = 100;
/// The largest `catchup_max`: how many occurrences a schedule catches up at a time.
pub const CATCHUP: i64 = 100_000;
/// The default of `catchup_max`.
pub const CATCHUP_DEFAULT: i64 = 1_000;
/// The largest `limit` and `max_parallel` of a `for_each`.
pub const ITEMS: i64 = 100_000;
/// The default of `for_each.limit`.
pub const ITEMS_DEFAULT: i64 = 10_000;
/// The largest size of an item of a `for_each` in bytes, as JSON.
pub const ITEM_BYTES: usize = 64 * 1024;
/// The largest number of combinations of a `matrix`, before some are excluded.
pub const MATRIX: usize = 200_000;
/// The largest number of dimensions of a `matrix`.
pub const MATRIX_DIMENSIONS: usize = 20;
/// The largest number of entries in `exclude` of a `for_each`.
pub const MATRIX_EXCLUDE: usize = 1_000;
/// The largest number of files that a file includes, directly or through others.
pub const INCLUDED_FILES: usize = 16;
/// How deep files include each other.
pub const INCLUDE_DEPTH: usize = 4;
/// The largest size of an included file in bytes.
pub const INCLUDED_BYTES: usize = 1024 * 1024;
/// The largest `max` of a `repeat`: how many rounds a job may have.
pub const ROUNDS: i64 = 1_000_000;
/// The default of `repeat.max`.
pub const ROUNDS_DEFAULT: i64 = 1_000;
/// The largest number of tags of a workflow.
pub const TAGS: usize = 16;
/// The largest size of a tag in bytes.
pub const TAG_BYTES: usize = 64;
/// The largest number of secrets of a workflow.
pub const SECRETS: usize = 100;
/// The largest number of items in `env_files`.
pub const ENV_FILES: usize = 32;
/// The largest number of items in `volumes` of a container.
pub const VOLUMES: usize = 32;
/// The largest number of patterns in `artifacts`.
pub const ARTIFACT_PATTERNS: usize = 100;
/// The largest number of entries in `inputs`.
pub const INPUTS: usize = 100;
/// The largest number of files that a job keeps, and that it gets.
pub const ARTIFACTS: usize = 1_000;
/// The largest size of an artifact in bytes.
pub const ARTIFACT_BYTES: u64 = 1024 * 1024 * 1024;
/// The largest size of the path of an artifact in bytes.
pub const ARTIFACT_PATH_BYTES: usize = 1_000;
/// The largest number of files and folders that are looked at to find the artifacts of a job.
pub const ARTIFACT_SEARCH: usize = 100_000;
/// The largest number of capabilities that a job may require.
pub const CAPABILITIES: usize = 32;
/// The largest `version` of a job. Every JSON parser reads integers up to this one exactly.
pub const CODE_VERSION: i64 = 9_007_199_254_740_991;
/// The largest `limit` of a `concurrency`.
pub const CONCURRENCY: i64 = 1_000;
/// The largest size of a concurrency key in bytes, after its templates are rendered.
pub const CONCURRENCY_KEY_BYTES: usize = 1_000;
/// The largest size of the key of an event in bytes, after its templates are rendered.
pub const EVENT_KEY_BYTES: usize = 1_000;
/// The largest size of the payload of an event in bytes.
pub const EVENT_PAYLOAD_BYTES: usize = 64 * 1024;
/// The largest number of jobs of a workflow.
pub const JOBS: usize = 200_000;
/// The largest number of entries in all `needs` lists of a workflow together.
pub const EDGES: usize = 1_000_000;
/// The largest size of a workflow file in bytes.
pub const FILE_BYTES: usize = 64 * 1024 * 1024;
/// The largest number of parts of a file. Words, texts, signs and spaces are parts, and a table counts as several.
///
/// A file within this limit and [`FILE_BYTES`] is parsed in less than 256 MiB of memory. It can have some 95,000 small jobs
/// in TOML, and [`JOBS`] in JSON.
pub const PARTS: usize = 3_000_000;
/// The largest number of values that the aliases of a YAML file copy.
pub const YAML_COPIES: usize = 1_000;
/// The largest depth of tables and lists inside each other.
pub const NESTING: usize = 32;
/// The largest number of characters in the name of a workflow, a job, a parameter, a queue or a variable.
pub const NAME_CHARS: usize = 200;
/// The largest number of parameters of a workflow.
pub const PARAMS: usize = 1_000;
/// The largest number of variables that a job sets.
pub const SET_VARIABLES: usize = 100;
/// The largest size of the value of a variable in bytes, as JSON.
pub const VARIABLE_BYTES: usize = 64 * 1024;
/// The largest number of variables in a database.
pub const VARIABLES: i64 = 10_000;
/// The largest number of `outputs` of a workflow.
pub const OUTPUTS: usize = 1_000;
/// The largest number of workflows that a workflow calls, directly or through others.
pub const CALLED_WORKFLOWS: usize = 1_000;
/// How deep workflows may call each other. A workflow that nobody calls counts 0.
pub const CALL_DEPTH: usize = 16;
/// The largest number of items in `choices`.
pub const CHOICES: usize = 1_000;
/// The largest number of entries in an `env` table.
pub const ENV_ENTRIES: usize = 1_000;
/// The largest number of items in `command` and in `shell`.
pub const COMMAND_ITEMS: usize = 1_000;
/// The largest size of a script (`run`) in bytes.
pub const SCRIPT_BYTES: usize = 1024 * 1024;
/// The largest size in bytes of every other text: an item of `command`, a value of `env`, `dir`, a description.
pub const TEXT_BYTES: usize = 128 * 1024;
/// The largest size of a text with a template, in bytes.
pub const TEMPLATE_BYTES: usize = 64 * 1024;
/// The largest size of an expression in bytes, in a template from `{{` to `}}`.
pub const EXPRESSION_BYTES: usize = 500;
/// The largest depth of brackets inside each other in an expression. The parser of expressions needs several KiB of stack
/// for each.
pub const EXPRESSION_NESTING: usize = 32;
/// The largest size of a rendered text in bytes.
pub const TEMPLATE_OUTPUT_BYTES: usize = 1024 * 1024;
/// The largest size of a rendered `stdin` in bytes. No environment has to hold it.
pub const STDIN_BYTES: usize = 16 * 1024 * 1024;
/// The largest number of steps in the evaluation of an expression.
pub const TEMPLATE_FUEL: u64 = 300;
/// The largest number of jobs whose output is read by a job that does not need them directly.
pub const INDIRECT_OUTPUTS: usize = 20_000;
/// The longest duration, in milliseconds: ten years.
pub const DURATION_MS: i64 = 10 * 365 * 24 * 60 * 60 * 1_000;
/// The largest `max_attempts` and `max_interruptions`.
pub const ATTEMPTS: i64 = 1_000_000;
/// The largest `factor` of a `retry`.
pub const RETRY_FACTOR: f64 = 1_000.0;
/// The highest priority. The lowest is -1,000.
pub const PRIORITY: i64 = 1_000;

/// The largest size of a cron expression in bytes.
pub const CRON_BYTES: usize = 500;
/// The shortest `every`, in milliseconds.
pub const SCHEDULE_INTERVAL_MS: i64 = 1_000;
/// How many years are searched for a day of a cron rule. The rarest day is a certain weekday on the 29th of February: there
/// are 28 years between two of them, and 40 around a year like 2100, which is no leap year.
pub const SCHEDULE_SEARCH_YEARS: i32 = 41;
/// All occurrences are after this instant, in milliseconds since the Unix epoch: the beginning of the year 1.
pub const SCHEDULE_FIRST_MS: i64 = -62_135_596_800_000;
/// No occurrence is after this instant, in milliseconds since the Unix epoch: the end of the year 9999.
pub const SCHEDULE_LAST_MS: i64 = 253_402_300_799_999;

/// The largest number of errors that a report shows. It counts the rest.
pub const ERRORS_SHOWN: usize = 50;
/// The largest number of errors that are kept while a file is parsed. The report shows the first of them by position.
pub(crate) const ERRORS_KEPT: usize = 1_000;
/// How many jobs and dependencies the warnings about ends look at. In a larger file some of these warnings are left out.
pub(crate) const WARNING_STEPS: usize = 20_000_000;
/// The largest number of cycles that a report shows.
pub const CYCLES_SHOWN: usize = 20;
/// The largest number of names that are compared to find the nearest spelling, for all errors of a file together.
pub(crate) const SUGGESTION_COMPARISONS: usize = 2_000_000;
/// The largest number of jobs in a picture (`svg`).
pub const PICTURE_NODES: usize = 2_000;
/// The largest number of edges in a picture (`svg`).
pub const PICTURE_EDGES: usize = 10_000;
