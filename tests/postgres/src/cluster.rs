//! A cluster: the data folder of one server, and starting and stopping the server.

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

/// The settings of all test servers. A test can replace them.
///
/// Nothing is flushed to the disk. That loses data only in a power cut, not when the server is killed.
const SETTINGS: [(&str, &str); 6] = [
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "400"),
    ("superuser_reserved_connections", "5"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("log_line_prefix", "%m [%p] %u "),
];

/// How many ports are tried if another process takes the chosen one.
const PORTS_TRIED_MAX: u32 = 10;

/// The lowest port of a server. The highest is below the ports of outgoing connections. Otherwise a client that tries to
/// connect while the server is down might get the server's port as its own, and connect to itself.
const FIRST_PORT: u16 = 10_000;

/// How long a server may take to start or to stop.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// Ends the connections and then the server.
    Fast,
    /// Like a crash. The next start recovers the data.
    Immediate,
}

impl StopMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            StopMode::Fast => "fast",
            StopMode::Immediate => "immediate",
        }
    }
}

/// A folder with the data, the socket and the log of one server.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    /// The cluster of a folder, which need not exist yet.
    pub(crate) fn in_folder(folder: &Path) -> Cluster {
        Cluster { folder: folder.to_owned() }
    }

    /// Makes the folder with an empty cluster.
    ///
    /// # Panics
    /// When that fails, with PostgreSQL's message.
    pub(crate) fn create(&self, settings: &[(&str, &str)]) {
        make_folder_for_server(&self.folder);
        let mut command = program("initdb");
        command.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        command.arg("--pgdata").arg(self.data());
        let output = command.output().unwrap_or_else(|error| panic!("initdb cannot be started: {error}"));
        assert!(output.status.success(), "initdb failed: {}", text_of(&output));
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
        panic!("{PORTS_TRIED_MAX} ports were tried, and each was taken by another process at the same moment")
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// The messages of the server.
    pub(crate) fn try_start(&self, port: u16) -> Result<(), String> {
        let log = self.log();
        let already_said = fs::read(&log).map_or(0, |text| text.len());
        let mut command = program("pg_ctl");
        command.args(["start", "--wait", "--timeout", &TIMEOUT.as_secs().to_string()]);
        command.arg("--pgdata").arg(self.data()).arg("--log").arg(&log);
        command.arg("--options").arg(format!("-p {port}"));
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let log = fs::read(&log).unwrap_or_default();
        let new = String::from_utf8_lossy(log.get(already_said..).unwrap_or_default()).into_owned();
        Err(format!("{} {new}", text_of(&output)))
    }

    /// Stops the server and waits for its end. A server that is stopped already is left as it is.
    ///
    /// # Panics
    /// When it does not stop.
    pub(crate) fn stop(&self, how: StopMode) {
        let Some(running) = processes::running(&self.data()) else { return };
        // A paused server can't end.
        processes::signal_all(running.pid, Signal::CONT);
        let mut command = program("pg_ctl");
        command.args(["stop", "--wait", "--timeout", &TIMEOUT.as_secs().to_string()]);
        command.args(["--mode", how.as_str()]).arg("--pgdata").arg(self.data());
        let output = command.output().unwrap_or_else(|error| panic!("pg_ctl cannot be started: {error}"));
        let is_gone = || processes::running(&self.data()).is_none();
        assert!(output.status.success() || is_gone(), "the server does not stop: {}", text_of(&output));
    }

    /// The port of the server, if it runs and answers. Waits for a server that is starting or ending.
    pub(crate) fn answering(&self) -> Option<u16> {
        let deadline = Instant::now() + TIMEOUT;
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

    /// Kills the processes of a server that does not answer, and removes its folder.
    ///
    /// # Panics
    /// When the folder cannot be removed.
    pub(crate) fn remove(&self) {
        if let Some(running) = processes::running(&self.data()) {
            processes::signal_all(running.pid, Signal::KILL);
        }
        let deadline = Instant::now() + TIMEOUT;
        while let Err(error) = fs::remove_dir_all(&self.folder) {
            // Processes of a killed server write until they notice its end.
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

fn text_of(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

/// A random number.
pub(crate) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn free_port() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first_outgoing = range.split_whitespace().next().and_then(|first| first.parse().ok());
    let end = first_outgoing.filter(|first| *first > FIRST_PORT).unwrap_or(u16::MAX);
    let ports = u64::from(end - FIRST_PORT);
    loop {
        let offset = u16::try_from(random_number() % ports).unwrap_or_default();
        let port = FIRST_PORT + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
