//! Handlers drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt;
use crate::jobs::RULES;
use crate::workflows::Scope;

const PHASES: [&str; 4] = ["on_success", "on_failure", "on_cancel", "finally"];

impl Draw {
    /// The tables of handlers. `names` are those of the jobs, which handlers may read.
    pub(crate) fn handlers(&mut self, workflow: &mut Map<String, Json>, scope: &Scope, names: &[String]) {
        for phase in PHASES {
            if !self.draws(phase, 30) {
                continue;
            }
            let mut table = Map::new();
            let name = format!("{}{phase}", scope.prefix);
            let handler = self.handler(&name, scope, names);
            table.insert(name.clone(), Json::Object(handler));
            if self.draws("handler needs", 25) {
                let later = format!("{name}_later");
                let mut handler = self.handler(&later, scope, names);
                handler.insert("needs".to_owned(), json!([name]));
                handler.insert("when".to_owned(), json!(self.one_of(&RULES)));
                table.insert(later, Json::Object(handler));
            }
            workflow.insert(phase.to_owned(), Json::Object(table));
        }
    }

    fn handler(&mut self, name: &str, scope: &Scope, names: &[String]) -> Map<String, Json> {
        let mut handler = Map::new();
        if self.draws("handler if", 25) {
            let job = &names[self.number(0..=names.len() - 1)];
            let condition = self.one_of(&["run.outcome == 'FAILED'", "run.failed | length > 1"]);
            let reads = format!("jobs.{job}.status == 'SUCCESSFUL'");
            let condition = if self.draws_any(50) { condition.to_owned() } else { reads };
            handler.insert("if".to_owned(), json!(condition));
        }
        if self.draws("handler sleeps", 10) {
            handler.insert("sleep".to_owned(), json!("1h"));
            return handler;
        }
        // What ends the jobs of the run does not end its handlers.
        if let Some(called) = scope.callable.filter(|called| !called.ender.is_of_the_case())
            && self.draws("handler calls", 12)
        {
            self.call(called, &mut handler);
            handler.entry("timeout").or_insert_with(|| json!("3600d"));
            return handler;
        }
        self.handling_process(name, &mut handler);
        handler
    }

    fn handling_process(&mut self, name: &str, handler: &mut Map<String, Json>) {
        handler.insert("run".to_owned(), json!("true"));
        handler.insert("retry".to_owned(), json!(2));
        let env = json!({ "FAILED": "{{ run.outcome }} {{ run.failed | join(' ') }}" });
        handler.insert("env".to_owned(), env);
        let mut attempts = vec![Attempt::Exit(0)];
        if self.draws("handler without a timeout", 12) {
            attempts = vec![Attempt::Endless];
        } else {
            handler.insert("timeout".to_owned(), json!("1d"));
            if self.draws("handler fails", 20) {
                attempts = vec![Attempt::Exit(1)];
            }
        }
        if self.draws("handler for_each", 15) {
            handler.insert("for_each".to_owned(), json!(["a", "b"]));
        }
        self.fakes.add(name, attempts, json!("text"));
    }

    /// Adds a handler that does not end before a person cancels it.
    pub(crate) fn held_handler(&mut self, workflow: &mut Map<String, Json>) {
        self.fakes.add("held_handler", vec![Attempt::Endless], json!("text"));
        let handler = json!({ "run": "true", "timeout": "3600d" });
        let table = workflow.entry("finally").or_insert_with(|| json!({}));
        if let Some(table) = table.as_object_mut() {
            table.insert("held_handler".to_owned(), handler);
        }
    }
}
