//! The output of a job, as it is written: each line once, in order, whatever the viewer has missed.

use std::sync::Arc;
use std::time::Duration;

use windlass_engine::store::{LogLine, LogPosition};

use super::viewers::{OutputNews, Viewer};
use crate::threads::{Access, DatabaseThreads};

/// How many lines are read at a time.
const LINES_OF_READ: usize = 500;
/// The pause before a read is tried again that could not be made.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What a line looks like in a message.
pub(super) type Format = Box<dyn Fn(LogLine) -> String + Send>;

/// Somebody who follows the output of a job.
pub(super) struct Follower {
    threads: Arc<DatabaseThreads>,
    format: Format,
    /// Up to where the viewer has lines.
    position: LogPosition,
    /// There may be lines that only a read of its own finds.
    must_read: bool,
    is_over: bool,
}

/// What comes next of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Messages with lines.
    Lines(String),
    /// All lines were told. There may be more later.
    Wait,
    /// All lines were told, and the job is over.
    End,
}

impl Follower {
    pub(super) fn new(threads: Arc<DatabaseThreads>, position: LogPosition, format: Format) -> Follower {
        Follower { threads, format, position, must_read: true, is_over: false }
    }

    /// The same for a job that is over.
    pub(super) fn with_end(self, is_over: bool) -> Follower {
        Follower { is_over, ..self }
    }

    /// Reads the lines that the viewer does not have.
    pub(super) async fn next(&mut self, viewer: &Viewer) -> Next {
        while self.must_read && !viewer.is_closed() {
            let position = self.position;
            let read = self
                .threads
                .call(Access::Read, move |store| store.logs().after(position, LINES_OF_READ as i64))
                .await;
            let Ok(Ok(lines)) = read else {
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            };
            self.must_read = lines.len() == LINES_OF_READ;
            if !lines.is_empty() {
                return Next::Lines(self.told(lines));
            }
        }
        // A stream that was closed has not told all lines.
        if self.is_over && !self.must_read { Next::End } else { Next::Wait }
    }

    /// Takes what the hub has read. Returns messages with the lines that follow those before; `None` if there are none.
    pub(super) fn take(&mut self, news: OutputNews) -> Option<String> {
        // Before the end it looks once more.
        self.must_read |= news.is_behind || news.is_over;
        self.is_over |= news.is_over;
        let mut messages = String::new();
        for part in news.parts {
            if part.position > self.position {
                // There are lines between.
                self.must_read = true;
            }
            if part.position <= self.position {
                let lines = part.lines.iter().filter(|line| position_of(line) > self.position);
                messages.push_str(&self.told(lines.cloned().collect()));
            }
        }
        (!messages.is_empty()).then_some(messages)
    }

    fn told(&mut self, lines: Vec<LogLine>) -> String {
        if let Some(last) = lines.last() {
            self.position = position_of(last);
        }
        lines.into_iter().map(|line| (self.format)(line)).collect()
    }
}

fn position_of(line: &LogLine) -> LogPosition {
    LogPosition { job_id: line.job_id, attempt: line.attempt, line: line.line }
}

/// The id of a line in a stream, which a client sends back to go on after it.
pub(super) fn id_of(line: &LogLine) -> String {
    format!("{}.{}", line.attempt, line.line)
}

/// The position that such an id names.
pub(super) fn position(job_id: i64, id: &str) -> Option<LogPosition> {
    let number = |text: &str| -> Option<i64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse().ok() } else { None }
    };
    let (attempt, line) = id.split_once('.')?;
    Some(LogPosition { job_id, attempt: number(attempt)?, line: number(line)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_position() {
        let position = |id| position(7, id);
        assert_eq!(position("2.31"), Some(LogPosition { job_id: 7, attempt: 2, line: 31 }));
        for id in ["", "2", "2.", ".3", "2.x", "-1.2", "1.2.3", "1.+2"] {
            assert_eq!(position(id), None, "{id}");
        }
    }
}
