//! A tested case as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// What a case of a test file came to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TestedCase {
    /// The path of the test file.
    pub file: String,
    /// The name of the case.
    pub case: String,
    /// Whether it is as expected.
    pub passed: bool,
    /// The state of its run.
    pub status: Option<&'static str>,
    /// How long its run took, by the clock of the case.
    pub duration_ms: Option<i64>,
    /// What is not as expected.
    pub differences: Vec<DifferenceView>,
    /// Why it could not be run.
    pub error: Option<String>,
    /// What ending the engine after each commit showed.
    pub crashes: Option<CrashesView>,
}

/// Something that is not as it was expected.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Difference")]
pub struct DifferenceView {
    /// The job; null for the run.
    pub job: Option<String>,
    /// What differs.
    pub aspect: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub actual: String,
    /// The last error of the job.
    pub error: Option<String>,
}

/// What ending the engine after each commit of a case showed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Crashes")]
pub struct CrashesView {
    /// The commits of the undisturbed run.
    pub commits: u64,
    /// After how many of them the engine was ended.
    pub tried: u64,
    /// What differs from the undisturbed run.
    pub differences: Vec<CrashDifferenceView>,
    /// The jobs that began again.
    pub repeated: Vec<RepeatedView>,
    /// The interrupted jobs with `on_interrupt = "fail"`.
    pub left_to_a_person: Vec<String>,
}

/// Something that differs from the undisturbed run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CrashDifference")]
pub struct CrashDifferenceView {
    /// The job; null for the run.
    pub job: Option<String>,
    /// What differs.
    pub aspect: &'static str,
    /// What the undisturbed run has.
    pub undisturbed: String,
    /// What the disturbed run has.
    pub disturbed: String,
    /// The last error of the job.
    pub error: Option<String>,
    /// The first commit after which this was found.
    pub after_commit: u64,
    /// After how many commits this was found.
    pub times: u64,
}

/// A job that began again.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Repeated")]
pub struct RepeatedView {
    /// The job.
    pub job: String,
    /// Whether its file shows that a repetition does no harm.
    pub safe: bool,
}
