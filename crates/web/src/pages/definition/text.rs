//! A definition as lines for people: a key a line, without what has no value.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};
use windlass_workflow::{Job, Workflow};

/// A part of a definition: a job, or a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// `Job load`, or the name of the table.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// The tables of a definition: all but its jobs.
#[must_use]
pub fn tables(workflow: &mut Workflow) -> Vec<Part> {
    let jobs = std::mem::take(&mut workflow.jobs);
    let tables = serde_json::to_value(&*workflow);
    workflow.jobs = jobs;
    let Ok(Json::Object(mut tables)) = tables else { return Vec::new() };
    tables.remove("jobs");
    let mut parts = Vec::new();
    let mut own = Map::new();
    for (name, value) in tables {
        match value {
            Json::Object(_) | Json::Array(_) => parts.push(Part { title: name, lines: lines(&value) }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                own.insert(name, value);
            }
        }
    }
    parts.retain(|part| !part.lines.is_empty());
    parts.insert(0, Part { title: "workflow".to_owned(), lines: lines(&Json::Object(own)) });
    parts
}

/// A table or a job of a definition. The lines of a job are made when they are asked for: a definition may have 10,000 jobs.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'w> {
    /// A table.
    Table(&'w Part),
    /// A job.
    Job(&'w Workflow, &'w Job),
}

/// What a piece is called: no table has the name of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Title<'w> {
    /// The name of a table.
    Table(&'w str),
    /// The name of a job.
    Job(&'w str),
}

impl<'w> Piece<'w> {
    /// What it is called.
    #[must_use]
    pub fn title(self) -> Title<'w> {
        match self {
            Piece::Table(part) => Title::Table(&part.title),
            Piece::Job(_, job) => Title::Job(&job.name),
        }
    }

    /// Its title and its lines.
    #[must_use]
    pub fn part(self) -> Cow<'w, Part> {
        match self {
            Piece::Table(part) => Cow::Borrowed(part),
            Piece::Job(workflow, job) => {
                let value = with_names(workflow, serde_json::to_value(job).unwrap_or_default());
                Cow::Owned(Part { title: format!("job {}", job.name), lines: lines(&value) })
            }
        }
    }

    /// Whether the two have the same lines, as far as it is seen without making them.
    #[must_use]
    pub fn is_surely_same(self, other: Piece<'_>) -> bool {
        match (self, other) {
            (Piece::Table(one), Piece::Table(other)) => one.lines == other.lines,
            (Piece::Job(workflow, job), Piece::Job(other_workflow, other_job)) => {
                job == other_job
                    && job.needs.iter().chain(&job.uses).all(|place| {
                        let (one, other) = (workflow.jobs.get(*place), other_workflow.jobs.get(*place));
                        one.map(|job| &job.name) == other.map(|job| &job.name)
                    })
            }
            (Piece::Table(_), Piece::Job(..)) | (Piece::Job(..), Piece::Table(_)) => false,
        }
    }
}

/// The pieces of a definition: its tables, then its jobs in their order.
pub fn pieces<'w>(tables: &'w [Part], workflow: &'w Workflow) -> impl Iterator<Item = Piece<'w>> {
    tables.iter().map(Piece::Table).chain(workflow.jobs.iter().map(|job| Piece::Job(workflow, job)))
}

/// The lines of one job; `None` if there is no such job.
#[must_use]
pub fn job(workflow: &Workflow, name: &str) -> Option<String> {
    let job = workflow.jobs.iter().find(|job| job.name == name)?;
    let value = with_names(workflow, serde_json::to_value(job).ok()?);
    Some(lines(&value).join("\n"))
}

/// A definition as text, up to a number of bytes. No part after them is made.
#[must_use]
pub fn whole<'w>(pieces: impl IntoIterator<Item = Piece<'w>>, bytes_max: usize) -> String {
    let mut text = String::new();
    for piece in pieces {
        let part = piece.part();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{}]\n", part.title));
        for line in &part.lines {
            text.push_str(line);
            text.push('\n');
        }
        if text.len() > bytes_max {
            text.truncate(text.floor_char_boundary(bytes_max));
            text.push_str("\n…");
            return text;
        }
    }
    text
}

/// A job with the names of the jobs before it in place of their numbers.
fn with_names(workflow: &Workflow, mut job: Json) -> Json {
    let name = |place: &Json| {
        let job = place.as_u64().and_then(|place| workflow.jobs.get(usize::try_from(place).ok()?));
        job.map_or_else(|| place.clone(), |job| Json::from(job.name.as_str()))
    };
    for key in ["needs", "uses"] {
        if let Some(Json::Array(places)) = job.get_mut(key) {
            *places = places.iter().map(name).collect();
        }
    }
    job
}

fn lines(value: &Json) -> Vec<String> {
    let mut lines = Vec::new();
    match value {
        Json::Object(fields) => write_fields(fields, 0, &mut lines),
        Json::Array(items) => write_items(items, 0, &mut lines),
        Json::Null => {}
        Json::Bool(_) | Json::Number(_) | Json::String(_) => lines.push(short(value)),
    }
    lines
}

fn write_fields(fields: &Map<String, Json>, depth: usize, lines: &mut Vec<String>) {
    for (name, value) in fields {
        write_named(&format!("{}{name}:", "  ".repeat(depth)), value, depth, lines);
    }
}

/// A value after its name, or below it if it has several lines.
fn write_named(name: &str, value: &Json, depth: usize, lines: &mut Vec<String>) {
    match value {
        Json::Null => {}
        Json::Object(fields) => {
            lines.push(name.to_owned());
            write_fields(fields, depth + 1, lines);
        }
        Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            lines.push(name.to_owned());
            write_items(items, depth + 1, lines);
        }
        Json::String(text) if text.contains('\n') => {
            lines.push(name.to_owned());
            lines.extend(text.lines().map(|line| format!("{}{line}", "  ".repeat(depth + 1))));
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(short).collect();
            lines.push(format!("{name} {}", items.join(", ")));
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) => lines.push(format!("{name} {}", short(value))),
    }
}

fn write_items(items: &[Json], depth: usize, lines: &mut Vec<String>) {
    for item in items {
        match item {
            Json::Object(fields) => {
                lines.push(format!("{}-", "  ".repeat(depth)));
                write_fields(fields, depth + 1, lines);
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                write_named(&format!("{}-", "  ".repeat(depth)), item, depth, lines);
            }
        }
    }
}

/// A value of one line. A text has quotes only if it could be taken for something else.
fn short(value: &Json) -> String {
    match value {
        Json::String(text) if !text.is_empty() && text.trim() == text => text.clone(),
        Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            value.to_string()
        }
    }
}
