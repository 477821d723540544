//! The colours of statuses. They are readable on white. The status stands beside the colour as a word, for print in black and
//! white.

/// The colours of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// The name of the class in Mermaid.
    pub(super) word: &'static str,
    pub(super) line: &'static str,
    pub(super) fill: &'static str,
}

/// The status of a job that failed, and whose failure does not matter to its run.
pub const ALLOWED_FAILURE: &str = "FAILED (allowed)";

const PLAIN: Style = Style { word: "", line: "#57606a", fill: "#f6f8fa" };

const STYLES: [(&str, Style); 10] = [
    ("BLOCKED", Style { word: "blocked", line: "#8c959f", fill: "#ffffff" }),
    ("SCHEDULED", Style { word: "scheduled", line: "#bf8700", fill: "#fffdf0" }),
    ("PENDING", Style { word: "pending", line: "#9a6700", fill: "#fff8c5" }),
    ("RUNNING", Style { word: "running", line: "#0969da", fill: "#ddf4ff" }),
    ("WAITING", Style { word: "waiting", line: "#8250df", fill: "#fbefff" }),
    ("SUCCESSFUL", Style { word: "successful", line: "#1a7f37", fill: "#dafbe1" }),
    ("FAILED", Style { word: "failed", line: "#cf222e", fill: "#ffebe9" }),
    (ALLOWED_FAILURE, Style { word: "allowed", line: "#bc4c00", fill: "#fff1e5" }),
    ("SKIPPED", Style { word: "skipped", line: "#6e7781", fill: "#eaeef2" }),
    ("CANCELLED", Style { word: "cancelled", line: "#424a53", fill: "#d0d7de" }),
];

/// The colours of a status. A node without a status, or with an unknown one, is plain.
pub(super) fn style(status: Option<&str>) -> Style {
    let known = STYLES.iter().find(|(name, _)| Some(*name) == status);
    known.map_or(PLAIN, |(_, style)| *style)
}
