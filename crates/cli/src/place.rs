//! Where the database is: a file, or a server. What was meant to be a server's address and is none is told
//! apart from a file, instead of making a file with an odd name.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use windlass::PostgresAddress;

use crate::error::Failure;

/// A database as it was named. Shown, it has no password.
#[derive(Clone)]
pub(crate) struct Named(OsString);

impl From<OsString> for Named {
    fn from(text: OsString) -> Named {
        Named(text)
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl Named {
    /// As it can be typed again, without the password.
    pub(crate) fn shown(&self) -> String {
        redacted(&self.0.to_string_lossy())
    }

    /// As it was named, with a password that may be in it: for a process that uses the same database.
    #[cfg(feature = "postgres")]
    pub(crate) fn with_password(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    /// Whether it has a password in it.
    #[cfg(feature = "postgres")]
    pub(crate) fn has_password(&self) -> bool {
        PostgresAddress::has_password(&self.0.to_string_lossy())
    }

    /// Whether it has a password in it.
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn has_password(&self) -> bool {
        false
    }

    /// A database that a file in `folder` names: a relative path starts there.
    pub(crate) fn relative_to(text: &str, folder: &Path) -> Result<Named, String> {
        match meaning(OsStr::new(text)) {
            Meaning::File => Ok(Named(folder.join(text).into_os_string())),
            Meaning::Server(url) => Ok(Named(OsString::from(url))),
            Meaning::Mistyped(message, _help) => Err(message),
        }
    }

    /// Reads it, completed by what PostgreSQL's users keep in their environment and their home.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        match meaning(&self.0) {
            Meaning::File => Ok(Place::File(PathBuf::from(&self.0))),
            Meaning::Server(url) => server(url),
            Meaning::Mistyped(message, help) => Err(Failure::usage(message, help)),
        }
    }
}

/// Where a database is.
#[derive(Clone)]
pub(crate) enum Place {
    /// A SQLite file.
    File(PathBuf),
    /// A schema of a database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server {
        /// Complete.
        address: Box<PostgresAddress>,
        /// As it was given, for PostgreSQL's own programs, without the password.
        for_libpq: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(formatter),
            #[cfg(feature = "postgres")]
            Place::Server { address, .. } => address.fmt(formatter),
        }
    }
}

#[cfg(feature = "postgres")]
fn server(url: &str) -> Result<Place, Failure> {
    let address = PostgresAddress::parse(url, &|name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.message(), error.next_step()))?;
    Ok(Place::Server { address: Box::new(address), for_libpq: PostgresAddress::for_libpq(url) })
}

#[cfg(not(feature = "postgres"))]
fn server(_url: &str) -> Result<Place, Failure> {
    Err(Failure::usage(
        "this windlass was built without PostgreSQL",
        "name a file, or build it with its feature `postgres`",
    ))
}

#[cfg(feature = "postgres")]
fn redacted(text: &str) -> String {
    PostgresAddress::redacted(text)
}

/// Nothing of a server can be used: nothing of its address is shown.
#[cfg(not(feature = "postgres"))]
fn redacted(text: &str) -> String {
    match meaning(OsStr::new(text)) {
        Meaning::File | Meaning::Mistyped(..) => text.to_owned(),
        Meaning::Server(_) => "postgres://…".to_owned(),
    }
}

/// What a user meant.
#[derive(Debug, PartialEq, Eq)]
enum Meaning<'t> {
    File,
    Server(&'t str),
    /// What is wrong, and what to do. Neither repeats more than a scheme: the rest may hold a password.
    Mistyped(String, String),
}

/// The form of a server's address.
const FORM: &str = "postgres://user@host:5432/dbname";
/// How like a scheme must be to one of PostgreSQL's to be taken for it, where 1 is the same.
const ALIKE: f64 = 0.8;
/// What a connection begins with when it is written the other way, as `name=value name=value`.
const PAIRS: [&str; 9] =
    ["host", "hostaddr", "port", "dbname", "user", "password", "service", "sslmode", "application_name"];

fn meaning(text: &OsStr) -> Meaning<'_> {
    let Some(text) = text.to_str() else { return Meaning::File };
    if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Meaning::Server(text);
    }
    if text.split_once('=').is_some_and(|(name, _)| PAIRS.contains(&name.trim())) {
        return Meaning::Mistyped(
            "the database is a path or a URL, and not a list of parameters".to_owned(),
            format!("write {FORM}, and other parameters behind it as in ?sslmode=require&connect_timeout=5"),
        );
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Meaning::File };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme || !rest.starts_with('/') {
        return Meaning::File;
    }
    let lower = scheme.to_ascii_lowercase();
    if matches!(lower.as_str(), "file" | "sqlite" | "sqlite3") {
        let message = format!("a database in a file is named by its path, without `{scheme}:`");
        return Meaning::Mistyped(message, "write it as in --db /var/lib/windlass/jobs.db".to_owned());
    }
    let likeness = strsim::jaro_winkler(&lower, "postgresql").max(strsim::jaro_winkler(&lower, "postgres"));
    match (likeness >= ALIKE || lower == "pg", rest.starts_with("//")) {
        (true, _) => Meaning::Mistyped(
            format!("the address of a server begins with postgres:// and not with `{scheme}:`"),
            format!("write {FORM}"),
        ),
        (false, true) => Meaning::Mistyped(
            format!("`{scheme}://` is no database that windlass can use"),
            format!("name a SQLite file by its path, or a PostgreSQL server by {FORM}"),
        ),
        // A file in a folder whose name has a colon.
        (false, false) => Meaning::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_a_server_and_a_typing_error_are_told_apart() {
        let files =
            ["windlass.db", "./a b.db", "/x/y:z.db", "C:x.db", "a:/b.db", "./host=x", "~/x.db", "8://x"];
        for text in files {
            assert_eq!(meaning(OsStr::new(text)), Meaning::File, "{text}");
        }
        for text in ["postgres://", "postgresql://u:p@h/d"] {
            assert_eq!(meaning(OsStr::new(text)), Meaning::Server(text));
        }
        let mistyped = [
            ("postgre://u:secret@h/d", "not with `postgre:`"),
            ("postgress://u:secret@h/d", "not with `postgress:`"),
            ("POSTGRES://u:secret@h/d", "not with `POSTGRES:`"),
            ("postgres:/u:secret@h/d", "not with `postgres:`"),
            ("postgresql+psycopg2://u:secret@h/d", "not with `postgresql+psycopg2:`"),
            ("pg://u:secret@h/d", "not with `pg:`"),
            ("mysql://u:secret@h/d", "`mysql://` is no database"),
            ("sqlite:///x/secret.db", "by its path"),
            ("file:/x/secret.db", "by its path"),
            ("host=h password=secret", "not a list of parameters"),
            ("dbname = secret", "not a list of parameters"),
        ];
        for (text, expected) in mistyped {
            let Meaning::Mistyped(message, help) = meaning(OsStr::new(text)) else { panic!("{text}") };
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!format!("{message}{help}").contains("secret"), "{text}: {message} {help}");
        }
    }

    #[test]
    fn what_is_named_is_shown_without_its_password() {
        let named = Named::from(OsString::from("postgres://u:secret@h/d"));
        assert!(!format!("{named:?}{}", named.shown()).contains("secret"));
        assert_eq!(Named::from(OsString::from("a.db")).shown(), "a.db");
    }
}
