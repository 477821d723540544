//! `windlass audit`: lists who changed what, newest first.

use clap::{Args, value_parser};
use windlass_engine::store::{AuditEntry, AuditFilter, Cursor, TimeRange};
use windlass_views::AuditView;

use crate::arguments::{GlobalOptions, OutputFormat, filters, parse_since};
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::time;
use crate::{pages, stderr};

/// List who changed what, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Only changes by the token or the user of this name
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,

    /// Only changes with this text in what was done, or with what
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Only changes made since then: 10m, 2h, today, 2026-11-20, "2026-11-20 09:00"
    #[arg(long, value_name = "AGO|TIME", value_parser = parse_since)]
    since: Option<i64>,

    /// The largest number of changes to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = filters::list_limit())]
    limit: u32,

    /// Only changes with lower numbers than this: the next page of a list
    #[arg(long, value_name = "ID", value_parser = value_parser!(i64).range(1..))]
    before: Option<i64>,
}

const EXAMPLES: &str = "\
Examples:
  windlass audit
  windlass audit --text 'run 42'        # who cancelled or retried it
  windlass audit --caller deploy --since 2h
  windlass audit --before 81            # the page after change 81
  windlass audit --text 'queue mail' -o json

JSON says how the subject was before each change, too.";

/// Prints the changes.
pub(crate) fn execute(global: &GlobalOptions, args: AuditArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let filter = AuditFilter {
        caller: args.caller,
        text: args.text,
        made: TimeRange { from_ms: args.since, until_ms: None },
        cursor: Cursor::default(),
    };
    let changes = pages::read(args.before, args.limit, |cursor| {
        database.ask(|store| store.access().audit(&AuditFilter { cursor, ..filter.clone() }))
    })?;
    if global.output == OutputFormat::Text {
        if changes.is_empty() {
            stderr::note(&nothing(global, &filter, args.before));
            return Ok(());
        }
        return output::write_text(&text(&changes));
    }
    let views: Vec<AuditView> = changes.iter().map(AuditView::new).collect();
    Output { format: global.output }.list(&views, |_| String::new())
}

fn text(changes: &[AuditEntry]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("CHANGE"),
        Column::Left("WHEN"),
        Column::Left("WHO"),
        Column::Optional("FROM"),
        Column::Left("WHAT"),
        Column::Left("WITH"),
        Column::Shrinking("RESULT"),
    ]);
    for change in changes {
        table.row([
            change.id.to_string(),
            time::relative(change.at, now_ms),
            printable(&change.caller).into_owned(),
            printable(change.address.as_deref().unwrap_or("")).into_owned(),
            printable(&change.action).into_owned(),
            printable(&change.subject).into_owned(),
            printable(change.result.as_deref().unwrap_or("")).into_owned(),
        ]);
    }
    table.render(table::stdout_width())
}

fn nothing(global: &GlobalOptions, filter: &AuditFilter, before: Option<i64>) -> String {
    if *filter != AuditFilter::default() || before.is_some() {
        format!("no change matches; `{}` lists the newest changes", global.hint("audit"))
    } else {
        "nobody has changed anything yet; what jobs and schedules do by themselves is not listed".to_owned()
    }
}
