//! The password file. Each line is `host:port:dbname:user:password`. `*` stands for any value, and `\` escapes `:` and `\`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::hosts::Server;
use super::settings::{Environment, Settings};
use super::{AddressError, files};

/// A password, and the file in which it was found.
pub(super) struct FoundPassword {
    pub(super) password: String,
    pub(super) file: PathBuf,
}

/// Looks up the password of a user. A file that is missing, or that other users may read, is ignored.
///
/// # Errors
/// When the servers of the address have different passwords. The client has one password for all servers, and no server may
/// get the password of another.
pub(super) fn look_up(
    settings: &Settings,
    environment: Environment<'_>,
    servers: &[Server],
    database: &str,
    user: &str,
) -> Result<Option<FoundPassword>, AddressError> {
    let named = settings.text("passfile").map(PathBuf::from);
    let is_named = named.is_some();
    let Some(file) = named.or_else(|| files::in_home(environment, ".pgpass")) else { return Ok(None) };
    let Some(text) = read_private(&file, is_named) else { return Ok(None) };
    let mut passwords = servers.iter().map(|server| {
        password_in(&text, &[&server.name_in_passfile(), &server.port.to_string(), database, user])
    });
    let first = passwords.next().flatten();
    if passwords.any(|other| other != first) {
        return Err(AddressError::new(
            format!("{} does not have the same password for each host of the address", file.display()),
            format!("give the hosts one line, as in *:*:{database}:{user}:…"),
        ));
    }
    Ok(first.map(|password| FoundPassword { password, file }))
}

/// The text of a file that only its owner can read. Logs a warning if it is ignored.
fn read_private(file: &Path, is_named: bool) -> Option<String> {
    /// The permission bits of the group and of others.
    const OTHERS: u32 = 0o077;
    let shown = file.display();
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) => {
            if is_named {
                tracing::warn!("the password file {shown} is ignored: {error}");
            }
            return None;
        }
    };
    if !metadata.is_file() {
        tracing::warn!("the password file {shown} is ignored: it is not a plain file");
        return None;
    }
    if metadata.mode() & OTHERS != 0 {
        tracing::warn!("the password file {shown} is ignored: others may read it; `chmod 600 {shown}` helps");
        return None;
    }
    files::read(file).inspect_err(|why| tracing::warn!("the password file {shown} is ignored: {why}")).ok()
}

/// The password of the first line whose four fields match.
fn password_in(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut rest = line;
        for wanted in wanted {
            let (field, after) = field(rest)?;
            if rest.starts_with("*:") || field == **wanted {
                rest = after?;
            } else {
                return None;
            }
        }
        field(rest).map(|(password, _)| password)
    })
}

/// The text up to the next `:`, unescaped, and the rest after the `:`, if there is one.
fn field(text: &str) -> Option<(String, Option<&str>)> {
    let mut field = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            ':' => return Some((field, Some(&text[at + 1..]))),
            '\\' => match characters.next() {
                Some((_, escaped)) => field.push(escaped),
                None => field.push('\\'),
            },
            other => field.push(other),
        }
    }
    Some((field, None))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let wanted = ["db.example", "5432", "jobs", "me"];
        let cases: &[(&str, Option<&str>)] = &[
            ("db.example:5432:jobs:me:secret", Some("secret")),
            ("db.example:5432:jobs:me:secret:more", Some("secret")),
            ("db.example:5432:jobs:me:", Some("")),
            ("db.example:5432:jobs:me", None),
            ("*:*:*:*:any", Some("any")),
            ("*:5433:*:*:no\n*:5432:*:*:yes", Some("yes")),
            ("db.example:5432:jobs:you:no", None),
            ("db.exampl:5432:jobs:me:no", None),
            ("db.example.org:5432:jobs:me:no", None),
            ("**:*:*:*:no", None),
            ("#*:*:*:*:no\n\n*:*:*:*:yes", Some("yes")),
            (r"*:*:*:*:a\:b\\c", Some(r"a:b\c")),
            (r"*:*:*:*:a\", Some(r"a\")),
            (r"*:*:jo\bs:me:escaped", Some("escaped")),
            (r"\*:*:*:*:no", None),
            ("*:*:*:*:crlf\r\n", Some("crlf")),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(password_in(text, &wanted).as_deref(), *expected, "{text:?}");
        }
        assert_eq!(password_in(r"a\:b:1:d:u:p", &["a:b", "1", "d", "u"]).as_deref(), Some("p"));
    }

    /// What is found for some servers in a file with these permissions.
    fn found(text: &str, mode: u32, hosts: &str) -> Result<Option<String>, AddressError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".pgpass");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut settings = Settings::new();
        settings.replace("host", hosts.to_owned()).unwrap();
        let servers = super::super::hosts::servers(&settings).unwrap();
        let home = folder.path().display().to_string();
        let environment = |name: &str| (name == "HOME").then(|| home.clone());
        look_up(&settings, &environment, &servers, "jobs", "me")
            .map(|found| found.map(|found| found.password))
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored() {
        for (mode, is_used) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o610, false)]
        {
            let expected = is_used.then(|| "secret".to_owned());
            assert_eq!(found("*:*:*:*:secret\n", mode, "a").unwrap(), expected, "{mode:o}");
        }
    }

    #[test]
    fn the_default_socket_is_localhost() {
        let text = "localhost:5432:jobs:me:usual\n/tmp/else:5432:jobs:me:other\n";
        assert_eq!(found(text, 0o600, "/var/run/postgresql").unwrap().as_deref(), Some("usual"));
        assert_eq!(found(text, 0o600, "").unwrap().as_deref(), Some("usual"));
        assert_eq!(found(text, 0o600, "/tmp/else").unwrap().as_deref(), Some("other"));
    }

    #[test]
    fn no_server_gets_the_password_of_another() {
        assert_eq!(found("*:*:*:*:one", 0o600, "a,b").unwrap().as_deref(), Some("one"));
        for text in ["a:*:*:*:secret1\nb:*:*:*:secret2", "a:*:*:*:secret1", "b:*:*:*:secret1"] {
            let error = found(text, 0o600, "a,b").unwrap_err();
            assert!(error.message().contains("does not have the same password"), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
