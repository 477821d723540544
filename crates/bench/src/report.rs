//! What was measured, as it is handed out.

use serde::Serialize;

use crate::machine::Machine;
use crate::plan::Part;
use crate::statistics::Spread;

/// Everything that one run has measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Of the form of this report.
    pub report_version: u32,
    /// Of the program.
    pub windlass_version: &'static str,
    /// Rounds of each figure, where it does not say otherwise.
    pub rounds: usize,
    /// What the sizes of all measurements follow from.
    pub jobs: usize,
    /// What it was measured on.
    pub machine: Machine,
    /// In the order they were measured.
    pub figures: Vec<Figure>,
}

/// One thing that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The part it belongs to.
    pub part: Part,
    /// Its name, which no other figure of the part has.
    pub name: String,
    /// In words.
    pub about: String,
    /// Whose figure it is.
    pub kind: Kind,
    /// In what it is measured.
    pub unit: Unit,
    /// How often it was measured.
    pub rounds: usize,
    /// Of these rounds.
    #[serde(flatten)]
    pub value: Spread,
    /// Beside what it stands.
    pub ratios: Vec<Ratio>,
}

/// A figure by another of the same part, of the same unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The name of the other one.
    pub to: String,
    /// Of the ratios of the rounds, each taken within its round.
    #[serde(flatten)]
    pub value: Spread,
}

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What Windlass does.
    Windlass,
    /// What the machine does at all, through the same library.
    Machine,
}

/// In what something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Jobs, rows, commits or processes a second: more is better.
    PerSecond,
    /// Milliseconds: less is better.
    Milliseconds,
    /// Microseconds: less is better.
    Microseconds,
    /// Seconds: less is better.
    Seconds,
    /// How many: less is better.
    Count,
    /// Bytes: less is better.
    Bytes,
    /// Hundredths of the time of one processor core: less is better.
    PercentOfCore,
}
