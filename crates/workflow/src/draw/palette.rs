//! Colours of statuses, readable on white and in black-and-white print (each has a word beside it).

/// How a status looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// The class of Mermaid and the word in a picture.
    pub(super) word: &'static str,
    pub(super) line: &'static str,
    pub(super) fill: &'static str,
}

const PLAIN: Style = Style { word: "", line: "#57606a", fill: "#f6f8fa" };

const STYLES: [(&str, Style); 9] = [
    ("BLOCKED", Style { word: "blocked", line: "#8c959f", fill: "#ffffff" }),
    ("SCHEDULED", Style { word: "scheduled", line: "#bf8700", fill: "#fffdf0" }),
    ("PENDING", Style { word: "pending", line: "#9a6700", fill: "#fff8c5" }),
    ("RUNNING", Style { word: "running", line: "#0969da", fill: "#ddf4ff" }),
    ("WAITING", Style { word: "waiting", line: "#8250df", fill: "#fbefff" }),
    ("SUCCESSFUL", Style { word: "successful", line: "#1a7f37", fill: "#dafbe1" }),
    ("FAILED", Style { word: "failed", line: "#cf222e", fill: "#ffebe9" }),
    ("SKIPPED", Style { word: "skipped", line: "#6e7781", fill: "#eaeef2" }),
    ("CANCELLED", Style { word: "cancelled", line: "#424a53", fill: "#d0d7de" }),
];

/// The look of a status; plain for none and for one that is not known.
pub(super) fn style(status: Option<&str>) -> Style {
    let known = STYLES.iter().find(|(name, _)| Some(*name) == status);
    known.map_or(PLAIN, |(_, style)| *style)
}
