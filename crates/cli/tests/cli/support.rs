//! A folder with a database, and the binary.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use windlass_test_database::{DatabaseKind, TestDatabase};

use crate::schemas;

/// The longest time that a command may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The folder and the database of one test.
pub(crate) struct Bench {
    pub(crate) database: TestDatabase,
    folder: TempDir,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running command.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Stream,
    stderr: Stream,
}

/// The text read from a pipe so far, and the thread that reads it.
struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let folder = TempDir::new().unwrap();
        Bench { database: TestDatabase::in_folder(folder.path()), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A named pipe without a writer.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    /// `windlass` in the folder, without settings of the caller.
    pub(crate) fn command(&self) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_windlass")))
    }

    /// Any command with the same environment.
    pub(crate) fn prepared(&self, mut command: Command) -> Command {
        let is_setting = |name: &str| {
            name.starts_with("WINDLASS_") || ["RUST_LOG", "NO_COLOR", "NOTIFY_SOCKET"].contains(&name)
        };
        for (name, _value) in std::env::vars_os() {
            if name.to_str().is_some_and(is_setting) {
                command.env_remove(name);
            }
        }
        match self.database.kind() {
            // The default is the file `windlass.db` in the current folder.
            DatabaseKind::Sqlite => {}
            DatabaseKind::Postgres => drop(command.env("WINDLASS_DB", self.database.address())),
        }
        command.env("TZ", "UTC").current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// `windlass` as an unprivileged user, even if the tests run as root.
    pub(crate) fn unprivileged(&self, arguments: &[&str]) -> Outcome {
        if !rustix::process::geteuid().is_root() {
            return self.windlass(arguments);
        }
        // Other users may not be able to read the build folder.
        let program = self.path("windlass-copy");
        if !program.exists() {
            fs::copy(env!("CARGO_BIN_EXE_windlass"), &program).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(self.folder(), Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(program).args(arguments);
        Running::start(self.prepared(command)).wait()
    }

    /// Runs `windlass` with arguments to its end. JSON must be as its schema says.
    #[track_caller]
    pub(crate) fn windlass<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Outcome {
        let outcome = self.start(arguments).wait();
        let text = |argument: &S| argument.as_ref().to_string_lossy().into_owned();
        schemas::check(&arguments.iter().map(text).collect::<Vec<_>>(), &outcome);
        outcome
    }

    /// Starts `windlass` with arguments.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        let mut command = self.command();
        command.args(arguments);
        Running::start(command)
    }

    /// The JSON output of `windlass`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.windlass(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"))
    }

    /// Waits until the question has an answer.
    pub(crate) fn wait_for<T>(&self, what: &str, mut question: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(answer) = question() {
                return answer;
            }
            assert!(began.elapsed() < DEADLINE, "{what} did not happen");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a job of a run has a state.
    pub(crate) fn wait_for_status(&self, job: &str, status: &str) {
        self.wait_for(&format!("{job} being {status}"), || {
            let outcome = self.windlass(&["inspect", job, "-o", "json"]);
            let found: Value = serde_json::from_str(&outcome.stdout).ok()?;
            (found["status"] == status).then_some(())
        });
    }
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Stream::read(child.stdout.take().unwrap());
        let stderr = Stream::read(child.stderr.take().unwrap());
        Running { child, stdout, stderr }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until standard error has this part.
    pub(crate) fn wait_until_it_tells(&self, bench: &Bench, part: &str) {
        bench.wait_for(part, || self.stderr.so_far().contains(part).then_some(()));
    }

    /// What it told so far.
    pub(crate) fn told(&self) -> String {
        self.stderr.so_far()
    }

    /// Waits for the end. A command that blocks fails the test.
    pub(crate) fn wait(mut self) -> Outcome {
        let began = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() > DEADLINE => {
                    self.child.kill().unwrap();
                    let _status = self.child.wait();
                    panic!("it hangs; so far: {}{}", self.stdout.so_far(), self.stderr.so_far());
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        Outcome { code: status.code().unwrap_or(-1), stdout: self.stdout.all(), stderr: self.stderr.all() }
    }
}

impl Stream {
    fn read(mut pipe: impl Read + Send + 'static) -> Stream {
        let text = Arc::new(Mutex::new(Vec::new()));
        let filled = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                match pipe.read(&mut piece).unwrap() {
                    0 => return,
                    length => filled.lock().unwrap().extend_from_slice(&piece[..length]),
                }
            }
        });
        Stream { text, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn all(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }
}

impl Outcome {
    /// The command ended with this code.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Outcome {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Standard output has these parts, in this order.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) -> &Outcome {
        in_order(&self.stdout, parts, self);
        self
    }

    /// Standard error has these parts, in this order.
    #[track_caller]
    pub(crate) fn tells(&self, parts: &[&str]) -> &Outcome {
        in_order(&self.stderr, parts, self);
        self
    }

    /// One error with a next step, and no other output.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        self.code(code).tells(parts);
        assert_eq!(self.stdout, "", "{self:#?}");
        let errors = self.stderr.matches("error: ").count() + self.stderr.matches("{\"error\":").count();
        assert_eq!(errors, 1, "{self:#?}");
        let has_next_step = ["help: ", "For more information", "tip: ", "\"next_step\":\""]
            .iter()
            .any(|word| self.stderr.contains(word));
        assert!(has_next_step, "{self:#?}");
    }
}

#[track_caller]
fn in_order(text: &str, parts: &[&str], outcome: &Outcome) {
    let mut rest = text;
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => panic!("{part:?} is missing (or not in this order): {outcome:#?}"),
        }
    }
}

/// A workflow of two jobs that succeeds at once.
pub(crate) const GOOD: &str = r#"
name = "good"
[params]
day = { type = "date", default = "2026-11-20", description = "which day" }
count = { type = "integer", default = 3 }
[jobs.fetch]
run = "echo fetched; echo warned >&2"
[jobs.report]
needs = ["fetch"]
command = ["echo", "report of {{ params.day }}"]
output = "text"
"#;

/// A workflow with a job that fails, one that is skipped, and one that succeeds.
pub(crate) const BAD: &str = r#"
name = "bad"
[jobs.load]
run = "seq 100; echo boom >&2; exit 3"
[jobs.after]
needs = ["load"]
run = "true"
[jobs.other]
run = "echo fine"
"#;

/// A workflow whose first job runs until it is stopped or until the file `go` exists.
pub(crate) const SLOW: &str = r#"
name = "slow"
[jobs.wait]
run = "while ! test -e go; do sleep 0.05; done; echo went"
[jobs.after]
needs = ["wait"]
run = "echo after"
"#;
