//! Tests of complete addresses: which sources complete them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use postgres::config::{Host, SslMode};

use super::{AddressError, PostgresAddress};

fn parse(url: &str, variables: &[(&str, &str)]) -> Result<PostgresAddress, AddressError> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    PostgresAddress::parse(url, &|name| variables.get(name).map(|text| (*text).to_owned()))
}

fn password(address: &PostgresAddress) -> Option<String> {
    address.config().get_password().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn the_environment_completes_an_address() {
    let variables = [
        ("PGHOST", "db.example"),
        ("PGPORT", "5433"),
        ("PGUSER", "me"),
        ("PGDATABASE", "jobs"),
        ("PGPASSWORD", "secret"),
        ("PGSSLMODE", "require"),
        ("PGAPPNAME", "night"),
        ("PGCONNECT_TIMEOUT", "3"),
        ("PGOPTIONS", "-c work_mem=8MB"),
        ("PGTARGETSESSIONATTRS", "read-write"),
    ];
    let address = parse("postgres://", &variables).unwrap();
    assert_eq!(address.to_string(), "postgres://me@db.example:5433/jobs");
    assert_eq!(password(&address).as_deref(), Some("secret"));
    assert_eq!(address.password_source(), Some("from the variable PGPASSWORD"));
    let config = address.config();
    assert_eq!(config.get_ssl_mode(), SslMode::Require);
    assert_eq!(config.get_application_name(), Some("night"));
    assert_eq!(config.get_connect_timeout().map(std::time::Duration::as_secs), Some(3));
    assert_eq!(config.get_options(), Some("-c work_mem=8MB"));
    let other = parse("postgres://you:other@h:1/d?sslmode=disable&application_name=a", &variables).unwrap();
    assert_eq!(other.to_string(), "postgres://you@h:1/d");
    assert_eq!(password(&other).as_deref(), Some("other"));
    assert_eq!(other.config().get_ssl_mode(), SslMode::Disable);
    assert_eq!(other.config().get_application_name(), Some("a"));
}

#[test]
fn an_address_on_the_network_keeps_its_name_and_its_number() {
    let address = parse("postgres://u@db.example/d", &[("PGHOSTADDR", "10.0.0.7")]).unwrap();
    let config = address.config();
    assert_eq!(config.get_hosts(), [Host::Tcp("db.example".to_owned())]);
    assert_eq!(config.get_hostaddrs().iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.7"]);
}

#[test]
fn without_a_user_it_is_the_one_of_the_system_and_the_database_has_its_name() {
    let me = whoami::username().unwrap();
    let address = parse("postgres://h", &[]).unwrap();
    assert_eq!((address.user(), address.database()), (me.as_str(), me.as_str()));
    assert_eq!(parse("postgres://u@h", &[]).unwrap().database(), "u");
}

#[test]
fn a_service_stands_between_the_address_and_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("services");
    std::fs::write(&file, "[s]\nhost=from-service\nuser=from-service\nschema=jobs\n").unwrap();
    let file = file.display().to_string();
    let variables =
        [("PGSERVICEFILE", file.as_str()), ("PGHOST", "env"), ("PGDATABASE", "env"), ("PGUSER", "env")];
    for (url, extra) in [("postgres://me@?service=s", None), ("postgres://me@", Some(("PGSERVICE", "s")))] {
        let variables: Vec<_> = variables.iter().copied().chain(extra).collect();
        let address = parse(url, &variables).unwrap();
        assert_eq!(address.to_string(), "postgres://me@from-service:5432/env?schema=jobs");
    }
}

fn write_private(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn the_password_file_is_read_last() {
    let home = tempfile::tempdir().unwrap();
    write_private(&home.path().join(".pgpass"), "h:5432:d:u:from home\n");
    let named = home.path().join("named");
    write_private(&named, "*:*:*:*:from named\n");
    let (home, named) = (home.path().display().to_string(), named.display().to_string());
    let at_home = ("HOME", home.as_str());
    type Variables<'v> = &'v [(&'v str, &'v str)];
    let cases: &[(&str, Variables<'_>, Option<&str>)] = &[
        ("postgres://u@h/d", &[], None),
        ("postgres://u@h/d", &[at_home], Some("from home")),
        ("postgres://u@other/d", &[at_home], None),
        ("postgres://u@h/d", &[at_home, ("PGPASSFILE", &named)], Some("from named")),
        ("postgres://u@h/d", &[at_home, ("PGPASSWORD", "from variable")], Some("from variable")),
        ("postgres://u:url@h/d", &[at_home, ("PGPASSWORD", "x")], Some("url")),
        ("postgres://u@h/d", &[at_home, ("PGPASSFILE", "/nowhere")], None),
    ];
    for (url, variables, expected) in cases {
        let address = parse(url, variables).unwrap();
        assert_eq!(password(&address).as_deref(), *expected, "{url} {variables:?}");
    }
    let address = parse(&format!("postgres://u@h/d?passfile={named}"), &[at_home]).unwrap();
    assert_eq!(password(&address).as_deref(), Some("from named"));
    assert_eq!(address.password_source(), Some(format!("in the password file {named}").as_str()));
}

#[test]
fn a_schema_has_a_name_that_needs_no_quotes() {
    let long = "a".repeat(40);
    for name in ["windlass", "_x", "jobs2", long.as_str(), "public"] {
        assert_eq!(parse(&format!("postgres://h?schema={name}"), &[]).unwrap().schema(), name);
    }
    assert_eq!(parse("postgres://h?schema=", &[]).unwrap().schema(), "windlass");
    let too_long = "a".repeat(41);
    for name in ["Jobs", "2jobs", "a-b", "a b", "a\"b", "ü", "pg_jobs", "information_schema", &too_long] {
        let error = parse(&format!("postgres://h?schema={name}"), &[]).unwrap_err();
        assert!(error.message().starts_with("`schema` in the address can't be"), "{error}");
    }
}

#[test]
fn nothing_shows_a_password() {
    let address = parse("postgres://u:s3cret@h/d", &[]).unwrap();
    for shown in [format!("{address}"), format!("{address:?}"), format!("{:?}", address.config())] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
