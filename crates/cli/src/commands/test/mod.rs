//! `windlass test`: runs the cases of test files.

mod files;
mod registered;
mod text;

use std::path::PathBuf;

use clap::Args;
use windlass_testing::{Case, CaseError, Crashes, Observed, Subject, check, crash_everywhere, run};
use windlass_views::{CrashDifferenceView, CrashesView, DifferenceView, RepeatedView, TestedCase};

use crate::arguments::{GlobalOptions, LogFormat, OutputFormat};
use crate::error::Failure;
use crate::logging;
use crate::output::{self, Output};
use crate::stderr;
use crate::text::values::counted;
use files::{LoadedTest, load_all};
pub(crate) use files::{check_test_file, is_test_file};

/// Run the cases of test files: fake jobs, and a clock that jumps
///
/// A test file stands beside its workflow: nightly.test.toml beside nightly.toml. Each case is a run of the workflow on a
/// temporary database. No job is executed and nothing is sent: the case says how each attempt ends and how long it takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// Test files, or the workflow files beside them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Also run each case again for each of its commits (at most 1000), end the engine there and let a new one carry on
    #[arg(long)]
    crash_everywhere: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass test nightly.toml
  windlass test workflows/*.test.toml
  windlass test nightly.toml --crash-everywhere
  windlass test nightly.toml -o json | jq '.[] | select(.passed | not)'

A case in nightly.test.toml:
  [[case]]
  name = \"the second attempt succeeds\"
  [case.jobs.load]
  attempts = [{ exit_code = 1, takes = \"2m\" }, { output = { rows = 7 } }]
  [case.expect.jobs]
  load = { status = \"SUCCESSFUL\", attempts = 2 }

Exit codes: 0 all cases passed, 1 a case failed, 2 a file is invalid.";

/// Runs all cases of all files.
pub(crate) fn execute(global: &GlobalOptions, args: &TestArgs) -> Result<(), Failure> {
    // The engines of the cases are ended on purpose.
    logging::start("off", LogFormat::Text);
    let tests = load_all(&args.files, global.output)?;
    let mut cases = Vec::new();
    for test in &tests {
        for case in &test.file.cases {
            let tested = run_case(test, case, args.crash_everywhere);
            if global.output == OutputFormat::Text {
                output::write_text(&text::case(&tested))?;
            }
            cases.push(tested);
        }
    }
    Output { format: global.output }.list(&cases, |_| String::new())?;
    let failed = cases.iter().filter(|case| !case.passed).count();
    let all = counted(cases.len() as i64, "case", "cases");
    match failed {
        0 => {
            stderr::note(&format!("{all} passed"));
            Ok(())
        }
        failed => {
            stderr::note(&format!("{failed} of {all} failed"));
            Err(Failure::CasesFailed)
        }
    }
}

fn run_case(test: &LoadedTest, case: &Case, crash: bool) -> TestedCase {
    let subject = Subject { workflow: &test.workflow, folder: test.folder.as_deref() };
    let mut tested = TestedCase {
        file: test.path.display().to_string(),
        case: case.name.clone(),
        passed: false,
        status: None,
        duration_ms: None,
        differences: Vec::new(),
        error: None,
        crashes: None,
    };
    match observe(subject, case, crash) {
        Ok((observed, crashes)) => {
            tested.differences = differences(case, &observed);
            tested.status = Some(observed.status.as_str());
            tested.duration_ms = Some(observed.took_ms);
            let is_robust = crashes.as_ref().is_none_or(|crashes| crashes.differences.is_empty());
            tested.passed = tested.differences.is_empty() && is_robust;
            tested.crashes = crashes.map(crashes_view);
        }
        Err(error) => tested.error = Some(error.to_string()),
    }
    tested
}

fn observe(subject: Subject<'_>, case: &Case, crash: bool) -> Result<(Observed, Option<Crashes>), CaseError> {
    let observed = run(subject, case)?;
    let crashes = crash.then(|| crash_everywhere(subject, case, &observed)).transpose()?;
    Ok((observed, crashes))
}

fn differences(case: &Case, observed: &Observed) -> Vec<DifferenceView> {
    let found = check(case, observed).into_iter();
    found
        .map(|difference| DifferenceView {
            job: difference.job,
            aspect: difference.aspect,
            expected: difference.expected,
            actual: difference.actual,
            error: difference.error,
        })
        .collect()
}

fn crashes_view(crashes: Crashes) -> CrashesView {
    let differences = crashes.differences.into_iter().map(|difference| CrashDifferenceView {
        job: difference.job,
        aspect: difference.aspect,
        undisturbed: difference.undisturbed,
        disturbed: difference.disturbed,
        error: difference.error,
        after_commit: difference.after_commit,
        times: difference.times,
    });
    let repeated = crashes
        .repeated
        .into_iter()
        .map(|repeated| RepeatedView { job: repeated.job, safe: repeated.is_safe });
    CrashesView {
        commits: crashes.commits,
        tried: crashes.tried,
        differences: differences.collect(),
        repeated: repeated.collect(),
        left_to_a_person: crashes.left_to_a_person,
    }
}
