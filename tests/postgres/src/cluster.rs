//! A data folder with the server that serves it.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rustix::process::Signal;

use crate::binaries::{make_folder_for_server, program};
use crate::processes;

/// What all servers of tests have. A test that wants another value gives its own.
///
/// Nothing is flushed: a server that is killed loses nothing by that, only a machine that loses its power.
const SETTINGS: [(&str, &str); 6] = [
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "400"),
    ("superuser_reserved_connections", "5"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("log_line_prefix", "%m [%p] %u "),
];

/// A start that finds its port taken chooses another, so often.
const PORTS_TRIED_MAX: u32 = 10;

/// The first port to choose from. The last is below those that the system gives to outgoing connections:
/// a client that tries again and again while the server is down could else be given the very port that it
/// wants to reach, and connect to itself.
const FIRST_PORT: u16 = 10_000;

/// How long a server may take to start or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ends the connections, then the server.
    Fast,
    /// As a crash: the next start recovers.
    Immediate,
}

impl Stop {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        }
    }
}

/// A folder with everything of one server: its data, its socket, its log.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    /// The server of a folder, which need not be there yet.
    pub(crate) fn in_folder(folder: &Path) -> Cluster {
        Cluster { folder: folder.to_owned() }
    }

    /// Makes the folder and an empty database in it.
    ///
    /// # Panics
    /// When that fails; PostgreSQL's own words are shown.
    pub(crate) fn create(&self, settings: &[(&str, &str)]) {
        make_folder_for_server(&self.folder);
        let mut command = program("initdb");
        command.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        command.arg("--pgdata").arg(self.data());
        let output = command.output().unwrap_or_else(|error| panic!("initdb cannot be started: {error}"));
        assert!(output.status.success(), "initdb failed: {}", said(&output));
        self.configure(settings);
    }

    fn configure(&self, settings: &[(&str, &str)]) {
        let sockets = ("unix_socket_directories", &*self.folder.to_string_lossy());
        let mut text = String::new();
        for (name, value) in SETTINGS.iter().chain([&sockets]).chain(settings) {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        let path = self.data().join("postgresql.conf");
        let written =
            OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Starts the server on a port that is free, and waits until it accepts connections.
    ///
    /// # Panics
    /// When it does not start; the end of its log is shown.
    pub(crate) fn start_anywhere(&self) -> u16 {
        for _ in 0..PORTS_TRIED_MAX {
            let port = free_port();
            match self.try_start(port) {
                Ok(()) => return port,
                Err(said) if said.contains("Address already in use") => {}
                Err(said) => panic!("the PostgreSQL server does not start: {said}"),
            }
        }
        panic!("{PORTS_TRIED_MAX} ports were tried and each was taken by somebody else at the same moment")
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// What the server said.
    pub(crate) fn try_start(&self, port: u16) -> Result<(), String> {
        let log = self.log();
        let already_said = fs::read(&log).map_or(0, |text| text.len());
        let mut command = program("pg_ctl");
        command.args(["start", "--wait", "--timeout", &PATIENCE.as_secs().to_string()]);
        command.arg("--pgdata").arg(self.data()).arg("--log").arg(&log);
        command.arg("--options").arg(format!("-p {port}"));
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let log = fs::read(&log).unwrap_or_default();
        let new = String::from_utf8_lossy(log.get(already_said..).unwrap_or_default()).into_owned();
        Err(format!("{} {new}", said(&output)))
    }

    /// Stops the server and waits for its end. A server that is stopped already is left as it is.
    ///
    /// # Panics
    /// When it does not stop.
    pub(crate) fn stop(&self, how: Stop) {
        let Some(running) = processes::running(&self.data()) else { return };
        // One that is paused can't end.
        processes::signal_all(running.pid, Signal::CONT);
        let mut command = program("pg_ctl");
        command.args(["stop", "--wait", "--timeout", &PATIENCE.as_secs().to_string()]);
        command.args(["--mode", how.as_str()]).arg("--pgdata").arg(self.data());
        let output = command.output().unwrap_or_else(|error| panic!("pg_ctl cannot be started: {error}"));
        let is_gone = || processes::running(&self.data()).is_none();
        assert!(output.status.success() || is_gone(), "the server does not stop: {}", said(&output));
    }

    /// The port of the server, if it is there and answers. Waits for one that is just starting or ending.
    pub(crate) fn answering(&self) -> Option<u16> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let running = processes::running(&self.data())?;
            if Client::connect(&url(running.port), NoTls).is_ok() {
                return Some(running.port);
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Removes the folder of a server that was killed or that does not answer, and ends what is left of it.
    ///
    /// # Panics
    /// When the folder cannot be removed.
    pub(crate) fn remove(&self) {
        if let Some(running) = processes::running(&self.data()) {
            processes::signal_all(running.pid, Signal::KILL);
        }
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = fs::remove_dir_all(&self.folder) {
            // Processes of a server that was killed write until they notice.
            if error.kind() == ErrorKind::NotFound {
                return;
            }
            let may_pass = error.kind() == ErrorKind::DirectoryNotEmpty && Instant::now() < deadline;
            assert!(may_pass, "{}: {error}", self.folder.display());
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The address of the server on a port, as its superuser.
pub(crate) fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

/// A number that no other process chooses at the same moment, most likely.
pub(crate) fn chance() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn free_port() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first_outgoing = range.split_whitespace().next().and_then(|first| first.parse().ok());
    let end = first_outgoing.filter(|first| *first > FIRST_PORT).unwrap_or(u16::MAX);
    let ports = u64::from(end - FIRST_PORT);
    loop {
        let offset = u16::try_from(chance() % ports).unwrap_or_default();
        let port = FIRST_PORT + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
