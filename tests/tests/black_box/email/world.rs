//! What the tests of the e-mail example share: its programs in both languages, and an SMTP server that keeps a list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use windlass_test_database::{Access, DatabaseKind};
use windlass_tests::binary::repository;
use windlass_tests::{Engine, Outcome, Sandbox, eventually};

/// The lease of a worker in Python, in seconds. Windlass finds a worker in Rust that was killed at once.
const LEASE_SECONDS: &str = "3";

/// How many mails the worker in Rust sends at once.
pub(super) const RUST_THREADS: usize = 3;

/// Which of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Rust,
}

impl Language {
    /// How many mails its worker sends at once.
    pub(super) fn threads(self) -> usize {
        match self {
            Language::Python => 1,
            Language::Rust => RUST_THREADS,
        }
    }
}

/// A Python that has the packages of the tests. Debian's packages are not those of another Python in `PATH`.
fn python() -> &'static str {
    static PYTHON: OnceLock<&str> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let has_packages = |python: &&str| {
            let found = Command::new(python).args(["-c", "import aiosmtpd, psycopg"]).output();
            found.is_ok_and(|output| output.status.success())
        };
        let found = ["python3", "/usr/bin/python3"].into_iter().find(has_packages);
        found.expect("no Python has the packages aiosmtpd and psycopg: call scripts/setup")
    })
}

/// A sandbox with the tables of the example, an SMTP server, and a process of Windlass for workers in Python.
pub(super) struct World {
    pub(super) sandbox: Sandbox,
    smtp: String,
    _processes: Vec<Engine>,
}

impl World {
    pub(super) fn new(language: Language) -> World {
        let sandbox = Sandbox::new();
        sandbox.run(&["db", "migrate"]).exited(0);
        let script = repository().join("tests/tests/black_box/email/smtp_server.py");
        let arguments = [script.as_path(), sandbox.root()];
        let server = sandbox.start(sandbox.prepared(Command::new(python()), &arguments));
        let port = eventually("the port of the SMTP server", || {
            let port = sandbox.read("port");
            (!port.is_empty()).then_some(port)
        });
        let mut processes = vec![server];
        match language {
            Language::Python => processes.push(sandbox.spawn(&["serve"])),
            Language::Rust => {}
        }
        let world = World { sandbox, smtp: format!("127.0.0.1:{port}"), _processes: processes };
        world.program(language, "create-tables", &[], "/dev/null").wait().exited(0);
        world
    }

    /// Starts a program of the example with this file as its standard input.
    fn program(&self, language: Language, verb: &str, arguments: &[&str], input: &str) -> Engine {
        let database = self.sandbox.database();
        let address = database.address();
        let mut words: Vec<String> = match language {
            Language::Python => {
                let script = repository().join(format!("examples/email/{}.py", verb.replace('-', "_")));
                vec![python().to_owned(), script.to_string_lossy().into_owned()]
            }
            Language::Rust => vec![env!("CARGO_BIN_EXE_windlass-email").to_owned(), verb.to_owned()],
        };
        let mut variables = Vec::new();
        words.push(match (language, database.kind()) {
            (Language::Rust, DatabaseKind::Sqlite | DatabaseKind::Postgres)
            | (Language::Python, DatabaseKind::Sqlite) => address,
            (Language::Python, DatabaseKind::Postgres) => {
                let (server, schema) = address.split_once("?schema=").expect("a schema of the test's own");
                variables.push(("PGOPTIONS", format!("-c search_path={schema}")));
                server.to_owned()
            }
        });
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let with_input = ["-c", "input=$1; shift; exec \"$@\" < \"$input\"", "sh", input];
        let mut all: Vec<String> = with_input.iter().map(|word| (*word).to_owned()).collect();
        all.append(&mut words);
        let mut command = self.sandbox.prepared(Command::new("sh"), &all);
        command.envs(variables);
        self.sandbox.start(command)
    }

    /// Writes the file that [`World::signup`] reads.
    pub(super) fn write_addresses(&self, addresses: &BTreeSet<String>) {
        let lines: Vec<&str> = addresses.iter().map(String::as_str).collect();
        self.sandbox.write("addresses", lines.join("\n"));
    }

    /// Starts the producer.
    pub(super) fn signup(&self, language: Language) -> Engine {
        self.program(language, "signup", &[], "addresses")
    }

    /// Runs the producer for these addresses to its end.
    pub(super) fn sign_up(&self, language: Language, addresses: &[&str]) -> Outcome {
        self.write_addresses(&addresses.iter().map(|address| (*address).to_owned()).collect());
        self.signup(language).wait().exited(0)
    }

    /// Starts the worker.
    pub(super) fn mailer(&self, language: Language) -> Engine {
        let threads = language.threads().to_string();
        match language {
            Language::Python => {
                let arguments = [self.smtp.as_str(), "--lease", LEASE_SECONDS];
                self.program(language, "mailer", &arguments, "/dev/null")
            }
            Language::Rust => self.program(language, "mailer", &[&self.smtp, &threads], "/dev/null"),
        }
    }

    /// Lets the server accept no mail after it has written it down, or accept those that wait.
    pub(super) fn hold(&self, hold: Hold) {
        let path = self.sandbox.path("hold");
        match hold {
            Hold::On => fs::write(path, "").expect("a sandbox can be written to"),
            Hold::Off => fs::remove_file(path).expect("the mails were held"),
        }
    }

    /// The mails that the server has got: for each Message-ID the recipients, one for each time.
    pub(super) fn mails(&self) -> BTreeMap<String, Vec<String>> {
        let mut mails: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.sandbox.read("mails").split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let (message_id, recipient) = line.trim_end().split_once(' ').expect("two words");
            mails.entry(message_id.to_owned()).or_default().push(recipient.to_owned());
        }
        mails
    }

    /// How many mails the server has got.
    pub(super) fn mail_count(&self) -> usize {
        self.mails().values().map(Vec::len).sum()
    }

    /// The Message-ID of each job, and the address in its payload.
    pub(super) fn expected_mails(&self) -> BTreeMap<String, String> {
        let sql = "SELECT created_at || '-' || token, payload FROM jobs WHERE kind = 'email'";
        let rows = self.sandbox.database().sql(Access::Read).rows(sql, |row| {
            let payload: String = row.get(1)?;
            let payload: serde_json::Value = serde_json::from_str(&payload).expect("JSON");
            let to = payload["to"].as_str().expect("an address").to_owned();
            Ok((format!("<{}@signup.example>", row.get::<_, String>(0)?), to))
        });
        rows.into_iter().collect()
    }

    pub(super) fn count(&self, sql: &str) -> i64 {
        self.sandbox.tables().value(sql)
    }

    /// Waits until this many jobs have succeeded.
    pub(super) fn wait_for_all(&self, jobs: usize) {
        eventually("the end of all jobs", || {
            let over = "SELECT count(*) FROM jobs WHERE status = 'SUCCESSFUL' AND finished_at IS NOT NULL";
            (self.count(over) == jobs as i64).then_some(())
        });
    }
}

/// Whether the server keeps its answer back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hold {
    On,
    Off,
}

/// The text of a file of the example.
pub(super) fn example(name: &str) -> String {
    let path = repository().join("examples/email").join(Path::new(name));
    fs::read_to_string(path).expect("an example can be read")
}
