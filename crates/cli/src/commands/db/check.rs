//! `windlass db check`: is the file whole, and do its rows agree with each other?

use clap::Args;
use serde::Serialize;
use windlass::store::Problem;

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::place::Place;
use crate::style::{GREEN, RED, paint, printable};

/// Check that the file is whole and its rows agree with each other
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass db check
  windlass db check -o json | jq .problems";

#[derive(Debug, Serialize)]
struct Verdict {
    ok: bool,
    problems: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
struct ProblemView {
    check: &'static str,
    detail: String,
    next_step: &'static str,
}

/// Checks, and prints what is wrong.
pub(crate) fn execute(global: &GlobalOptions, _args: &CheckArgs) -> Result<(), Failure> {
    let database = Database::as_it_is(global)?;
    let place = database.place();
    let problems: Vec<ProblemView> = database
        .ask(|store| store.upkeep().check())?
        .into_iter()
        .map(|Problem { check, detail, next_step }| ProblemView { check, detail, next_step })
        .collect();
    let verdict = Verdict { ok: problems.is_empty(), problems };
    Output { format: global.output }.object(&verdict, |verdict| text(verdict, place))?;
    if verdict.ok {
        return Ok(());
    }
    output::note("");
    Err(Failure::DamagedDatabase {
        message: format!("{place} breaks {} of its rules", verdict.problems.len()),
        help: keep_a_copy(place),
    })
}

fn keep_a_copy(place: &Place) -> String {
    match place {
        Place::File(_) => {
            "keep a copy of the file before anything else; a backup made by `windlass db backup` restores it"
                .to_owned()
        }
        #[cfg(feature = "postgres")]
        Place::Server { .. } => {
            "keep a dump of it (pg_dump) before anything else; an older dump restores it".to_owned()
        }
    }
}

fn text(verdict: &Verdict, place: &Place) -> String {
    if verdict.ok {
        return format!("{place} is {}", paint(GREEN, "sound"));
    }
    let mut text = String::new();
    for (index, problem) in verdict.problems.iter().enumerate() {
        text.push_str(&format!(
            "{} {}: {}\n",
            paint(RED, "broken:"),
            problem.check,
            printable(&problem.detail)
        ));
        let is_last = verdict.problems.get(index + 1).is_none_or(|next| next.check != problem.check);
        if is_last {
            text.push_str(&format!("  next: {}\n", problem.next_step));
        }
    }
    text
}
