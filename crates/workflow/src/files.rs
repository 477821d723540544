//! The files that a job keeps (`artifacts`) and gets (`inputs`): patterns of paths, and where an input comes from.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::template::is_template;

/// Characters with a meaning in a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// Files that are kept when the job succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The pattern of their paths below the folder of the job. May be a template.
    pub glob: String,
    /// What happens if no file matches.
    #[serde(default, skip_serializing_if = "NoMatch::is_default")]
    pub no_match: NoMatch,
}

/// What happens if no file matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoMatch {
    /// A line of the log says so.
    #[default]
    Warn,
    /// The attempt fails (`required = true`).
    Fail,
}

impl NoMatch {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == NoMatch::default()
    }
}

/// A file that a job gets before an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its path below the folder of the job. With `/` at the end it is a folder, for all files that match.
    pub to: String,
    /// The job that keeps it.
    pub job: String,
    /// The pattern of its path among the artifacts of that job. May be a template.
    pub path: String,
}

/// The form of the value of `inputs`.
pub(crate) const SOURCE_FORM: &str = "jobs.NAME/PATH";

impl Input {
    /// Reads `jobs.NAME/PATH`.
    ///
    /// # Errors
    /// What is wrong with the text, for people.
    pub fn parse(to: &str, source: &str) -> Result<Input, String> {
        check_target(to)?;
        let rest = source.strip_prefix("jobs.").ok_or_else(|| format!("it must be {SOURCE_FORM}"))?;
        let (job, path) = rest.split_once('/').ok_or_else(|| format!("it must be {SOURCE_FORM}"))?;
        if job.is_empty() || is_template(job) || job.contains(SPECIAL) {
            return Err(format!("it must be {SOURCE_FORM}, and NAME is the name of one job"));
        }
        check_glob(path)?;
        Ok(Input { to: to.to_owned(), job: job.to_owned(), path: path.to_owned() })
    }

    /// Whether the target is a folder for all files that match.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.to.ends_with('/')
    }
}

/// A pattern of paths, without templates.
#[derive(Debug, Clone)]
pub struct FilePattern {
    text: String,
    matcher: GlobMatcher,
}

impl FilePattern {
    /// Reads a pattern: `*` and `?` match within a name, `**` matches folders, `[ab]` and `{a,b}` give choices.
    ///
    /// # Errors
    /// What is wrong with the pattern, for people.
    pub fn parse(text: &str) -> Result<FilePattern, String> {
        let text = text.strip_prefix("./").unwrap_or(text).to_owned();
        check_parts(&text)?;
        let glob = GlobBuilder::new(&text).literal_separator(true).build();
        let matcher = glob.map_err(|error| error.kind().to_string())?.compile_matcher();
        Ok(FilePattern { text, matcher })
    }

    /// The pattern.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a path matches. It is relative, and its parts are separated by `/`.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.matcher.is_match(path)
    }

    /// The folder that has all matching files: the parts before the first special character.
    #[must_use]
    pub fn folder(&self) -> &str {
        let special = self.text.find(|c| SPECIAL.contains(&c) || c == '\\').unwrap_or(self.text.len());
        self.text[..special].rsplit_once('/').map_or("", |(folder, _name)| folder)
    }

    /// Whether only one path can match.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.text.contains(SPECIAL) && !self.text.contains('\\')
    }
}

/// Checks a pattern that may be a template.
pub(crate) fn check_glob(glob: &str) -> Result<(), String> {
    if is_template(glob) {
        return Ok(());
    }
    FilePattern::parse(glob).map(|_pattern| ())
}

/// Checks the path of an input.
pub(crate) fn check_target(to: &str) -> Result<(), String> {
    check_parts(to.strip_suffix('/').unwrap_or(to))
}

