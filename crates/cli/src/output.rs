//! Data on standard output: as text, as one JSON document, or as JSON lines.
//!
//! Nothing here panics when the reader goes away (`windlass runs | head -1`): a closed pipe is
//! [`Failure::ClosedPipe`], which ends the command quietly.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::error::Failure;

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// Standard output in the format that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
}

impl Output {
    /// Writes one object; `text` makes the form for people.
    pub(crate) fn object<T: Serialize>(
        self,
        object: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write_text(&text(object)),
            Format::Json => write_json(object, Layout::Pretty),
            Format::Jsonl => write_json(object, Layout::OneLine),
        }
    }

    /// Writes a list; `text` makes the form for people.
    pub(crate) fn list<T: Serialize>(
        self,
        list: &[T],
        text: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write_text(&text(list)),
            Format::Json => write_json(&list, Layout::Pretty),
            Format::Jsonl => list.iter().try_for_each(|object| write_json(object, Layout::OneLine)),
        }
    }
}

/// Writes text for people; it ends with a newline, whether the text does or not. No text, no line.
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

/// How a JSON document is laid out.
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

/// A remark for people on standard error. When nobody can read it, there is nobody to tell.
pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}
