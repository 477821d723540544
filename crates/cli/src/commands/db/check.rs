//! `windlass db check`: checks the file and the consistency of the rows.

use clap::Args;
use windlass_engine::store::Problem;
use windlass_views::{CheckView, ProblemView};

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::style::{GREEN, RED, paint, printable};
use crate::text::values::counted;

/// Check that the file is intact and the rows are consistent
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass db check
  windlass db check -o json | jq .problems";

/// Prints all problems.
pub(crate) fn execute(global: &GlobalOptions, _args: &CheckArgs) -> Result<(), Failure> {
    let database = Database::existing_without_rescue(global)?;
    let address = database.address();
    let problems: Vec<ProblemView> = database
        .ask(|store| {
            let mut problems = store.upkeep().check()?;
            problems.extend(store.upkeep().check_files()?);
            Ok(problems)
        })?
        .into_iter()
        .map(|Problem { check, detail, next_step }| ProblemView { check, message: detail, next_step })
        .collect();
    let report = CheckView { ok: problems.is_empty(), problems };
    Output { format: global.output }.object(&report, |report| text(report, address))?;
    if report.ok {
        return Ok(());
    }
    stderr::note("");
    Err(Failure::DamagedDatabase {
        message: format!(
            "{address} is damaged: {}",
            counted(report.problems.len() as i64, "problem", "problems")
        ),
        help: keep_a_copy(address),
    })
}

fn keep_a_copy(address: &DatabaseAddress) -> String {
    match address {
        DatabaseAddress::File(_) => {
            "first keep a copy of the file; then restore a backup made by `windlass db backup`".to_owned()
        }
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { .. } => {
            "first keep a dump of it (pg_dump); then restore an older dump".to_owned()
        }
    }
}

fn text(report: &CheckView, address: &DatabaseAddress) -> String {
    if report.ok {
        return format!("{address} is {}", paint(GREEN, "sound"));
    }
    let mut text = String::new();
    for (index, problem) in report.problems.iter().enumerate() {
        text.push_str(&format!(
            "{} {}: {}\n",
            paint(RED, "broken:"),
            problem.check,
            printable(&problem.message)
        ));
        let is_last = report.problems.get(index + 1).is_none_or(|next| next.check != problem.check);
        if is_last {
            text.push_str(&format!("  next: {}\n", problem.next_step));
        }
    }
    text
}
