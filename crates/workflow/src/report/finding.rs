//! Collects the errors of a file.

use crate::support::{Accepted, Support};
use crate::{limits, suggest};

/// A range of bytes in the text of a file.
pub(crate) type Span = std::ops::Range<usize>;

/// One error. Its positions are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) message: String,
    pub(crate) span: Option<Span>,
    pub(crate) label: Option<String>,
    pub(crate) help: Option<String>,
    pub(crate) related: Vec<(Span, String)>,
}

impl Finding {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Finding {
        Finding { span: Some(span), ..Finding::without_position(message) }
    }

    pub(crate) fn without_position(message: impl Into<String>) -> Finding {
        Finding { message: message.into(), span: None, label: None, help: None, related: Vec::new() }
    }

    /// Sets the text beside the caret.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Finding {
        self.label = Some(label.into());
        self
    }

    /// Sets the advice on how to correct the error.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// Adds another position that belongs to the error, and a text beside it.
    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Finding {
        self.related.push((span, label.into()));
        self
    }

    pub(crate) fn start(&self) -> usize {
        self.span.as_ref().map_or(0, |span| span.start)
    }
}

/// Whether everything that a file includes was read, so that all names are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Includes {
    Read,
    SomeUnread,
}

/// The errors of a file that were found so far.
#[derive(Debug)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    dropped: usize,
    suggestion_budget: usize,
    accepted: Accepted,
    includes: Includes,
}

impl Default for Findings {
    fn default() -> Self {
        Findings::of(Accepted::default())
    }
}

impl Findings {
    /// No errors yet, of a file that may use this.
    pub(crate) fn of(accepted: Accepted) -> Findings {
        Findings {
            kept: Vec::new(),
            dropped: 0,
            suggestion_budget: limits::SUGGESTION_COMPARISONS,
            accepted,
            includes: Includes::Read,
        }
    }

    /// Says that an included file was not read. Its names are not known.
    pub(crate) fn miss_included(&mut self) {
        self.includes = Includes::SomeUnread;
    }

    /// Whether a name that is not known may be in an included file that was not read.
    pub(crate) fn may_be_unread(&self) -> bool {
        self.includes == Includes::SomeUnread
    }

    /// Whether the file may use something with this support.
    pub(crate) fn accepts(&self, support: Support) -> bool {
        self.accepted.accepts(support)
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        match self.kept.len() < limits::ERRORS_KEPT {
            true => self.kept.push(finding),
            false => self.dropped += 1,
        }
    }

    /// Adds the findings of a text that begins at this byte.
    pub(crate) fn take_all(&mut self, other: Findings, start: usize) {
        let shift = |span: &mut Span| *span = span.start + start..span.end + start;
        for mut finding in other.kept {
            // A finding without a position is about the whole text.
            shift(finding.span.get_or_insert(0..0));
            finding.related.iter_mut().for_each(|(span, _)| shift(span));
            self.push(finding);
        }
        self.dropped += other.dropped;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The number of errors so far.
    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.dropped
    }

    /// The candidate that is spelled most like `wrong`. All searches for a file share one budget of comparisons.
    pub(crate) fn nearest<'c>(
        &mut self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        suggest::nearest(wrong, candidates, &mut self.suggestion_budget)
    }

    /// The error that was found first.
    pub(crate) fn into_first(self) -> Option<Finding> {
        self.kept.into_iter().next()
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, usize) {
        (self.kept, self.dropped)
    }
}
