//! `serve` under a service manager: its notifications, its unit file, and its cost when idle.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use windlass_tests::binary::repository;
use windlass_tests::wait::PATIENCE;
use windlass_tests::{Engine, Sandbox, eventually};

use crate::support::assert_says;

/// A service manager that listens.
pub(crate) struct Manager {
    socket: UnixDatagram,
    pub(crate) heard: Vec<String>,
}

impl Manager {
    pub(crate) fn in_sandbox(sandbox: &Sandbox) -> Manager {
        let socket = UnixDatagram::bind(sandbox.path("notify")).expect("a socket can be bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Manager { socket, heard: Vec::new() }
    }

    /// Starts a service with this manager and a watchdog.
    fn start(&self, sandbox: &Sandbox, watchdog: Duration) -> Engine {
        self.start_command(sandbox, sandbox.command(&["serve"]), watchdog)
    }

    /// The same for a prepared command.
    pub(crate) fn start_command(
        &self,
        sandbox: &Sandbox,
        mut command: Command,
        watchdog: Duration,
    ) -> Engine {
        command.env("NOTIFY_SOCKET", sandbox.path("notify"));
        command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        sandbox.start(command)
    }

    /// Receives messages until one has this line.
    pub(crate) fn hear(&mut self, line: &str) -> String {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "waited in vain for {line:?}; heard {:?}", self.heard.last());
            let mut buffer = [0; 4096];
            let length = self.socket.recv(&mut buffer).unwrap_or_else(|error| {
                panic!("waited in vain for {line:?}: {error}; heard {:?}", self.heard)
            });
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            self.heard.push(message.clone());
            if message.lines().any(|heard| heard.starts_with(line)) {
                return message;
            }
        }
    }
}

#[test]
fn the_manager_is_notified_of_ready_alive_reloading_and_stopping() {
    let sandbox = Sandbox::new();
    let mut manager = Manager::in_sandbox(&sandbox);
    let mut service = manager.start(&sandbox, Duration::from_millis(600));
    let ready = manager.hear("READY=1");
    assert!(ready.contains("STATUS="), "{ready}");
    assert!(manager.heard.len() == 1, "nothing comes before it is ready: {:?}", manager.heard);
    let began = Instant::now();
    for _sign in 0..6 {
        manager.hear("WATCHDOG=1");
    }
    let least = Duration::from_millis(600) / 3 * 3;
    assert!(began.elapsed() >= least, "watchdog signals come in intervals, not all at once");
    service.signal(Signal::HUP);
    let reloading = manager.hear("RELOADING=1");
    let stamp = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).expect("a time");
    assert!(stamp.parse::<u64>().is_ok_and(|microseconds| microseconds > 0), "{reloading}");
    manager.hear("READY=1");
    service.signal(Signal::TERM);
    manager.hear("STOPPING=1");
    assert_says(&service.wait(), 0, &[]);
}

#[test]
fn a_job_does_not_inherit_the_manager() {
    let sandbox = Sandbox::new();
    let mut manager = Manager::in_sandbox(&sandbox);
    let _service = manager.start(&sandbox, Duration::from_secs(60));
    manager.hear("READY=1");
    let file = sandbox.write("env.toml", "[jobs.only]\nrun = 'env | grep -cE \"NOTIFY|WATCHDOG\" || true'\n");
    let run = sandbox.run(&["submit", &file]).exited(0).stdout;
    sandbox.run(&["watch", run.trim()]).exited(0);
    let found = sandbox.run(&["logs", run.trim()]).exited(0).stdout;
    assert!(found.trim_end().ends_with('0'), "{found}");
}

#[test]
fn an_idle_service_uses_almost_no_processor_time() {
    /// An idle service may use one part in this many of a processor.
    const SHARE: u32 = 20;
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    let mut service = sandbox.spawn(&["serve", "--workflows", "flows"]);
    eventually("its greeting", || service.stderr_so_far().contains(" serves ").then_some(()));
    let (before, began) = (processor_time(&service), Instant::now());
    // The processor time during this wait is measured. The bound is generous: the promise is below one in a hundred.
    std::thread::sleep(Duration::from_secs(3));
    let used = processor_time(&service) - before;
    assert!(used < began.elapsed() / SHARE, "{used:?} of {:?}", began.elapsed());
    assert!(service.is_running());
}

/// The processor time so far.
fn processor_time(service: &Engine) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", service.pid().as_raw_nonzero())).expect("it runs");
    let after_name = stat.rsplit_once(") ").expect("a name in parentheses").1;
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|index| fields[*index].parse::<u64>().expect("a number")).sum();
    // Linux counts a hundred ticks a second.
    Duration::from_millis(ticks * 10)
}

#[test]
fn the_unit_file_is_sound() {
    let unit = repository().join("contrib/windlass.service");
    let text = fs::read_to_string(&unit).expect("there is a unit file");
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        lines.next_back().unwrap_or_else(|| panic!("`{key}` is missing")).to_owned()
    };
    assert_eq!(value("Type"), "notify");
    assert_eq!(value("ExecReload"), "/bin/kill -HUP $MAINPID");
    assert_eq!(value("KillMode"), "mixed");
    assert_eq!(value("Restart"), "on-failure");
    assert!(value("ExecStart").starts_with("/usr/bin/windlass serve"));
    let seconds = |key: &str| -> u64 { value(key).parse().expect("seconds") };
    assert!(seconds("WatchdogSec") > 30, "longer than a lease: a short outage is no hang");
    assert!(seconds("TimeoutStopSec") >= 30 + 15, "the grace, and time to put things in order");
    verify_with_systemd(&unit);
}

/// If the machine has the check of systemd, the check finds no error.
fn verify_with_systemd(unit: &std::path::Path) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("windlass.service");
    // The program may be missing on the machine of the test.
    let text = fs::read_to_string(unit).expect("there is a unit file");
    fs::write(&copy, text.replace("/usr/bin/windlass", "/bin/true")).expect("a folder can be written to");
    match Command::new("systemd-analyze").arg("verify").arg(&copy).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let about: Vec<&str> = said.lines().filter(|line| line.contains("windlass.service")).collect();
            assert!(about.is_empty(), "{said}");
        }
        Err(missing) => assert_eq!(missing.kind(), std::io::ErrorKind::NotFound, "{missing}"),
    }
}
