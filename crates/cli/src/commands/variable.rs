//! `windlass variable`: values that are kept between runs.

use std::io::Read;

use clap::{Args, Subcommand};
use serde_json::Value;
use windlass_engine::store::{Subject, Variable};
use windlass_views::{DeletedVariable, VariableView};
use windlass_workflow::limits;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::find::nearest_name;
use crate::output::Output;
use crate::stderr;
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// List, read, set or delete variables: values kept between runs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VariableArgs {
    /// What to do; `list` by default
    #[command(subcommand)]
    command: Option<VariableCommand>,
}

#[derive(Debug, Subcommand)]
enum VariableCommand {
    List(ListArgs),
    Get(GetArgs),
    Set(SetArgs),
    Delete(DeleteArgs),
}

/// List the variables with their values
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
struct ListArgs {}

/// Print the value of a variable: a text as it is, any other value as JSON
#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
struct GetArgs {
    /// The variable
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,
}

/// Set a variable; attempts of jobs that begin later read the new value
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
struct SetArgs {
    /// The variable
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,

    /// The value, a text of at most 64 KiB; `-` reads it from standard input
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,

    /// VALUE is JSON: a number, true or false, a list, an object
    #[arg(long)]
    json: bool,
}

/// Delete a variable
#[derive(Debug, Args)]
#[command(after_help = DELETE_EXAMPLES)]
struct DeleteArgs {
    /// The variable
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass variable set region eu-west
  windlass variable set limits '{\"rows\": 1000}' --json
  windlass variable get region
  windlass variable list

A workflow reads a variable as {{ variables.NAME }}, and a job sets it with
`set_variables`. Everyone who can read the database can read variables:
passwords and tokens are secrets, which are never stored.";

const LIST_EXAMPLES: &str = "\
Examples:
  windlass variable list
  windlass variable list -o json | jq -r '.[].variable'";

const GET_EXAMPLES: &str = "\
Examples:
  windlass variable get region
  windlass variable get limits -o json | jq .value.rows";

const SET_EXAMPLES: &str = "\
Examples:
  windlass variable set region eu-west
  windlass variable set attempts 3 --json       # the number, not the text
  jq -c .limits settings.json | windlass variable set limits - --json";

const DELETE_EXAMPLES: &str = "\
Examples:
  windlass variable delete region";

/// How many characters of a value the list shows.
const SHOWN_CHARS: usize = 200;

fn parse_name(text: &str) -> Result<String, String> {
    windlass_workflow::check_variable_name(text).map(|()| text.to_owned())
}

/// Calls the subcommand.
pub(crate) fn execute(global: &GlobalOptions, args: &VariableArgs) -> Result<(), Failure> {
    match &args.command {
        None | Some(VariableCommand::List(ListArgs {})) => list(global),
        Some(VariableCommand::Get(args)) => get(global, args),
        Some(VariableCommand::Set(args)) => set(global, args),
        Some(VariableCommand::Delete(args)) => delete(global, args),
    }
}

fn list(global: &GlobalOptions) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let variables = all(&database)?;
    if variables.is_empty() && global.output == OutputFormat::Text {
        stderr::note("there are no variables; `windlass variable set NAME VALUE` sets one");
        return Ok(());
    }
    let views: Vec<VariableView> = variables.iter().map(VariableView::new).collect();
    Output { format: global.output }.list(&views, |_| list_text(&variables))
}

fn all(database: &Database) -> Result<Vec<Variable>, Failure> {
    let mut variables: Vec<Variable> = Vec::new();
    loop {
        let after = variables.last().map(|last| last.name.clone());
        let page = database.ask(|store| store.variables().list(after.as_deref()))?;
        if page.is_empty() {
            return Ok(variables);
        }
        variables.extend(page);
    }
}

fn list_text(variables: &[Variable]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Left("VARIABLE"),
        Column::Left("CHANGED"),
        Column::Right("BY RUN"),
        Column::Shrinking("VALUE"),
    ]);
    for variable in variables {
        let value: String = text_of(variable).chars().take(SHOWN_CHARS).collect();
        table.row([
            printable(&variable.name).into_owned(),
            time::relative(variable.changed_at, now_ms),
            variable.run_id.map(|run_id| run_id.to_string()).unwrap_or_default(),
            printable(&value).into_owned(),
        ]);
    }
    table.render(table::stdout_width())
}

/// A text as it is, any other value as JSON.
fn text_of(variable: &Variable) -> String {
    match serde_json::from_str(&variable.value) {
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => variable.value.clone(),
    }
}

fn get(global: &GlobalOptions, args: &GetArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let variable = find(&database, &args.name)?;
    Output { format: global.output }.object(&VariableView::new(&variable), |_| text_of(&variable))
}

fn set(global: &GlobalOptions, args: &SetArgs) -> Result<(), Failure> {
    let text = match args.value.as_str() {
        "-" => read_standard_input()?,
        given => given.to_owned(),
    };
    let value = match args.json {
        true => serde_json::from_str(&text).map_err(|error| {
            let message = format!("the value is no JSON: {error}");
            Failure::usage(message, "leave --json out to set the text as it is")
        })?,
        false => Value::from(text),
    };
    let value = value.to_string();
    let database = Database::existing_or_new(global)?;
    database
        .change(Subject::Variable(args.name.clone()), |store| store.variables().set(&args.name, &value))?;
    stderr::note(&format!("the variable `{}` is set", args.name));
    match global.output {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json | OutputFormat::Jsonl => {
            let variable = find(&database, &args.name)?;
            Output { format: global.output }.object(&VariableView::new(&variable), |_| String::new())
        }
    }
}

/// The value from standard input, without the newline at its end.
fn read_standard_input() -> Result<String, Failure> {
    // Escapes in JSON need more bytes than the value that they make.
    const READ_BYTES_MAX: u64 = 8 * limits::VARIABLE_BYTES as u64;
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(READ_BYTES_MAX);
    match input.read_to_string(&mut text) {
        Ok(_bytes) => {
            let value = text.strip_suffix('\n').unwrap_or(&text);
            Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
        }
        Err(error) => Err(Failure::usage(
            format!("standard input cannot be read as text: {error}"),
            "give the value as an argument, or a text in UTF-8",
        )),
    }
}

fn delete(global: &GlobalOptions, args: &DeleteArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    if !database.change(Subject::Variable(args.name.clone()), |store| store.variables().delete(&args.name))? {
        return Err(unknown(&database, &args.name)?);
    }
    stderr::note(&format!("the variable `{}` is deleted", args.name));
    let view = DeletedVariable { variable: args.name.clone() };
    Output { format: global.output }.object(&view, |_| String::new())
}

fn find(database: &Database, name: &str) -> Result<Variable, Failure> {
    match database.ask(|store| store.variables().get(name))? {
        Some(variable) => Ok(variable),
        None => Err(unknown(database, name)?),
    }
}

fn unknown(database: &Database, name: &str) -> Result<Failure, Failure> {
    let variables = all(database)?;
    let near = nearest_name(name, variables.iter().map(|variable| variable.name.as_str()));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`windlass variable set {name} VALUE` sets it; `windlass variable list` lists all"),
    };
    Ok(Failure::not_found(format!("there is no variable `{name}`"), help))
}
