//! The report: all measured figures.

use schemars::JsonSchema;
use serde::Serialize;

use crate::machine::Machine;
use crate::plan::Part;
use crate::statistics::Spread;

/// The results of all measurements.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The version of the form of this report.
    pub report_version: u32,
    /// The version of the program.
    pub windlass_version: &'static str,
    /// The rounds of each figure, unless the figure has another number.
    pub rounds: usize,
    /// The number that determines the sizes of all measurements.
    pub jobs: usize,
    /// The machine and the database.
    pub machine: Machine,
    /// The figures, in the order in which they were measured.
    pub figures: Vec<Figure>,
}

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The part it belongs to.
    pub part: Part,
    /// Its name, which no other figure of the part has.
    pub name: String,
    /// A description for people.
    pub about: String,
    /// Whose figure it is.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: Unit,
    /// How often it was measured.
    pub rounds: usize,
    /// The values of these rounds.
    #[serde(flatten)]
    pub value: Spread,
    /// Its ratios to other figures.
    pub ratios: Vec<Ratio>,
}

/// The ratio of a figure to another one of the same part and unit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The name of the other one.
    pub to: String,
    /// The ratios of the rounds.
    #[serde(flatten)]
    pub value: Spread,
}

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What Windlass does.
    Windlass,
    /// What a reference does on the same machine.
    Machine,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
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
