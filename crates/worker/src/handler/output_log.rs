//! The output of one attempt on its way to `job_logs`: numbered and bounded.
//!
//! The first lines are kept as they come. Once they have filled their part of the limit, only the newest lines are
//! kept in memory. They are written at the end of the attempt, after a line that says how much is missing. So people
//! can read how an attempt began and how it ended.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::masker::Masker;
use super::newest_lines::NewestLines;
use windlass_engine::store::{LogLine, LogStream};
use windlass_system::terminal_text;

/// Bytes of text that are kept of one attempt, at most.
pub const LOG_MAX_BYTES: usize = 1024 * 1024;
/// Lines that are kept of one attempt, at most.
pub const LOG_MAX_LINES: usize = 20_000;
/// How many of these bytes are reserved for the end.
pub const LOG_TAIL_BYTES: usize = 64 * 1024;
/// How many of these lines are reserved for the end.
pub const LOG_TAIL_LINES: usize = 1_000;

/// The output of one attempt.
#[derive(Debug)]
pub struct OutputLog {
    job_id: i64,
    attempt: i64,
    /// Set once, when the secrets of the attempt are known.
    masker: OnceLock<Arc<Masker>>,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    /// Lines that may be written and are not known to be in the database.
    ready: Vec<LogLine>,
    lines: i64,
    head_lines: usize,
    head_bytes: usize,
    tail: VecDeque<(i64, LogStream, String)>,
    tail_bytes: usize,
    left_out_lines: u64,
    left_out_bytes: u64,
    newest: NewestLines,
}

impl OutputLog {
    /// An empty log.
    #[must_use]
    pub fn new(job_id: i64, attempt: i64) -> OutputLog {
        OutputLog { job_id, attempt, masker: OnceLock::new(), state: Mutex::default() }
    }

    /// Masks secrets in all lines that are added from now on.
    pub(super) fn mask(&self, masker: Arc<Masker>) {
        // The secrets of an attempt are resolved once.
        let _first = self.masker.set(masker);
    }

    pub(super) fn masker(&self) -> Option<&Arc<Masker>> {
        self.masker.get()
    }

    /// Adds a line. Returns whether no other line waited to be written.
    pub fn push(&self, at: i64, stream: LogStream, mut text: String) -> bool {
        if let Some(masker) = self.masker() {
            text = mask_with_colours(masker, text);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.newest.push(stream, &text);
        let fits = state.tail.is_empty()
            && state.head_lines < LOG_MAX_LINES - LOG_TAIL_LINES
            && state.head_bytes + text.len() <= LOG_MAX_BYTES - LOG_TAIL_BYTES;
        if fits {
            state.head_lines += 1;
            state.head_bytes += text.len();
            self.append(&mut state, at, stream, text);
            return state.ready.len() == 1;
        }
        state.tail_bytes += text.len();
        state.tail.push_back((at, stream, text));
        while state.tail_bytes > LOG_TAIL_BYTES || state.tail.len() > LOG_TAIL_LINES {
            let Some((_at, _stream, text)) = state.tail.pop_front() else { break };
            state.tail_bytes -= text.len();
            state.left_out_lines += 1;
            state.left_out_bytes += text.len() as u64;
        }
        false
    }

    /// A copy of the lines that may be written and are not known to be in the database.
    #[must_use]
    pub fn unwritten(&self) -> Vec<LogLine> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ready.clone()
    }

