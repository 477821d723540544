//! `windlass top`: queues, running jobs, failures and output on one screen, as they change.
//!
//! The thread of the program draws and hears keys. Another one reads the database ([`reader`]). What is shown ([`state`]), and
//! the picture of it ([`draw`]), are pure.

mod data;
mod draw;
mod keys;
mod layout;
mod output;
mod reader;
mod rows;
mod state;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use windlass_system::wake_ups::WakeUps;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::signals::StopRequests;
use crate::text::time;
use crate::{logging, output as program_output};
use draw::{Colours, draw};
use reader::{Gone, Reader};
use state::{App, Effect};
use terminal::{Screen, wait_for_keys};

/// How long the terminal is waited for at a time. Then news are drawn.
const PAUSE: Duration = Duration::from_millis(100);
/// News that are taken up before a picture is drawn.
const NEWS_MAX: usize = 64;

/// Show queues, running jobs, failures and output live
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass top
  windlass top --db postgres://ops@db/windlass

tab goes from part to part, the arrows select, enter opens, / filters, ? lists
all keys, and q quits. It changes nothing, except that p pauses the selected
queue, or ends its pause, after a question.";

/// Shows the screen until a key or a signal ends it.
pub(crate) fn execute(global: &GlobalOptions, _args: &TopArgs) -> Result<(), Failure> {
    program_output::refuse_json(global, "top", "a screen", "use jobs, queue list or runs for JSON")?;
    refuse_other_than_terminals(global)?;
    // Lines of the log would be written over the picture.
    if !io::stderr().is_terminal() {
        logging::start_for_people(global.verbose);
    }
    let database = Database::for_reading(global)?;
    let stops = StopRequests::listen(database.store().listen(WakeUps::STOP))?;
    let reader = Reader::start(&database)?;
    let mut app = App::new(database.address().to_string());
    let mut screen = Screen::open().map_err(|error| Failure::from_output(&error))?;
    let ended = serve(&mut app, &mut screen, &reader, &stops);
    drop(screen);
    ended
}

fn refuse_other_than_terminals(global: &GlobalOptions) -> Result<(), Failure> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    if io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb {
        return Ok(());
    }
    let (jobs, queues, runs) = (global.hint("jobs"), global.hint("queue list"), global.hint("runs"));
    Err(Failure::usage(
        "windlass top needs a terminal",
        format!(
            "`{jobs} --status running` shows the running jobs, `{queues}` the queues, and `{runs}` the runs"
        ),
    ))
}

fn serve(app: &mut App, screen: &mut Screen, reader: &Reader, stops: &StopRequests) -> Result<(), Failure> {
    let colours = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => Colours::Unused,
        anstream::ColorChoice::Auto | anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => {
            Colours::Used
        }
    };
    let (mut has_changed, mut second) = (true, 0);
    while !stops.is_stopping() {
        for _news in 0..NEWS_MAX {
            let Some(news) = reader.news().map_err(gone)? else { break };
            app.take(news);
            has_changed = true;
        }
        if let Some(request) = app.job_to_follow() {
            reader.ask(request).map_err(gone)?;
            has_changed = true;
        }
        let now_ms = time::now_ms();
        if has_changed || now_ms / 1_000 != second || screen.has_new_size() {
            let (columns, rows) = Screen::size();
            app.set_present(rows, now_ms);
            let picture = draw(app, colours, columns, rows);
            screen.show(&picture, (columns, rows)).map_err(|error| Failure::from_output(&error))?;
            (has_changed, second) = (false, now_ms / 1_000);
        }
        let keys = wait_for_keys(PAUSE).map_err(|error| Failure::from_output(&error))?;
        has_changed |= !keys.is_empty();
        for key in keys {
            match app.press(key) {
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::Ask(request)) => reader.ask(request).map_err(gone)?,
                None => {}
            }
        }
    }
    Ok(())
}

fn gone(_gone: Gone) -> Failure {
    Failure::Internal {
        message: "the thread that reads the database has ended".to_owned(),
        help: "start `windlass top` again, and report what is written above".to_owned(),
    }
}
