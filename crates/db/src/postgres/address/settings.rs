//! The parameters of a connection that were given, and the source of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::AddressError;
use super::parameters::{self, PARAMETERS, Support};

/// Returns the value of an environment variable.
pub(super) type Environment<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The address itself.
    Address,
    /// A section of a service file.
    Service {
        /// The section.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// An environment variable.
    Environment(&'static str),
}

impl Source {
    /// As part of a sentence.
    pub(super) fn describe(&self) -> String {
        match self {
            Source::Address => "in the address".to_owned(),
            Source::Service { name, file } => format!("in the service `{name}` of {}", file.display()),
            Source::Environment(variable) => format!("from the variable {variable}"),
        }
    }
}

/// The value of a parameter. It has no `Debug` because it may be a password.
pub(super) struct Setting {
    text: String,
    source: Source,
}

/// All parameters that were given. The first source that has a parameter wins, even with an empty value.
pub(super) struct Settings {
    given: BTreeMap<&'static str, Setting>,
}

impl Settings {
    pub(super) fn new() -> Settings {
        Settings { given: BTreeMap::new() }
    }

    /// Sets a parameter of the address. If it was given twice, the last value counts.
    pub(super) fn replace(&mut self, name: &str, text: String) -> Result<(), AddressError> {
        let (name, text) = check(name, text, &Source::Address)?;
        self.given.insert(name, Setting { text, source: Source::Address });
        Ok(())
    }

    /// Sets a parameter, unless an earlier source has given it.
    pub(super) fn fill(&mut self, name: &str, text: String, source: &Source) -> Result<(), AddressError> {
        let (name, text) = check(name, text, source)?;
        self.given.entry(name).or_insert_with(|| Setting { text, source: source.clone() });
        Ok(())
    }

    /// Sets the parameters that the environment has, unless they are given already.
    pub(super) fn fill_from_environment(&mut self, environment: Environment<'_>) -> Result<(), AddressError> {
        for parameter in PARAMETERS {
            let Some(name) = parameter.variable else { continue };
            if self.given.contains_key(parameter.name) {
                continue;
            }
            if let Some(text) = environment(name) {
                self.fill(parameter.name, text, &Source::Environment(name))?;
            }
        }
        // The old name of PGSSLMODE. Only the value 1 has a meaning.
        if environment("PGREQUIRESSL").is_some_and(|text| text.starts_with('1')) {
            self.fill("sslmode", "require".to_owned(), &Source::Environment("PGREQUIRESSL"))?;
        }
        Ok(())
    }

    /// The value that was given, unless it is empty.
    pub(super) fn text(&self, name: &'static str) -> Option<&str> {
        self.given(name).filter(|text| !text.is_empty())
    }

    /// The value that was given, which may be empty.
    pub(super) fn given(&self, name: &'static str) -> Option<&str> {
        debug_assert!(parameters::find(name).is_some(), "{name} is no parameter");
        self.given.get(name).map(|setting| setting.text.as_str())
    }

    /// Where a parameter was given.
    pub(super) fn source(&self, name: &'static str) -> Option<&Source> {
        self.given.get(name).map(|setting| &setting.source)
    }

    /// The value as a whole number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<i32>, AddressError> {
        let Some(text) = self.given(name) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.invalid_value(name, "give a whole number")),
        }
    }

    /// The value as one of a few words.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, AddressError> {
        let Some(text) = self.given(name) else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, support)) => Ok(Some(*support)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                Err(self.invalid_value(name, &format!("give one of {}", words.join(", "))))
            }
        }
    }

    /// The error for an invalid value. It shows the value, so not for secrets.
    pub(super) fn invalid_value(&self, name: &'static str, next_step: &str) -> AddressError {
        let text = self.given(name).unwrap_or_default();
        let place = self.source(name).map(Source::describe).unwrap_or_default();
        AddressError::new(format!("`{name}` {place} can't be `{text}`"), next_step)
    }
}

