//! Parses `postgres://user:password@host:port,host:port/dbname?name=value`, as libpq does.
//!
//! No error shows a part of the URL that could be a part of a password. If a password contains an `@` or a `/` that is not
//! percent-encoded, the rest of it looks like a host or a port.

use super::AddressError;
use super::parameters::SCHEMA;
use super::settings::Settings;

/// The schemes of such URLs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The longest address.
const URL_MAX_BYTES: usize = 16 * 1024;

/// Whether an address names a server and not a file.
#[must_use]
pub fn is_postgres(address: &str) -> bool {
    after_scheme(address).is_some()
}

fn after_scheme(address: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| address.strip_prefix(scheme))
}

/// The parts of a URL, still encoded.
struct Parts<'u> {
    user: &'u str,
    password: Option<&'u str>,
    /// Hosts with their ports, separated by commas.
    servers: &'u str,
    database: &'u str,
    query: &'u str,
}

/// Cuts a URL into its parts.
fn split(url: &str) -> Result<Parts<'_>, AddressError> {
    let rest = after_scheme(url).ok_or_else(|| {
        AddressError::new(
            "the address of a server begins with postgres:// or postgresql://",
            "write postgres://user@host/dbname",
        )
    })?;
    let (credentials, rest) = match rest.find(['@', '/']) {
        Some(at) if rest[at..].starts_with('@') => (&rest[..at], &rest[at + 1..]),
        Some(_) | None => ("", rest),
    };
    if rest.contains('@') {
        return Err(AddressError::new(
            "the address has an `@` that is not the one before the host",
            "in a user name or password write `@` as %40, `/` as %2F, `:` as %3A and `%` as %25",
        ));
    }
    let (user, password) = match credentials.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (credentials, None),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (servers, rest) = rest.split_at(end);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Ok(Parts { user, password, servers, database: path.strip_prefix('/').unwrap_or(path), query })
}

/// Reads all parameters of the URL.
pub(super) fn read(url: &str) -> Result<Settings, AddressError> {
    if url.len() > URL_MAX_BYTES {
        let message = format!("the address is longer than {URL_MAX_BYTES} bytes");
        return Err(AddressError::new(message, "put long values into a service file"));
    }
    let parts = split(url)?;
    let (hosts, ports) = servers(parts.servers)?;
    let named = [
        ("user", "user name", parts.user),
        ("password", "password", parts.password.unwrap_or_default()),
        ("host", "host", hosts.as_str()),
        ("port", "port", ports.as_str()),
        ("dbname", "name of the database", parts.database),
    ];
    let mut settings = Settings::new();
    for (name, part, encoded) in named {
        // An empty part counts as missing, so that the environment can have it.
        if !encoded.is_empty() {
            settings.replace(name, decoded(encoded, part)?)?;
        }
    }
    read_query(parts.query, &mut settings)?;
    Ok(settings)
}

/// The hosts and the ports, each joined by commas: one of each for every server.
fn servers(servers: &str) -> Result<(String, String), AddressError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for server in servers.split(',') {
        let (host, port) = match server.strip_prefix('[') {
            Some(bracketed) => bracketed_host(bracketed)?,
            None => match server.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(AddressError::new(
                        "a host of the address has more than one `:`",
                        "write an IPv6 address in brackets, as in postgres://[::1]:5432/dbname",
                    ));
                }
                Some((host, port)) => (host, port),
                None => (server, ""),
            },
        };
        hosts.push(host);
        ports.push(port);
    }
    Ok((hosts.join(","), ports.join(",")))
}

/// Parses the text after `[`: an IPv6 address, and perhaps a port.
fn bracketed_host(server: &str) -> Result<(&str, &str), AddressError> {
    let example = "write an IPv6 address as in postgres://[::1]:5432/dbname";
    let (host, rest) = server
        .split_once(']')
        .ok_or_else(|| AddressError::new("a `[` of the address has no `]`", example))?;
    if host.is_empty() {
        return Err(AddressError::new("there is nothing between `[` and `]` in the address", example));
    }
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, port)),
        None if rest.is_empty() => Ok((host, "")),
        None => Err(AddressError::new("something other than a port follows `]` in the address", example)),
    }
}

fn read_query(query: &str, settings: &mut Settings) -> Result<(), AddressError> {
    // One `&` may be left over at the end.
    let query = query.strip_suffix('&').unwrap_or(query);
    if query.is_empty() {
        return Ok(());
    }
    for (index, parameter) in query.split('&').enumerate() {
        let (name, value) =
            parameter.split_once('=').filter(|(_, value)| !value.contains('=')).ok_or_else(|| {
                AddressError::new(
                    format!("parameter {} of the address is not of the form name=value", index + 1),
                    "write them as in ?sslmode=require&connect_timeout=5, and `=` in a value as %3D",
                )
            })?;
        let name = decoded(name, "name of a parameter")?;
        let value = decoded(value, &format!("value of `{name}`"))?;
        match (name.as_str(), value.as_str()) {
            // Drivers of other languages use this parameter.
            ("ssl", "true") => settings.replace("sslmode", "require".to_owned())?,
            (_, _) => settings.replace(&name, value)?,
        }
    }
    Ok(())
}