    /// Whether there are lines that may be written and are not known to be in the database.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        !self.state.lock().unwrap_or_else(PoisonError::into_inner).ready.is_empty()
    }

    /// Notes that lines up to this one are in the database.
    pub fn written(&self, line: i64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready.retain(|ready| ready.line > line);
    }

    /// Takes everything that is not known to be in the database, at the end of the attempt. That includes lines that
    /// another thread is writing now, because writing a line twice is harmless and losing it is not.
    #[must_use]
    pub fn take_rest(&self, now_ms: i64) -> Vec<LogLine> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left_out_lines > 0 {
            let text = format!(
                "[{} lines ({} bytes) left out: an attempt's output is kept up to {LOG_MAX_BYTES} bytes or \
                 {LOG_MAX_LINES} lines]",
                state.left_out_lines, state.left_out_bytes
            );
            self.append(&mut state, now_ms, LogStream::Engine, text);
        }
        for (at, stream, text) in std::mem::take(&mut state.tail) {
            self.append(&mut state, at, stream, text);
        }
        std::mem::take(&mut state.ready)
    }

    /// The line that says what went wrong, for error messages: without colours, and at most 300 characters of it.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).newest.error()
    }

    fn append(&self, state: &mut LogState, at: i64, stream: LogStream, text: String) {
        state.lines += 1;
        let line = state.lines;
        state.ready.push(LogLine { job_id: self.job_id, attempt: self.attempt, line, at, stream, text });
    }
}

/// Masks secrets. A secret with colours inside is found in the line without colours, which then loses them.
fn mask_with_colours(masker: &Masker, text: String) -> String {
    let masked = match masker.text(&text) {
        Cow::Owned(masked) => masked,
        Cow::Borrowed(_) => text,
    };
    let words = terminal_text::plain(&masked);
    match masker.text(&words) {
        Cow::Owned(masked_words) => masked_words,
        Cow::Borrowed(_) => masked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_with_colours_inside_is_masked() {
        let log = OutputLog::new(7, 1);
        log.mask(Arc::new(Masker::new(["swordfish"])));
        log.push(1, LogStream::Stdout, "\x1b[31msword\x1b[0mfish".to_owned());
        log.push(1, LogStream::Stderr, "\x1b[31mred\x1b[0m swordfish".to_owned());
        let texts: Vec<String> = log.take_rest(1).into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["***", "\x1b[31mred\x1b[0m ***"]);
        assert_eq!(log.error().as_deref(), Some("red ***"), "errors have no colours");
    }

    #[test]
    fn output_within_the_limit_is_kept_as_it_is() {
        let log = OutputLog::new(7, 2);
        assert!(log.push(1, LogStream::Stdout, "a".to_owned()));
        assert!(!log.push(2, LogStream::Stderr, "b".to_owned()));
        let first: Vec<(i64, String)> =
            log.unwritten().into_iter().map(|line| (line.line, line.text)).collect();
        assert_eq!(first, [(1, "a".to_owned()), (2, "b".to_owned())]);
        assert_eq!(log.unwritten().len(), 2, "a copy was taken, and nothing was written");
        log.written(1);
        assert!(log.has_unwritten(), "the second line");
        log.written(2);
        assert!(!log.has_unwritten());
        assert!(log.push(3, LogStream::Stdout, "c".to_owned()), "no other line waits");
        let rest = log.take_rest(9);
        assert_eq!((rest.len(), rest[0].line, rest[0].attempt), (1, 3, 2));
    }

    #[test]
    fn of_too_much_output_the_beginning_and_the_end_are_kept_with_a_note_of_what_is_missing() {
        let log = OutputLog::new(7, 1);
        let count = 200_000;
        for number in 0..count {
            log.push(1, LogStream::Stdout, format!("line {number}"));
        }
        let lines = log.take_rest(9);
        let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
        assert!(lines.len() <= LOG_MAX_LINES + 1 && bytes <= LOG_MAX_BYTES + 200, "{} {bytes}", lines.len());
        assert_eq!(lines[0].text, "line 0");
        assert_eq!(lines.last().map(|line| line.text.clone()), Some(format!("line {}", count - 1)));
        let markers: Vec<&LogLine> = lines.iter().filter(|line| line.stream == LogStream::Engine).collect();
        assert_eq!(markers.len(), 1);
        let kept = lines.len() - 1;
        assert!(markers[0].text.starts_with(&format!("[{} lines", count - kept)), "{}", markers[0].text);
        assert!(lines.windows(2).all(|pair| pair[0].line + 1 == pair[1].line), "numbers have no gap");
    }
}
