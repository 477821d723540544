//! What a job does, for people.

/// What a job does, for people. Whoever shows it decides how to quote and shorten the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What the text is, in one word, as in "script".
    pub label: &'static str,
    /// The script or the command.
    pub text: SummaryText,
}

/// The text of a [`Summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryText {
    /// One or more lines.
    Lines(String),
    /// Words that need quotes if they contain spaces.
    Words(Vec<String>),
}

impl std::fmt::Display for SummaryText {
    /// Writes the lines, or the words without quotes.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SummaryText::Lines(lines) => formatter.write_str(lines),
            SummaryText::Words(words) => formatter.write_str(&words.join(" ")),
        }
    }
}
