//! What happens to the jobs of a drawn file: how attempts end, which signals are sent, and what people decide.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

/// The longest attempt, in seconds.
const LONGEST_S: u64 = 7_200;

/// How the attempts of one job end.
#[derive(Clone)]
enum Attempts {
    Process(Vec<u8>),
    Json(Vec<u8>),
    Request(Vec<u16>),
}

/// By the names of the jobs, which are unique over all workflows of the file.
#[derive(Default)]
pub(crate) struct Fakes {
    attempts: BTreeMap<String, Attempts>,
    /// The name, the key and the time of each event.
    events: Vec<(String, Option<&'static str>, &'static str)>,
    /// Whether it is a rejection.
    approvals: BTreeMap<String, bool>,
}

impl Fakes {
    pub(crate) fn add_process(&mut self, name: &str, codes: Vec<u8>) {
        self.attempts.insert(name.to_owned(), Attempts::Process(codes));
    }

    pub(crate) fn add_json(&mut self, name: &str, codes: Vec<u8>) {
        self.attempts.insert(name.to_owned(), Attempts::Json(codes));
    }

    pub(crate) fn add_request(&mut self, name: &str, statuses: Vec<u16>) {
        self.attempts.insert(name.to_owned(), Attempts::Request(statuses));
    }

    pub(crate) fn add_event(&mut self, name: &str, key: Option<&'static str>, after: &'static str) {
        self.events.push((name.to_owned(), key, after));
    }

    pub(crate) fn add_approval(&mut self, name: &str, is_rejected: bool) {
        self.approvals.insert(name.to_owned(), is_rejected);
    }

    /// The fakes, approvals and events of a test file. The names of called jobs begin with those of the calling jobs.
    pub(crate) fn of(&self, workflow: &Json, durations: u64) -> (Json, Json, Json) {
        let mut random = fastrand::Rng::with_seed(durations);
        let mut paths = Vec::new();
        collect(workflow, workflow, "", &mut paths);
        let (mut jobs, mut approvals) = (Map::new(), Map::new());
        for (path, name) in paths {
            if let Some(attempts) = self.attempts.get(&name) {
                jobs.insert(path, json!({ "attempts": written(attempts, &mut random) }));
            } else if let Some(is_rejected) = self.approvals.get(&name) {
                let after = seconds(&mut random);
                let approval = match is_rejected {
                    true => json!({ "reject": "no", "after": after }),
                    false => json!({ "by": "ann", "after": after }),
                };
                approvals.insert(path, approval);
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
    for table in ["jobs", "on_success", "on_failure", "finally"] {
        for (name, job) in workflow[table].as_object().into_iter().flatten() {
            let path = format!("{prefix}{name}");
            match job["workflow"].as_str() {
                Some(called) => collect(file, &file["workflows"][called], &format!("{path}/"), paths),
                None => paths.push((path, name.clone())),
            }
        }
    }
}

fn written(attempts: &Attempts, random: &mut fastrand::Rng) -> Vec<Json> {
    match attempts {
        Attempts::Process(codes) => codes
            .iter()
            .map(|code| json!({ "exit_code": code, "output": "text", "takes": seconds(random) }))
            .collect(),
        Attempts::Json(codes) => {
            let attempt = |code| json!({ "exit_code": code, "output": ["m", "n"], "takes": seconds(random) });
            codes.iter().map(attempt).collect()
        }
        Attempts::Request(statuses) => {
            let attempt =
                |status| json!({ "status": status, "output": { "ok": true }, "takes": seconds(random) });
            statuses.iter().map(attempt).collect()
        }
    }
}

fn seconds(random: &mut fastrand::Rng) -> String {
    format!("{}s", random.u64(0..=LONGEST_S))
}
