//! Data on standard output: as text, as one JSON document, or as JSON lines.
//!
//! A reader that goes away (`windlass runs | head -1`) causes no panic. A closed pipe is
//! [`Failure::ClosedPipe`], which ends the command without a message.

use std::io::{self, Write};

use serde::Serialize;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::error::Failure;
use crate::text::{table, wrap};

/// Standard output in the format of `--output`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
}

impl Output {
    /// Writes one object. `text` makes the form for people.
    pub(crate) fn object<T: Serialize>(
        self,
        object: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Text => write_text(&wrap::fit(&text(object), table::stdout_width())),
            OutputFormat::Json => write_json(object, Layout::Pretty),
            OutputFormat::Jsonl => write_json(object, Layout::OneLine),
        }
    }

    /// Writes a list. `text` makes the form for people.
    pub(crate) fn list<T: Serialize>(
        self,
        list: &[T],
        text: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Text => write_text(&text(list)),
            OutputFormat::Json => write_json(&list, Layout::Pretty),
            OutputFormat::Jsonl => list.iter().try_for_each(|object| write_json(object, Layout::OneLine)),
        }
    }
}

/// Refuses `-o json` for a verb that prints something else than data.
pub(crate) fn refuse_json(
    global: &GlobalOptions,
    verb: &str,
    printed: &str,
    next_step: &str,
) -> Result<(), Failure> {
    match global.output {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json | OutputFormat::Jsonl => {
            Err(Failure::usage(format!("`{verb}` prints {printed}, so -o does not apply"), next_step))
        }
    }
}

/// Writes text for people, and a newline if it does not end with one. Writes nothing for an empty text.
pub(crate) fn write_text(text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = anstream::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| match text.ends_with('\n') {
            true => Ok(()),
            false => stdout.write_all(b"\n"),
        })
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::from_output(&error))
}

/// The layout of a JSON document.
#[derive(Debug, Clone, Copy)]
enum Layout {
    Pretty,
    OneLine,
}

fn write_json<T: Serialize>(value: &T, layout: Layout) -> Result<(), Failure> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let written = match layout {
        Layout::Pretty => serde_json::to_writer_pretty(&mut stdout, value),
        Layout::OneLine => serde_json::to_writer(&mut stdout, value),
    };
    written
        .map_err(io::Error::from)
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::from_output(&error))
}
