//! What happens to the jobs of a drawn file: how attempts end, which signals are sent, and what people decide.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

/// The longest attempt that ends by itself, in seconds.
const LONGEST_S: u64 = 7_200;
/// Longer than anything that may end an attempt.
const ENDLESS: &str = "3650d";

/// How an attempt ends.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    Exit(u8),
    Signal(u8),
    Answer(u16),
    NoAnswer,
    /// It is stopped.
    Endless,
}

/// The fakes of a job: its attempts, and what each of them has as its output.
type Fake = (Vec<Attempt>, Json);

/// By the names of the jobs, which are unique over all workflows of the file.
#[derive(Default)]
pub(crate) struct Fakes {
    attempts: BTreeMap<String, Fake>,
    /// The name, the key and the time of each event.
    events: Vec<(String, Option<&'static str>, &'static str)>,
    approvals: BTreeMap<String, Decision>,
}

/// What a person decides.
#[derive(Clone, Copy)]
pub(crate) enum Decision {
    Reject,
    Approve,
    ApproveWithFields,
}

impl Fakes {
    pub(crate) fn add(&mut self, name: &str, attempts: Vec<Attempt>, output: Json) {
        self.attempts.insert(name.to_owned(), (attempts, output));
    }

    pub(crate) fn add_event(&mut self, name: &str, key: Option<&'static str>, after: &'static str) {
        self.events.push((name.to_owned(), key, after));
    }

    pub(crate) fn add_approval(&mut self, name: &str, decision: Decision) {
        self.approvals.insert(name.to_owned(), decision);
    }

    /// The fakes, approvals and events of a test file. The names of called jobs begin with those of the calling jobs.
    pub(crate) fn of(&self, workflow: &Json, durations: Durations) -> (Json, Json, Json) {
        let mut takes = durations.draw();
        let mut paths = Vec::new();
        collect(workflow, workflow, "", &mut paths);
        let (mut jobs, mut approvals) = (Map::new(), Map::new());
        for (path, name) in paths {
            if let Some((attempts, output)) = self.attempts.get(&name) {
                let written: Vec<Json> =
                    attempts.iter().map(|attempt| attempt.written(output, &takes())).collect();
                jobs.insert(path, json!({ "attempts": written }));
            } else if let Some(decision) = self.approvals.get(&name) {
                approvals.insert(path, decision.written(&takes()));
            }
        }
        let events = self.events.iter().map(|(name, key, after)| match key {
            Some(key) => json!({ "event": name, "key": key, "after": after }),
            None => json!({ "event": name, "after": after }),
        });
        let events = events.collect();
        (Json::Object(jobs), Json::Object(approvals), Json::Array(events))
    }
}

/// The paths of all jobs with their names.
fn collect(file: &Json, workflow: &Json, prefix: &str, paths: &mut Vec<(String, String)>) {
    for table in ["jobs", "on_success", "on_failure", "on_cancel", "finally"] {
        for (name, job) in workflow[table].as_object().into_iter().flatten() {
            let path = format!("{prefix}{name}");
            match job["workflow"].as_str() {
                Some(called) => collect(file, &file["workflows"][called], &format!("{path}/"), paths),
                None => paths.push((path, name.clone())),
            }
        }
    }
}

impl Attempt {
    fn written(self, output: &Json, takes: &str) -> Json {
        match self {
            Attempt::Exit(code) => json!({ "exit_code": code, "output": output, "takes": takes }),
            Attempt::Signal(signal) => json!({ "signal": signal, "takes": takes }),
            Attempt::Answer(status) => json!({ "status": status, "output": output, "takes": takes }),
            Attempt::NoAnswer => json!({ "error": "no route to the host", "takes": takes }),
            Attempt::Endless => json!({ "takes": ENDLESS }),
        }
    }
}

impl Decision {
    fn written(self, after: &str) -> Json {
        match self {
            Decision::Reject => json!({ "reject": "no", "after": after }),
            Decision::Approve => json!({ "by": "somebody", "after": after }),
            Decision::ApproveWithFields => json!({ "fields": { "ticket": "OPS-7" }, "after": after }),
        }
    }
}

/// How long something takes, in text.
type Takes = dyn FnMut() -> String;

/// How long the attempts and the people of a case take.
#[derive(Clone, Copy)]
pub(crate) enum Durations {
    /// All the same, so that much happens at one instant.
    Equal,
    /// Drawn from this seed.
    Drawn(u64),
}

impl Durations {
    /// At least a second each, so that what begins at one instant has begun before any of it ends.
    fn draw(self) -> Box<Takes> {
        match self {
            Durations::Equal => Box::new(|| "60s".to_owned()),
            Durations::Drawn(seed) => {
                let mut random = fastrand::Rng::with_seed(seed);
                Box::new(move || format!("{}s", random.u64(1..=LONGEST_S)))
            }
        }
    }
}
