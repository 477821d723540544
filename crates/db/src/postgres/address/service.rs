//! A service: a named set of parameters, in a file that all programs share.
//!
//! ```text
//! [reports]
//! host=db.example
//! user=windlass
//! ```

use std::path::{Path, PathBuf};

use super::settings::{Environment, Settings, Source};
use super::{AddressError, files};

/// The folder of the administrator's file in Debian's libpq, unless `PGSYSCONFDIR` names another one.
const SYSTEM_FOLDER: &str = "/etc/postgresql-common";

/// Takes the parameters of the service that the address or `PGSERVICE` names.
pub(super) fn fill(settings: &mut Settings, environment: Environment<'_>) -> Result<(), AddressError> {
    let Some(name) = settings.given("service").map(str::to_owned).or_else(|| environment("PGSERVICE")) else {
        return Ok(());
    };
    let files = files(environment)?;
    for file in &files {
        let text = files::read(file).map_err(|why| {
            let message = format!("the service file {} can't be read: {why}", file.display());
            AddressError::new(message, "correct PGSERVICEFILE, or make the file readable")
        })?;
        if take_section(&text, &name, file, settings)? {
            return Ok(());
        }
    }
    let searched: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let message = match searched.is_empty() {
        true => format!("there is no service file that has a service `{name}`"),
        false => format!("there is no service `{name}` in {}", searched.join(" or ")),
    };
    Err(AddressError::new(message, format!("add a section [{name}] to ~/.pg_service.conf")))
}

/// The files to search, in this order: the user's and the administrator's.
fn files(environment: Environment<'_>) -> Result<Vec<PathBuf>, AddressError> {
    // Only a file that was named must exist.
    let own = match environment("PGSERVICEFILE") {
        Some(named) => Some(PathBuf::from(named)),
        None => files::in_home(environment, ".pg_service.conf").filter(|file| file.exists()),
    };
    let folder = environment("PGSYSCONFDIR").unwrap_or_else(|| SYSTEM_FOLDER.to_owned());
    let shared = Some(Path::new(&folder).join("pg_service.conf")).filter(|file| file.exists());
    Ok(own.into_iter().chain(shared).collect())
}

/// Takes the parameters of a section. Returns whether the file has the section.
fn take_section(text: &str, name: &str, file: &Path, settings: &mut Settings) -> Result<bool, AddressError> {
    let source = Source::Service { name: name.to_owned(), file: file.to_owned() };
    let mut is_found = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if is_found {
                break;
            }
            is_found = header.strip_prefix(name).is_some_and(|rest| rest.starts_with(']'));
            continue;
        }
        if is_found {
            let (key, value) = parameter(line, file, index + 1)?;
            settings.fill(key, value.to_owned(), &source)?;
        }
    }
    Ok(is_found)
}

/// Parses a line `name=value`. The error shows only the number of the line, because the line may contain a password.
fn parameter<'l>(line: &'l str, file: &Path, number: usize) -> Result<(&'l str, &'l str), AddressError> {
    let wrong = |what: &str, next_step: &str| {
        AddressError::new(format!("line {number} of the service file {} {what}", file.display()), next_step)
    };
    if line.starts_with("ldap") {
        return Err(wrong(
            "refers to an LDAP server, which Windlass does not support",
            "write the parameters into the file",
        ));
    }
    match line.split_once('=') {
        Some(("service", _)) => Err(wrong("names another service", "write its parameters here")),
        // As in libpq, spaces belong to the name and the value.
        Some((key, value)) => Ok((key, value)),
        None => Err(wrong("is not of the form name=value", "correct the line")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILE: &str = "\
# for all
[other]
host=elsewhere

[reports]
# comment
  host=db.example
port=5433
password=a=b
user=from service
[reports2]
dbname=wrong
[broken]
no parameter
[nested]
service=reports
[unknown]
hots=x
[ldap]
ldap://host/dn?attribute?base?(a=b)
";

    fn filled(service: &str, url_user: Option<&str>) -> Result<Settings, AddressError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        std::fs::write(&file, FILE).unwrap();
        let mut settings = Settings::new();
        if let Some(user) = url_user {
            settings.replace("user", user.to_owned()).unwrap();
        }
        fill(&mut settings, &|name| match name {
            "PGSERVICE" => Some(service.to_owned()),
            "PGSERVICEFILE" => Some(file.display().to_string()),
            "PGSYSCONFDIR" => Some(folder.path().display().to_string()),
            _ => None,
        })?;
        Ok(settings)
    }

    #[test]
    fn a_section_completes_the_address() {
        let settings = filled("reports", Some("me")).unwrap_or_else(|error| panic!("{error}"));
        let found = ["host", "port", "password", "user", "dbname"].map(|name| settings.text(name));
        assert_eq!(found, [Some("db.example"), Some("5433"), Some("a=b"), Some("me"), None]);
        assert!(settings.source("host").unwrap().describe().contains("the service `reports` of /"));
    }

    #[test]
    fn errors_name_the_line_or_the_file() {
        let cases = [
            ("broken", "line 14 of the service file"),
            ("nested", "names another service"),
            ("unknown", "did you mean `host`?"),
            ("ldap", "LDAP"),
            ("missing", "there is no service `missing` in /"),
        ];
        for (service, expected) in cases {
            let Err(error) = filled(service, None) else { panic!("{service} was read") };
            assert!(error.to_string().contains(expected), "{service}: {error}");
        }
    }

    #[test]
    fn files_are_found_as_libpq_finds_them() {
        let home = tempfile::tempdir().unwrap();
        let system = tempfile::tempdir().unwrap();
        let named = home.path().join("named");
        let read = |variables: &[(&str, &Path)]| {
            let mut settings = Settings::new();
            settings.replace("service", "s".to_owned()).unwrap();
            let environment = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, path)| path.display().to_string())
            };
            fill(&mut settings, &environment).map(|()| settings.text("host").unwrap_or_default().to_owned())
        };
        let at_home: &[(&str, &Path)] = &[("HOME", home.path()), ("PGSYSCONFDIR", system.path())];
        let error = read(at_home).unwrap_err();
        assert!(error.message().contains("no service file"), "{error}");
        std::fs::write(system.path().join("pg_service.conf"), "[s]\nhost=system\n").unwrap();
        assert_eq!(read(at_home).unwrap(), "system");
        std::fs::write(home.path().join(".pg_service.conf"), "[other]\nhost=other\n").unwrap();
        assert_eq!(read(at_home).unwrap(), "system", "the user's file has no such section");
        std::fs::write(home.path().join(".pg_service.conf"), "[s]\nhost=home\n").unwrap();
        assert_eq!(read(at_home).unwrap(), "home");
        let with_named = [at_home, &[("PGSERVICEFILE", named.as_path())]].concat();
        let error = read(&with_named).unwrap_err();
        assert!(error.message().contains("can't be read"), "{error}");
        std::fs::write(&named, "[s]\nhost=named\n").unwrap();
        assert_eq!(read(&with_named).unwrap(), "named");
    }
}
