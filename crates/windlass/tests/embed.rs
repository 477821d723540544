//! Tests that the example program `examples/embed.rs` does what it says.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

use windlass_test_database::TestDatabase;

#[test]
fn the_program_charges_each_customer_and_retries_failures() {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    let mut cargo = Command::new(env!("CARGO"));
    // With the variables that cargo sets for this test, the other cargo would build the dependencies again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    let output = cargo
        .args(["run", "--quiet", "--package", "windlass", "--example", "embed", "--"])
        .arg(database.address())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("charge SUCCESSFUL after 1 attempts: {\"text\":\"Small & Co paid 12.50\""),
        "{text}"
    );
    assert!(
        lines[1].starts_with("charge SUCCESSFUL after 2 attempts: {\"text\":\"Large & Sons paid 999.00\""),
        "{text}"
    );
    assert!(lines[2].starts_with("shell SUCCESSFUL after 1 attempts: \"20"), "{text}");
}
