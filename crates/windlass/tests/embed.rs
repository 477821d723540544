//! The example program of `examples/embed.rs` does what it says.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

use windlass_test_database::TestDatabase;

#[test]
fn the_program_charges_each_customer_and_repeats_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    let output = Command::new(env!("CARGO"))
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