/// Decodes percent-encoded characters. `part` names the text in an error.
fn decoded(encoded: &str, part: &str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let hex = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let is_hex = hex.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = hex.filter(|_| is_hex).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or_else(|| {
            let message = format!("the {part} in the address has a `%` without two hexadecimal digits");
            AddressError::new(message, "write `%` as %25")
        })?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("the {part} in the address is not UTF-8 once it is decoded");
        AddressError::new(message, "encode it as UTF-8, for example `ü` as %C3%BC")
    })
}

/// An address without its secrets, which may be shown. A text that is not the address of a server is returned unchanged.
pub(super) fn redacted(address: &str) -> String {
    without_parameters(address, is_secret)
}

/// An address for PostgreSQL's own programs: without its secrets, and without parameters that only Windlass knows.
pub(super) fn for_libpq(address: &str) -> String {
    without_parameters(address, |name| {
        is_secret(name) || decoded(name, "name").is_ok_and(|name| name == SCHEMA)
    })
}

/// An address without its password, and without the parameters for which `is_left_out` is true.
fn without_parameters(address: &str, is_left_out: impl Fn(&str) -> bool) -> String {
    let Some(rest) = after_scheme(address) else { return address.to_owned() };
    let scheme = &address[..address.len() - rest.len()];
    // The end of the password is not known.
    let Ok(parts) = split(address) else { return format!("{scheme}…") };
    let is_shown = |parameter: &&str| {
        !parameter.is_empty() && !is_left_out(parameter.split_once('=').map_or(parameter, |(name, _)| name))
    };
    let parameters: Vec<&str> = parts.query.split('&').filter(is_shown).collect();
    let mut text = scheme.to_owned();
    if !parts.user.is_empty() {
        text.push_str(&format!("{}@", parts.user));
    }
    text.push_str(parts.servers);
    if !parts.database.is_empty() || !parameters.is_empty() {
        text.push_str(&format!("/{}", parts.database));
    }
    if !parameters.is_empty() {
        text.push_str(&format!("?{}", parameters.join("&")));
    }
    text
}

/// Whether an address has a password in it.
pub(super) fn has_password(address: &str) -> bool {
    is_postgres(address)
        && split(address).map_or(true, |parts| {
            parts.password.is_some_and(|password| !password.is_empty())
                || parts.query.split('&').any(|parameter| {
                    parameter
                        .split_once('=')
                        .is_some_and(|(name, value)| is_secret(name) && !value.is_empty())
                })
        })
}

