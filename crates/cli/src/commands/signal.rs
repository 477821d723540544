//! `windlass signal`: sends an event, for which jobs wait.

use clap::Args;
use serde_json::Value;
use windlass_engine::store::{NewSignal, Signalled};
use windlass_views::SignalView;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;

/// Send an event to the jobs that wait for it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SignalArgs {
    /// The name of the event
    #[arg(value_name = "EVENT", value_parser = parse_event)]
    event: String,

    /// The key of the event. Jobs wait for an event with their key, or for one without a key
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    key: Option<String>,

    /// The payload: a JSON value of at most 64 KiB
    #[arg(long, value_name = "JSON", default_value = "null", value_parser = parse_json)]
    payload: Value,

    /// An id of your own: a second signal with the same id changes nothing
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass signal paid --key order-42 --payload '{\"amount\": 7}'
  windlass signal upstream-done
  windlass signal paid --key order-42 --id payment-1234   # safe to repeat

A run gets the events that were sent after it was created, also if its job
did not wait yet.";

fn parse_event(text: &str) -> Result<String, String> {
    windlass_workflow::check_event_name(text).map(|()| text.to_owned())
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("it is no JSON ({error}); a text stands in quotes: '\"text\"'"))
}

/// Sends the event.
pub(crate) fn execute(global: &GlobalOptions, args: &SignalArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let signal = NewSignal {
        name: args.event.clone(),
        key: args.key.clone(),
        payload: args.payload.to_string(),
        event_id: args.id.clone(),
    };
    let Signalled { id, created } =
        database.change(format!("event {}", signal.name), |store| store.events().signal(signal.clone()))?;
    stderr::note(&match created {
        true => format!("event {id} is received"),
        false => format!("nothing new: event {id} has this id"),
    });
    let view = SignalView { event: args.event.clone(), event_number: id, event_id: args.id.clone(), created };
    Output { format: global.output }.object(&view, |_| String::new())
}
