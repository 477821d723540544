//! The verbs, one file or folder each: the arguments of the verb, and `execute`.

pub(crate) mod apply;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod enqueue;
pub(crate) mod graph;
pub(crate) mod inspect;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod queue;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod submit;
pub(crate) mod validate;
pub(crate) mod watch;
pub(crate) mod why;
pub(crate) mod worker;
pub(crate) mod workflows;
