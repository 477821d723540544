#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use windlass_engine::transition::Repeat;
use windlass_workflow::model::SecretSource;

use super::*;

/// What a worker finds, with these variables, for one secret.
fn find(variables: &[(&str, &[u8])], dir: Option<&Path>, source: SecretSource) -> Result<String, Outcome> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from_vec(value.to_vec()))
    };
    let output = |words: &[String]| match words[0].as_str() {
        "fails" => Err(Missing::Failed("its command `fails` failed".to_owned())),
        printed => Ok(printed.as_bytes().to_vec()),
    };
    let used = [JobSecret { name: "TOKEN".to_owned(), source, is_variable: true }];
    let secrets = Secrets::find(&Worker { variable: &variable, output: &output, dir }, &used)?;
    Ok(secrets.variables().next().unwrap().1.to_owned())
}

/// The error of an attempt that is not repeated.
fn refusal(found: Result<String, Outcome>) -> String {
    let outcome = found.unwrap_err();
    let Outcome::Failed { error, repeat: Repeat::Pointless } = outcome else { panic!("{outcome:?}") };
    error
}

fn folder_with(name: &str, value: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, value).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (folder, path)
}

#[test]
fn a_secret_without_a_source_is_the_workers_variable_and_then_its_credential() {
    let (folder, _file) = folder_with("TOKEN", "credential-1\n", 0o440);
    let credentials = ("CREDENTIALS_DIRECTORY", folder.path().as_os_str().as_encoded_bytes());
    let find = |variables: &[(&str, &[u8])]| find(variables, None, SecretSource::Worker);
    assert_eq!(find(&[("TOKEN", &b"variable-1"[..]), credentials]).unwrap(), "variable-1");
    assert_eq!(find(&[credentials]).unwrap(), "credential-1");
    let error = refusal(find(&[]));
    assert!(
        error.starts_with("secret `TOKEN`: the worker has no variable `TOKEN`, and no CREDENTIALS_DIRECTORY")
    );
    fs::remove_file(folder.path().join("TOKEN")).unwrap();
    let error = refusal(find(&[credentials]));
    let expected = format!(
        "secret `TOKEN`: the worker has no variable `TOKEN`, and the file {}/TOKEN does not exist",
        folder.path().display()
    );
    assert_eq!(error, expected);
}

#[test]
fn a_secret_may_be_another_variable() {
    let source = || SecretSource::Env("PROD_TOKEN".to_owned());
    assert_eq!(find(&[("PROD_TOKEN", b"12345678\n")], None, source()).unwrap(), "12345678\n");
    let error = refusal(find(&[("TOKEN", b"12345678")], None, source()));
    assert!(error.starts_with("secret `TOKEN`: the worker has no variable `PROD_TOKEN`"), "{error}");
}

#[test]
fn a_file_with_a_secret_is_readable_by_its_owner_only() {
    let (folder, path) = folder_with("key", "line one\r\nline two\n\r\n", 0o600);
    let find = |path: &str| find(&[], Some(folder.path()), SecretSource::File(path.to_owned()));
    assert_eq!(find("key").unwrap(), "line one\r\nline two");
    assert_eq!(find(path.to_str().unwrap()).unwrap(), "line one\r\nline two");
    for mode in [0o640, 0o604, 0o444] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = refusal(find("key"));
        let expected =
            format!("others than its owner may read the file {} (mode {mode:03o})", path.display());
        assert!(error.contains(&expected), "{error}");
    }
    let error = refusal(find("nothing"));
    assert!(error.ends_with("/nothing does not exist"), "{error}");
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    assert!(refusal(find("fifo")).ends_with("is a FIFO (named pipe), not a regular file"));
    let large = folder.path().join("large");
    fs::write(&large, "x".repeat(SECRET_MAX_BYTES + 1)).unwrap();
    fs::set_permissions(&large, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(refusal(find("large")).ends_with("is larger than 65536 bytes"));
}

#[test]
fn a_program_that_fails_may_be_tried_again() {
    let command = |word: &str| find(&[], None, SecretSource::Command(vec![word.to_owned()]));
    assert_eq!(command("printed-value").unwrap(), "printed-value");
    let error = "secret `TOKEN`: its command `fails` failed".to_owned();
    assert_eq!(command("fails").unwrap_err(), Outcome::Failed { error, repeat: Repeat::Allowed });
}

#[test]
fn a_value_that_can_not_be_masked_or_handed_on_is_refused_without_being_shown() {
    for (value, reason) in [
        (&b"ab12345"[..], "fewer than 8 characters"),
        (b"", "fewer than 8 characters"),
        ("äöüäöüä".as_bytes(), "fewer than 8 characters"),
        (b"ab12345\xff\xff\xff", "not UTF-8"),
        (b"ab12345\0\0\0", "NUL"),
    ] {
        let error = refusal(find(&[("TOKEN", value)], None, SecretSource::Worker));
        assert!(error.starts_with("secret `TOKEN`: ") && error.contains(reason), "{error}");
        assert!(!error.contains("ab12345"), "{error}");
    }
    assert!(find(&[("TOKEN", "äöüäöüäö".as_bytes())], None, SecretSource::Worker).is_ok());
}

#[test]
fn what_templates_make_of_secrets_is_noted_without_the_lines_of_the_template() {
    let secrets = Secrets::default();
    secrets
        .note_rendered("host: example.org\nkey: {{ secrets.T | upper }}", "host: example.org\nkey: ABCDEFGH");
    assert_eq!(*secrets.rendered.borrow(), ["key: ABCDEFGH"]);
}
