//! The address of a database: the path of a SQLite file, or the URL of a PostgreSQL server. A mistyped URL is
//! an error, and never the name of a new file.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use windlass_db::postgres::PostgresAddress;

use crate::error::Failure;

/// The text that names a database, from `--db`, `WINDLASS_DB` or a configuration file. `Debug` hides the password.
#[derive(Clone)]
pub(crate) struct DatabaseArgument(OsString);

impl From<OsString> for DatabaseArgument {
    fn from(text: OsString) -> DatabaseArgument {
        DatabaseArgument(text)
    }
}

impl fmt::Debug for DatabaseArgument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl DatabaseArgument {
    /// The text to type again, without the password.
    pub(crate) fn shown(&self) -> String {
        redacted(&self.0.to_string_lossy())
    }

    /// The text with its password, for a child process that uses the same database.
    #[cfg(feature = "postgres")]
    pub(crate) fn with_password(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    /// Whether the text contains a password.
    #[cfg(feature = "postgres")]
    pub(crate) fn has_password(&self) -> bool {
        PostgresAddress::has_password(&self.0.to_string_lossy())
    }

    /// Whether the text contains a password.
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn has_password(&self) -> bool {
        false
    }

    /// A database that a configuration file names. A relative path starts at `folder`, the folder of that file.
    pub(crate) fn relative_to(text: &str, folder: &Path) -> Result<DatabaseArgument, String> {
        match kind_of_address(OsStr::new(text)) {
            AddressKind::File => Ok(DatabaseArgument(folder.join(text).into_os_string())),
            AddressKind::Server(url) => Ok(DatabaseArgument(OsString::from(url))),
            AddressKind::Mistyped(message, _help) => Err(message),
        }
    }

    /// Parses the text. PG* variables, service files and ~/.pgpass complete the address of a server.
    pub(crate) fn address(&self) -> Result<DatabaseAddress, Failure> {
        if self.0.is_empty() {
            return Err(Failure::usage(
                "the name of the database is empty",
                "write --db windlass.db or --db postgres://user@host/dbname, or leave --db out",
            ));
        }
        match kind_of_address(&self.0) {
            AddressKind::File => Ok(DatabaseAddress::File(PathBuf::from(&self.0))),
            AddressKind::Server(url) => server(url),
            AddressKind::Mistyped(message, help) => Err(Failure::usage(message, help)),
        }
    }
}

/// A parsed address. `Display` hides the password.
#[derive(Clone)]
pub(crate) enum DatabaseAddress {
    /// A SQLite file.
    File(PathBuf),
    /// A schema of a database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server {
        /// The complete address.
        address: Box<PostgresAddress>,
        /// The address as it was given, for PostgreSQL's own programs, without the password.
        for_libpq: String,
    },
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseAddress::File(path) => path.display().fmt(formatter),
            #[cfg(feature = "postgres")]
            DatabaseAddress::Server { address, .. } => address.fmt(formatter),
        }
    }
}

#[cfg(feature = "postgres")]
fn server(url: &str) -> Result<DatabaseAddress, Failure> {
    let address = PostgresAddress::parse(url, &|name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.message(), error.next_step()))?;
    Ok(DatabaseAddress::Server { address: Box::new(address), for_libpq: PostgresAddress::for_libpq(url) })
}

#[cfg(not(feature = "postgres"))]
fn server(_url: &str) -> Result<DatabaseAddress, Failure> {
    Err(Failure::usage(
        "this windlass was built without PostgreSQL",
        "name a file, or build windlass with the feature `postgres`",
    ))
}

#[cfg(feature = "postgres")]
fn redacted(text: &str) -> String {
    PostgresAddress::redacted(text)
}

/// This build cannot parse the address of a server, so it shows nothing of it: the address may hold a password.
#[cfg(not(feature = "postgres"))]
fn redacted(text: &str) -> String {
    match kind_of_address(OsStr::new(text)) {
        AddressKind::File | AddressKind::Mistyped(..) => text.to_owned(),
        AddressKind::Server(_) => "postgres://…".to_owned(),
    }
}