/// Checks that a path stays below its folder.
fn check_parts(path: &str) -> Result<(), String> {
    if path.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if path.starts_with('/') {
        return Err("it must be relative to the folder of the job".to_owned());
    }
    if path.contains('\0') {
        return Err("it contains a NUL character".to_owned());
    }
    match path.split('/').find(|part| ["", ".", ".."].contains(part)) {
        Some("..") => Err("it must not leave the folder of the job by `..`".to_owned()),
        Some(_) => Err("it has an empty part or `.` between its slashes".to_owned()),
        None => Ok(()),
    }
}

/// Checks that a job keeps what another gets from it, as far as that is known without running it.
pub(crate) fn check_is_kept(artifacts: &[Artifact], job: &str, path: &str) -> Result<(), String> {
    if artifacts.is_empty() {
        return Err(format!("job `{job}` keeps no files; give it `artifacts`"));
    }
    let is_known = !is_template(path) && artifacts.iter().all(|artifact| !is_template(&artifact.glob));
    let Some(path) = FilePattern::parse(path).ok().filter(|path| is_known && path.is_literal()) else {
        return Ok(());
    };
    let keeps = |artifact: &Artifact| {
        FilePattern::parse(&artifact.glob).is_ok_and(|pattern| pattern.matches(path.text()))
    };
    match artifacts.iter().any(keeps) {
        true => Ok(()),
        false => Err(format!("no pattern in `artifacts` of job `{job}` matches `{}`", path.text())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn patterns_match_below_their_folder() {
        for (pattern, folder, matches, does_not) in [
            ("out/*.csv", "out", "out/a.csv", "out/b/a.csv"),
            ("out/**/*.csv", "out", "out/b/c/a.csv", "in/a.csv"),
            ("./report.html", "", "report.html", "a/report.html"),
            ("a/b/{c,d}.txt", "a/b", "a/b/d.txt", "a/b/e.txt"),
            ("*", "", "a", "a/b"),
            ("**", "", "a/b/c", "\u{0}none\u{0}/"),
        ] {
            let parsed = FilePattern::parse(pattern).unwrap();
            assert_eq!(parsed.folder(), folder, "{pattern}");
            assert!(parsed.matches(matches), "{pattern} {matches}");
            assert!(pattern == "**" || !parsed.matches(does_not), "{pattern} {does_not}");
        }
        for wrong in ["", " ", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "a\0b", "a[", "{a"] {
            assert!(FilePattern::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_input_names_a_job_and_a_path() {
        let input = Input::parse("data.csv", "jobs.my-job.x/out/data.csv").unwrap();
        assert_eq!((input.job.as_str(), input.path.as_str()), ("my-job.x", "out/data.csv"));
        assert!(!input.is_folder() && Input::parse("parts/", "jobs.a/*").unwrap().is_folder());
        for (to, source) in [
            ("a", "fetch/a"),
            ("a", "jobs.fetch"),
            ("a", "jobs.fetch/"),
            ("a", "jobs.fetch/../a"),
            ("a", "jobs./a"),
            ("a", "jobs.{{ params.job }}/a"),
            ("/a", "jobs.fetch/a"),
            ("../a", "jobs.fetch/a"),
            ("", "jobs.fetch/a"),
            ("/", "jobs.fetch/a"),
        ] {
            assert!(Input::parse(to, source).is_err(), "{to} = {source}");
        }
    }

    #[test]
    fn a_file_must_be_kept_where_that_is_known() {
        let artifact = |glob: &str| Artifact { glob: glob.to_owned(), no_match: NoMatch::Warn };
        let is_kept = |globs: &[&str], path: &str| {
            check_is_kept(&globs.iter().map(|glob| artifact(glob)).collect::<Vec<_>>(), "a", path).is_ok()
        };
        assert!(is_kept(&["out/*.csv"], "out/a.csv"));
        assert!(!is_kept(&["out/*.csv"], "out/a.txt"));
        assert!(is_kept(&["out/*.csv", "*.txt"], "a.txt"));
        assert!(is_kept(&["out/*.csv"], "{{ params.x }}"), "not known");
        assert!(is_kept(&["{{ params.x }}"], "a"), "not known");
        assert!(is_kept(&["out/*.csv"], "*.txt"), "not known");
        assert!(!is_kept(&[], "a"));
    }
}