/// Whether the value of a parameter is a secret. The name is still encoded.
fn is_secret(name: &str) -> bool {
    decoded(name, "name").map_or(true, |name| matches!(name.as_str(), "password" | "sslpassword"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The parameters that a URL gives, as `name=value`.
    fn given(url: &str) -> Vec<String> {
        let settings = read(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        ["user", "password", "host", "hostaddr", "port", "dbname", "sslmode", "application_name", "schema"]
            .into_iter()
            .filter_map(|name| settings.given(name).map(|text| format!("{name}={text}")))
            .collect()
    }

    #[test]
    fn urls_are_read_as_libpq_reads_them() {
        let cases: &[(&str, &[&str])] = &[
            ("postgres://", &[]),
            ("postgresql://", &[]),
            ("postgres:///", &[]),
            ("postgres://host", &["host=host"]),
            ("postgres://host:5433", &["host=host", "port=5433"]),
            ("postgres://host:/db", &["host=host", "dbname=db"]),
            ("postgres://user@host", &["user=user", "host=host"]),
            ("postgres://user:secret@host/db", &["user=user", "password=secret", "host=host", "dbname=db"]),
            ("postgres://:secret@/db", &["password=secret", "dbname=db"]),
            ("postgres://user:@host/db", &["user=user", "host=host", "dbname=db"]),
            ("postgres://user:a:b@host", &["user=user", "password=a:b", "host=host"]),
            ("postgres://user:a?b@host", &["user=user", "password=a?b", "host=host"]),
            ("postgres://u%40x:%2F%3a%25@h/d%20b", &["user=u@x", "password=/:%", "host=h", "dbname=d b"]),
            ("postgres:///db?host=/run/postgresql", &["host=/run/postgresql", "dbname=db"]),
            ("postgres://%2Frun%2Fpostgresql/db", &["host=/run/postgresql", "dbname=db"]),
            ("postgres://[::1]/db", &["host=::1", "dbname=db"]),
            ("postgres://[2001:db8::7]:5433?user=u", &["user=u", "host=2001:db8::7", "port=5433"]),
            ("postgres://a:1,b:2/db", &["host=a,b", "port=1,2", "dbname=db"]),
            ("postgres://a,b:2", &["host=a,b", "port=,2"]),
            // As in libpq, this hides PGPORT.
            ("postgres://a,b", &["host=a,b", "port=,"]),
            ("postgres://u@a,[::1]:7,/db", &["user=u", "host=a,::1,", "port=,7,", "dbname=db"]),
            ("postgres://host?dbname=db", &["host=host", "dbname=db"]),
            ("postgres://host/db?host=other", &["host=other", "dbname=db"]),
            ("postgres://host/db?ssl=true", &["host=host", "dbname=db", "sslmode=require"]),
            ("postgres://h/d?application_name=a+b%26&", &["host=h", "dbname=d", "application_name=a+b&"]),
            ("postgres://h/d?dbname=", &["host=h", "dbname="]),
            ("postgres://h/d?schema=jobs", &["host=h", "dbname=d", "schema=jobs"]),
            ("postgres://h/a/b", &["host=h", "dbname=a/b"]),
        ];
        for (url, expected) in cases {
            assert_eq!(&given(url), expected, "{url}");
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_a_password() {
        let cases = [
            ("mysql://host", "begins with postgres://"),
            ("postgres://u:se@cret@host/db", "an `@`"),
            ("postgres://u:se/cret@host/db", "an `@`"),
            ("postgres://u:se/cret?secret@host/db", "an `@`"),
            ("postgres://u:%secret@host/db", "the password in the address has a `%`"),
            ("postgres://u:secret%2@host/db", "the password in the address has a `%`"),
            ("postgres://u:secret%f@host/db", "the password in the address has a `%`"),
            ("postgres://u:secret%+1@host/db", "the password in the address has a `%`"),
            ("postgres://u:secret%00@host/db", "`password` in the address has a zero byte"),
            ("postgres://u:secret%ff@host/db", "the password in the address is not UTF-8"),
            ("postgres://::1/db", "more than one `:`"),
            ("postgres://[::1/db", "no `]`"),
            ("postgres://[]/db", "nothing between"),
            ("postgres://[::1]x/db", "follows `]`"),
            ("postgres://h/db?password=sec=ret", "parameter 1 of the address is not of the form"),
            ("postgres://h/db?port=1&secret", "parameter 2 of the address is not of the form"),
            ("postgres://h/db?a=1&&b=2", "`a` in the address is no parameter"),
            ("postgres://h/db?port=1&&host=2", "parameter 2 of the address"),
            ("postgres://h/db?sslpassword=secret", "`sslpassword` in the address"),
        ];
        for (url, expected) in cases {
            let Err(error) = read(url) else { panic!("{url} was read") };
            let text = error.to_string();
            assert!(text.contains(expected), "{url}: {text}");
            assert!(!text.contains("secret") && !text.contains("cret"), "{url}: {text}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let cases = [
            ("windlass.db", "windlass.db", false),
            ("postgres://u:secret@h:1/db?sslmode=require", "postgres://u@h:1/db?sslmode=require", true),
            ("postgres://u@h/db", "postgres://u@h/db", false),
            ("postgres://u:@h/db", "postgres://u@h/db", false),
            ("postgres://:secret@h", "postgres://h", true),
            ("postgres://h?password=secret", "postgres://h", true),
            ("postgresql://h/?port=1&password=secret&user=u", "postgresql://h/?port=1&user=u", true),
            ("postgres://h/db?p%61ssword=secret", "postgres://h/db", true),
            ("postgres:///db?host=/run/postgresql", "postgres:///db?host=/run/postgresql", false),
            ("postgres://a:1,[::1]:2/db", "postgres://a:1,[::1]:2/db", false),
            ("postgres://u:se@secret@h/db?password=secret", "postgres://…", true),
            ("postgres://u:se/secret@h/db", "postgres://…", true),
        ];
        for (address, expected, has) in cases {
            assert_eq!(redacted(address), expected);
            assert_eq!(has_password(address), has, "{address}");
            assert!(!redacted(address).contains("secret"), "{address}");
        }
    }

    #[test]
    fn parameters_of_windlass_are_removed_for_other_programs() {
        let address = "postgres://u:secret@h/db?schema=jobs&sslmode=require";
        assert_eq!(for_libpq(address), "postgres://u@h/db?sslmode=require");
    }

    #[test]
    fn only_the_two_schemes_name_a_server() {
        for address in ["postgres://", "postgresql://h/db"] {
            assert!(is_postgres(address));
        }
        for address in ["", "postgres", "postgres:/h", "POSTGRES://h", "windlass.db", "./postgres://h"] {
            assert!(!is_postgres(address), "{address}");
        }
    }

    #[test]
    fn a_long_address_is_refused() {
        let url = format!("postgres://h/{}", "x".repeat(URL_MAX_BYTES));
        assert!(read(&url).is_err());
    }
}
