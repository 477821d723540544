//! Finds the program under test, and builds it first: no test target of this crate depends on it.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable that names a ready binary; it is then used as it is.
pub const BINARY_VARIABLE: &str = "WINDLASS_BIN";

/// The `windlass` binary, built in the profile of these tests unless [`BINARY_VARIABLE`] names one.
///
/// # Panics
/// When it cannot be built; cargo's messages are shown.
#[must_use]
pub fn windlass() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os(BINARY_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => build_once().unwrap_or_else(|error| panic!("cannot build the windlass binary: {error}")),
    })
}

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in a workspace").to_owned()
}

/// The folder of the example workflows.
#[must_use]
pub fn examples() -> PathBuf {
    repository().join("examples/workflows")
}

/// Builds once a test run. cargo-nextest starts a process for each test, all with the same run id: the
/// first one builds, under a lock, and leaves a note for the others.
fn build_once() -> io::Result<PathBuf> {
    let profile_dir = profile_dir()?;
    let binary = profile_dir.join("windlass");
    let Ok(test_run) = env::var("NEXTEST_RUN_ID") else {
        build(&profile_dir)?;
        return Ok(binary);
    };
    let mut lock =
        File::options().read(true).append(true).create(true).open(profile_dir.join("windlass-built-for"))?;
    lock.lock()?;
    let mut built_for = String::new();
    lock.read_to_string(&mut built_for)?;
    if built_for != test_run || !binary.exists() {
        build(&profile_dir)?;
        lock.set_len(0)?;
        io::Write::write_all(&mut lock, test_run.as_bytes())?;
    }
    Ok(binary)
}

/// `target/debug` or `target/release`: the test's own binary lies in `deps` below it.
fn profile_dir() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    let profile_dir =
        own.ancestors().nth(2).ok_or_else(|| io::Error::other("tests run outside a target folder"))?;
    fs::canonicalize(profile_dir)
}

fn build(profile_dir: &Path) -> io::Result<()> {
    let target_dir = profile_dir.parent().ok_or_else(|| io::Error::other("no target folder"))?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "windlass-cli", "--target-dir"]).arg(target_dir);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    // These variables would make another cargo rebuild the dependencies.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    let status = command.current_dir(repository()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("`cargo build -p windlass-cli` ended with {status}")))
    }
}
