//! `windlass workflows history`: lists the versions of a workflow.

use clap::Args;
use windlass_views::{VersionView, WorkflowChanges};

use crate::arguments::{GlobalOptions, filters};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find;
use crate::output::Output;
use crate::text::style::{GREEN, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// The name of the workflow, which may be inactive
    #[arg(value_name = "WORKFLOW", add = complete::workflow())]
    name: String,

    /// The largest number of versions to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = filters::list_limit())]
    limit: u32,
}

/// Prints the versions, the newest first.
pub(super) fn execute(global: &GlobalOptions, args: &HistoryArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    // One version more than is shown: the changes of the oldest one need the version before it.
    let limit = i64::from(args.limit);
    let versions = database.ask(|store| store.registrations().versions(&args.name, None, limit + 1))?;
    if versions.is_empty() {
        let reason = "no workflow was ever registered under the name";
        return Err(find::no_workflow(&database, &args.name, reason)?);
    }
    let active =
        database.ask(|store| store.registrations().get(&args.name))?.map(|registration| registration.version);
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("VERSION"),
        Column::Left("STATE"),
        Column::Left("APPLIED"),
        Column::Shrinking("CHANGES"),
        Column::Optional("FILE"),
    ]);
    let mut views = Vec::new();
    for (index, version) in versions.iter().enumerate().take(args.limit as usize) {
        let before = versions.get(index + 1);
        let changes =
            before.map(|before| WorkflowChanges::between(&before.workflow, &version.workflow).summary());
        table.row([
            version.version.to_string(),
            if active == Some(version.version) { paint(GREEN, "active") } else { String::new() },
            time::relative(version.applied_at, now_ms),
            printable(&changes.unwrap_or_default()).into_owned(),
            printable(version.file.as_deref().unwrap_or_default()).into_owned(),
        ]);
        views.push(VersionView::new(version, before, active));
    }
    Output { format: global.output }.list(&views, |_| table.render(table::stdout_width()))
}