/// Checks a name and a value. Returns them, with an old name replaced.
fn check(name: &str, text: String, source: &Source) -> Result<(&'static str, String), AddressError> {
    if name == "requiressl" {
        let mode = if text.starts_with('1') { "require" } else { "prefer" };
        return Ok(("sslmode", mode.to_owned()));
    }
    let place = source.describe();
    let parameter = parameters::find(name).ok_or_else(|| parameters::unknown(name, &place))?;
    match parameter.support {
        Support::Full | Support::Ignored => {}
        Support::OnlyValues(values) if values.contains(&text.as_str()) => {}
        Support::OnlyValues(values) => return Err(unsupported(name, &place, values)),
    }
    if text.contains('\0') {
        return Err(AddressError::new(format!("`{name}` {place} has a zero byte"), "leave it out"));
    }
    Ok((parameter.name, text))
}

fn unsupported(name: &str, place: &str, values: &[&str]) -> AddressError {
    let message = format!("`{name}` {place} asks for something that Windlass can't do");
    match values.iter().find(|value| !value.is_empty()) {
        Some(value) => AddressError::new(message, format!("leave it out, which means `{value}`")),
        None => AddressError::new(message, "leave it out if the connection is safe enough without"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(name: &str, text: &str) -> Settings {
        let mut settings = Settings::new();
        settings.replace(name, text.to_owned()).unwrap();
        settings
    }

    #[test]
    fn the_first_source_wins_and_the_last_of_the_address() {
        let mut settings = of("user", "first");
        settings.replace("user", "last".to_owned()).unwrap();
        let service = Source::Service { name: "s".to_owned(), file: "/f".into() };
        settings.fill("user", "service".to_owned(), &service).unwrap();
        settings.fill("port", "1".to_owned(), &service).unwrap();
        settings
            .fill_from_environment(&|name| {
                (name.starts_with("PG"))
                    .then(|| String::from("0"))
                    .filter(|_| ["PGUSER", "PGPORT", "PGHOST"].contains(&name))
            })
            .unwrap();
        let found = ["user", "port", "host"].map(|name| settings.text(name).unwrap());
        assert_eq!(found, ["last", "1", "0"]);
        assert_eq!(settings.source("port"), Some(&service));
        assert_eq!(settings.source("host"), Some(&Source::Environment("PGHOST")));
    }

    #[test]
    fn an_empty_value_hides_later_sources() {
        let mut settings = of("dbname", "");
        settings.fill_from_environment(&|name| (name == "PGDATABASE").then(|| "other".to_owned())).unwrap();
        assert_eq!(settings.text("dbname"), None);
    }

    #[test]
    fn numbers_and_words_are_checked() {
        assert_eq!(of("connect_timeout", " 5 ").number("connect_timeout"), Ok(Some(5)));
        assert_eq!(of("user", "x").number("connect_timeout"), Ok(None));
        let error = of("connect_timeout", "5s").number("connect_timeout").unwrap_err();
        assert_eq!(error.to_string(), "`connect_timeout` in the address can't be `5s`; give a whole number");
        let words = [("disable", 1), ("require", 2)];
        assert_eq!(of("sslmode", "require").choice("sslmode", &words), Ok(Some(2)));
        let error = of("sslmode", "verify_full").choice("sslmode", &words).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sslmode` in the address can't be `verify_full`; give one of disable, require"
        );
    }

    #[test]
    fn values_that_windlass_does_not_support_are_refused() {
        let cases = [
            ("gssencmode", "disable", true),
            ("gssencmode", "require", false),
            ("sslnegotiation", "direct", false),
            ("require_auth", "scram-sha-256", false),
            ("client_encoding", "LATIN1", true),
            ("sslcrldir", "/etc/crl", false),
            ("requirepeer", "postgres", false),
        ];
        for (name, text, is_accepted) in cases {
            let taken = Settings::new().replace(name, text.to_owned());
            assert_eq!(taken.is_ok(), is_accepted, "{name}={text}");
        }
        let error = Settings::new()
            .fill_from_environment(&|name| (name == "PGREQUIREAUTH").then(|| "md5".to_owned()))
            .unwrap_err();
        assert!(error.message().contains("from the variable PGREQUIREAUTH"), "{error}");
    }

    #[test]
    fn the_old_spelling_of_sslmode_still_counts() {
        assert_eq!(of("requiressl", "1").text("sslmode"), Some("require"));
        assert_eq!(of("requiressl", "0").text("sslmode"), Some("prefer"));
        let mut settings = Settings::new();
        settings.fill_from_environment(&|name| (name == "PGREQUIRESSL").then(|| "1".to_owned())).unwrap();
        assert_eq!(settings.text("sslmode"), Some("require"));
    }
}
