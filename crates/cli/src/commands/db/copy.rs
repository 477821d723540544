//! `windlass db copy`: copies everything from one database to another, a file or a server.

use std::ffi::OsString;

use clap::Args;
use serde_json::{Map, Value};
use windlass_engine::store::CopyError;
use windlass_views::CopiedView;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::text::table::{Column, Table};

/// Copy everything into another database: from a file to a server, or back
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CopyArgs {
    /// The database to copy: a path or postgres://…; no worker may use it
    #[arg(value_name = "FROM")]
    from: OsString,

    /// The database to fill: a path or postgres://…; it must be empty, and is created if missing
    #[arg(value_name = "TO")]
    to: OsString,
}

const EXAMPLES: &str = "\
Examples:
  windlass db copy windlass.db postgres://app@db.example/app
  windlass db copy postgres://app@db.example/app windlass.db

If the command fails or is killed, the target is unchanged, and you can repeat
the command. Unfinished runs continue in the target. The source is not
changed: start no more workers on it, or its unfinished jobs are executed
twice.";

/// Copies the database.
pub(crate) fn execute(global: &GlobalOptions, args: &CopyArgs) -> Result<(), Failure> {
    let source = Database::existing(&global.with_database(args.from.clone()))?;
    let target = Database::existing_or_new(&global.with_database(args.to.clone()))?;
    let copied = source.windlass().copy_to(target.windlass()).map_err(|error| match error {
        CopyError::Source(error) => source.failure(error),
        CopyError::Target(error) => target.failure(error),
    })?;
    let tables: Map<String, Value> =
        copied.tables.iter().map(|(table, rows)| ((*table).to_owned(), Value::from(*rows))).collect();
    let view = CopiedView { from: source.address().to_string(), to: target.address().to_string(), tables };
    Output { format: global.output }.object(&view, |_| {
        let mut table = Table::new(&[Column::Left("TABLE"), Column::Right("ROWS")]);
        for (name, rows) in &copied.tables {
            table.row([(*name).to_owned(), rows.to_string()]);
        }
        let table = table.render(None);
        format!(
            "{table}\n{} is copied to {}; the copy is checked and sound",
            source.address(),
            target.address()
        )
    })
}