/// What kind of database a text names.
#[derive(Debug, PartialEq, Eq)]
enum AddressKind<'t> {
    File,
    Server(&'t str),
    /// The message and the next step. Both repeat at most the scheme, because the rest may hold a password.
    Mistyped(String, String),
}

/// The form of a server's address, for messages.
const FORM: &str = "postgres://user@host:5432/dbname";
/// A scheme at least this similar to `postgres` is a typing error for it; 1 means equal.
const MIN_SIMILARITY: f64 = 0.8;
/// The names that begin the other form of an address, `name=value name=value`.
const PARAMETERS: [&str; 9] =
    ["host", "hostaddr", "port", "dbname", "user", "password", "service", "sslmode", "application_name"];

fn kind_of_address(text: &OsStr) -> AddressKind<'_> {
    let Some(text) = text.to_str() else { return AddressKind::File };
    if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        return AddressKind::Server(text);
    }
    if text.split_once('=').is_some_and(|(name, _)| PARAMETERS.contains(&name.trim())) {
        return AddressKind::Mistyped(
            "the database must be a path or a URL, not a list of parameters".to_owned(),
            format!("write {FORM} and add other parameters, as in ?sslmode=require&connect_timeout=5"),
        );
    }
    let Some((scheme, rest)) = text.split_once(':') else { return AddressKind::File };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme || !rest.starts_with('/') {
        return AddressKind::File;
    }
    let lower = scheme.to_ascii_lowercase();
    if matches!(lower.as_str(), "file" | "sqlite" | "sqlite3") {
        let message = format!("write the path of the SQLite file without `{scheme}:`");
        return AddressKind::Mistyped(message, "for example --db /var/lib/windlass/jobs.db".to_owned());
    }
    let similarity = strsim::jaro_winkler(&lower, "postgresql").max(strsim::jaro_winkler(&lower, "postgres"));
    match (similarity >= MIN_SIMILARITY || lower == "pg", rest.starts_with("//")) {
        (true, _) => AddressKind::Mistyped(
            format!("the address of a server begins with postgres://, not with `{scheme}:`"),
            format!("write {FORM}"),
        ),
        (false, true) => AddressKind::Mistyped(
            format!("windlass cannot use a database at `{scheme}://`"),
            format!("write the path of a SQLite file, or {FORM} for a PostgreSQL server"),
        ),
        // A file in a folder with a colon in its name.
        (false, false) => AddressKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_a_server_and_a_typing_error_are_distinguished() {
        let files =
            ["windlass.db", "./a b.db", "/x/y:z.db", "C:x.db", "a:/b.db", "./host=x", "~/x.db", "8://x"];
        for text in files {
            assert_eq!(kind_of_address(OsStr::new(text)), AddressKind::File, "{text}");
        }
        for text in ["postgres://", "postgresql://u:p@h/d"] {
            assert_eq!(kind_of_address(OsStr::new(text)), AddressKind::Server(text));
        }
        let mistyped = [
            ("postgre://u:secret@h/d", "not with `postgre:`"),
            ("postgress://u:secret@h/d", "not with `postgress:`"),
            ("POSTGRES://u:secret@h/d", "not with `POSTGRES:`"),
            ("postgres:/u:secret@h/d", "not with `postgres:`"),
            ("postgresql+psycopg2://u:secret@h/d", "not with `postgresql+psycopg2:`"),
            ("pg://u:secret@h/d", "not with `pg:`"),
            ("mysql://u:secret@h/d", "a database at `mysql://`"),
            ("sqlite:///x/secret.db", "path of the SQLite file"),
            ("file:/x/secret.db", "path of the SQLite file"),
            ("host=h password=secret", "not a list of parameters"),
            ("dbname = secret", "not a list of parameters"),
        ];
        for (text, expected) in mistyped {
            let AddressKind::Mistyped(message, help) = kind_of_address(OsStr::new(text)) else {
                panic!("{text}")
            };
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!format!("{message}{help}").contains("secret"), "{text}: {message} {help}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let argument = DatabaseArgument::from(OsString::from("postgres://u:secret@h/d"));
        assert!(!format!("{argument:?}{}", argument.shown()).contains("secret"));
        assert_eq!(DatabaseArgument::from(OsString::from("a.db")).shown(), "a.db");
    }
}
