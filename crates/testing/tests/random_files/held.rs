//! Jobs that do not end by themselves, and what ends them.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt;

/// The time after which the run of the case is ended from outside.
pub(crate) const CASE_LIMIT: &str = "3550d";
/// Longer than any case.
const ENDLESS: &str = "3600d";

/// What ends the jobs of a workflow that do not end by themselves. It comes long after all others have ended, and long before
/// they would end, so that the end of the run does not depend on durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ender {
    /// All jobs end by themselves.
    Nothing,
    /// A person cancels the run of the case.
    Person,
    /// The timeout of the run of the case.
    TimeoutOfCase,
    /// The timeout of the workflow, which others call.
    OwnTimeout,
    /// The timeout of the job that calls the workflow.
    TimeoutOfCall,
    /// The deadline of the job that calls the workflow.
    DeadlineOfCall,
}

/// A workflow that jobs may call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callable {
    pub(crate) name: &'static str,
    /// The beginning of the names of its jobs.
    pub(crate) prefix: &'static str,
    pub(crate) ender: Ender,
    /// When the ender comes, if it is one of this workflow.
    pub(crate) limit: &'static str,
}

impl Ender {
    pub(crate) fn is_of_the_case(self) -> bool {
        match self {
            Ender::Person | Ender::TimeoutOfCase => true,
            Ender::Nothing | Ender::OwnTimeout | Ender::TimeoutOfCall | Ender::DeadlineOfCall => false,
        }
    }
}

impl Draw {
    pub(crate) fn ender_of_case(&mut self) -> Ender {
        if self.draws("run cancelled", 15) {
            Ender::Person
        } else if self.draws("timeout of the run", 15) {
            Ender::TimeoutOfCase
        } else {
            Ender::Nothing
        }
    }

    /// What ends a called workflow. What ends the whole case ends it too.
    pub(crate) fn ender_of_called(&mut self, of_case: Ender) -> Ender {
        if of_case.is_of_the_case() {
            of_case
        } else if self.draws("timeout of a called workflow", 10) {
            Ender::OwnTimeout
        } else if self.draws("timeout of a call", 10) {
            Ender::TimeoutOfCall
        } else if self.draws("deadline of a call", 10) {
            Ender::DeadlineOfCall
        } else {
            Ender::Nothing
        }
    }

    /// A job that does not end by itself.
    pub(crate) fn held(&mut self, name: &str, job: &mut Map<String, Json>) {
        match self.number(0..=6) {
            0 => self.held_process(name, job, "cancelled process"),
            1 => self.held_request(name, job),
            2 => self.held_pause(name, job),
            3 => self.held_repetition(name, job),
            4 => self.held_group(name, job),
            5 => {
                self.constructs.insert("cancelled sleep");
                job.insert("sleep".to_owned(), json!(ENDLESS));
            }
            _ => {
                self.constructs.insert("cancelled wait");
                let (key, wait) = match self.number(0..=1) {
                    0 => ("wait_for", json!({ "event": "never" })),
                    _ => ("approval", json!({ "prompt": "Ever?" })),
                };
                job.insert(key.to_owned(), wait);
            }
        }
    }

    fn held_process(&mut self, name: &str, job: &mut Map<String, Json>, construct: &'static str) {
        self.constructs.insert(construct);
        job.insert("run".to_owned(), json!("true"));
        job.insert("retry".to_owned(), json!({ "max_attempts": 3, "delay": "1m" }));
        let failing = self.number(0..=2);
        let mut attempts = vec![Attempt::Exit(1); failing];
        attempts.push(Attempt::Endless);
        self.fakes.add(name, attempts, json!("text"));
    }

    fn held_request(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("cancelled request");
        job.insert("http".to_owned(), json!({ "url": "https://example.com", "timeout": ENDLESS }));
        self.fakes.add(name, vec![Attempt::Endless], json!("text"));
    }

    fn held_pause(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("cancelled pause before a retry");
        job.insert("run".to_owned(), json!("true"));
        job.insert("retry".to_owned(), json!({ "max_attempts": 2, "delay": ENDLESS, "jitter": 0 }));
        self.fakes.add(name, vec![Attempt::Exit(1)], json!("text"));
    }

    fn held_repetition(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("cancelled pause of a repetition");
        job.insert("run".to_owned(), json!("true"));
        job.insert("repeat".to_owned(), json!({ "until": "exit_code == 77", "every": ENDLESS }));
        self.fakes.add(name, vec![Attempt::Exit(0)], json!("text"));
    }

    /// A group whose first items run, and whose other items wait.
    fn held_group(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.held_process(name, job, "cancelled group");
        let mut items = json!({ "in": ["a", "b", "c"] });
        // Several runs of a called workflow have the same keys, and durations would decide which of them gets the slot.
        let is_called = name.contains('_');
        if !is_called && self.draws("cancelled wait for a slot", 70) {
            // A pause before a retry gives the slot to another item.
            job.remove("retry");
            self.fakes.add(name, vec![Attempt::Endless], json!("text"));
            job.insert("concurrency".to_owned(), json!({ "key": format!("held-{name}"), "limit": 1 }));
        } else {
            items["max_parallel"] = json!(self.number(1..=2));
        }
        job.insert("for_each".to_owned(), items);
    }
}
