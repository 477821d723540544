//! What the page of a run shows, as its address says it.

use crate::pages::url;

/// A picture of the jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// A row a job, a bar an attempt.
    #[default]
    Timeline,
    /// What needs what.
    Graph,
    /// A row a job, in words.
    Table,
}

/// A part of what is known about one job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Panel {
    /// Its output.
    #[default]
    Log,
    /// Its attempts.
    Attempts,
    /// What it got and gave.
    Data,
    /// Why it is in its state.
    Why,
    /// Its part of the definition.
    Definition,
    /// Its items, if it has `for_each`.
    Items,
}

/// Which jobs of a large run are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobState {
    /// All.
    #[default]
    Any,
    /// Those that failed.
    Failed,
    /// Those that run.
    Running,
    /// Those that wait, or have not begun.
    Unfinished,
    /// Those that succeeded.
    Successful,
}

const VIEWS: [(View, &str); 3] =
    [(View::Timeline, "timeline"), (View::Graph, "graph"), (View::Table, "table")];
const PANELS: [(Panel, &str); 6] = [
    (Panel::Log, "log"),
    (Panel::Attempts, "attempts"),
    (Panel::Data, "data"),
    (Panel::Why, "why"),
    (Panel::Definition, "definition"),
    (Panel::Items, "items"),
];
const STATES: [(JobState, &str); 5] = [
    (JobState::Any, "any"),
    (JobState::Failed, "failed"),
    (JobState::Running, "running"),
    (JobState::Unfinished, "unfinished"),
    (JobState::Successful, "successful"),
];

impl View {
    /// Its name in the address.
    #[must_use]
    pub fn name(self) -> &'static str {
        VIEWS.iter().find(|(view, _)| *view == self).map_or("", |(_, name)| name)
    }
}

impl Panel {
    /// Its name in the address.
    #[must_use]
    pub fn name(self) -> &'static str {
        PANELS.iter().find(|(panel, _)| *panel == self).map_or("", |(_, name)| name)
    }
}

impl JobState {
    /// Its name in the address.
    #[must_use]
    pub fn name(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }
}

/// What is shown of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// The picture.
    pub view: View,
    /// The id of the job below the picture; otherwise the one to look at first.
    pub job: Option<i64>,
    /// What is shown of it.
    pub panel: Panel,
    /// The attempt whose output is shown; otherwise the last one.
    pub attempt: Option<i64>,
    /// The line to look at; otherwise the first error decides.
    pub line: Option<i64>,
    /// The first line that is shown, whatever is to be looked at.
    pub from: Option<i64>,
    /// A text to look for in the output.
    pub find: Option<String>,
    /// Which jobs are shown.
    pub state: JobState,
    /// A text that the names of the shown jobs have.
    pub name: Option<String>,
    /// How many jobs are left out before the window.
    pub offset: i64,
    /// How many items are left out before the window of a job with `for_each`.
    pub items: i64,
}

impl RunQuery {
    /// Reads the query of an address.
    ///
    /// # Errors
    /// A sentence about the first part that is unknown or out of bounds.
    pub fn parse(query: &str) -> Result<RunQuery, String> {
        let mut parsed = RunQuery::default();
        for (name, value) in url::filled_pairs(query)? {
            parsed.set(&name, value)?;
        }
        Ok(parsed)
    }

    /// Reads the query of the address of a job by itself. It may name the job, as the addresses of lines do.
    ///
    /// # Errors
    /// A sentence about the first part that is unknown or out of bounds, or about another job.
    pub fn parse_of_job(query: &str, job_id: i64) -> Result<RunQuery, String> {
        let parsed = RunQuery::parse(query)?;
        if parsed.job.is_some_and(|other| other != job_id) {
            return Err(format!("This is the address of job {job_id}, and `job` names another one."));
        }
        let RunQuery { panel, attempt, line, from, find, .. } = parsed.clone();
        let of_job = RunQuery { job: parsed.job, panel, attempt, line, from, find, ..RunQuery::default() };
        match parsed == of_job {
            true => Ok(RunQuery { job: Some(job_id), ..of_job }),
            false => Err("A job takes panel, attempt, line, from and find.".to_owned()),
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let number = || match value.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(number),
            Ok(_) | Err(_) => Err(format!("`{value}` is no value of `{name}`, which is a number.")),
        };
        match name {
            "view" => self.view = named(&VIEWS, name, &value)?,
            "panel" => self.panel = named(&PANELS, name, &value)?,
            "state" => self.state = named(&STATES, name, &value)?,
            "job" => self.job = Some(number()?),
            "attempt" => self.attempt = Some(number()?),
            "line" => self.line = Some(number()?),
            "from" => self.from = Some(number()?),
            "offset" => self.offset = number()?,
            "items" => self.items = number()?,
            "find" => self.find = Some(value),
            "name" => self.name = Some(value),
            _ => {
                return Err(format!(
                    "`{name}` is unknown here. A run takes view, job, panel, attempt, line, from, find, state, name, offset and items."
                ));
            }
        }
        Ok(())
    }

    /// The query of the address, with its question mark.
    #[must_use]
    pub fn to_query(&self) -> String {
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let default = RunQuery::default();
        let texts = [
            ("view", (self.view != default.view).then(|| self.view.name().to_owned())),
            ("state", (self.state != default.state).then(|| self.state.name().to_owned())),
            ("name", self.name.clone()),
            ("offset", number((self.offset > 0).then_some(self.offset))),
            ("job", number(self.job)),
            ("panel", (self.panel != default.panel).then(|| self.panel.name().to_owned())),
            ("items", number((self.items > 0).then_some(self.items))),
            ("attempt", number(self.attempt)),
            ("line", number(self.line)),
            ("from", number(self.from)),
            ("find", self.find.clone()),
        ];
        let pairs: Vec<(&str, String)> =
            texts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        url::query(pairs.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// The same with another job below the picture.
    #[must_use]
    pub fn of_job(&self, job_id: i64) -> RunQuery {
        let RunQuery { view, state, name, offset, .. } = self.clone();
        RunQuery { view, state, name, offset, job: Some(job_id), ..RunQuery::default() }
    }
}

fn named<T: Copy>(known: &[(T, &'static str)], name: &str, value: &str) -> Result<T, String> {
    known.iter().find(|(_, text)| *text == value).map(|(known, _)| *known).ok_or_else(|| {
        let texts: Vec<&str> = known.iter().map(|(_, text)| *text).collect();
        format!("`{value}` is no value of `{name}`. It is one of {}.", texts.join(", "))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_job_takes_what_is_shown_of_it_and_no_other_job() {
        let of = |query| RunQuery::parse_of_job(query, 7).map(|query| query.to_query());
        assert_eq!(of("attempt=2&line=9"), Ok("?job=7&attempt=2&line=9".to_owned()));
        assert_eq!(of("job=7&panel=why"), Ok("?job=7&panel=why".to_owned()));
        for query in ["job=8", "view=graph", "name=a", "items=100", "other=1"] {
            assert!(of(query).is_err(), "{query}");
        }
    }

    #[test]
    fn what_is_shown_comes_back_from_the_address() {
        for query in [
            "",
            "?view=graph&job=7&panel=why",
            "?job=7&panel=items&items=100",
            "?state=failed&name=load%5B&offset=200&job=1&attempt=2&line=9&from=3&find=a%20b",
        ] {
            assert_eq!(RunQuery::parse(query.trim_start_matches('?')).unwrap().to_query(), query);
        }
        for query in ["view=map", "job=x", "line=-1", "other=1"] {
            assert!(RunQuery::parse(query).is_err(), "{query}");
        }
    }
}
