//! Promise: a worker that lost its lease can neither record a result nor keep its jobs' processes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use windlass_tests::{Engine, Sandbox, audit, claims, eventually};

use crate::support::{assert_none, submit};

const LEASE: &str = "1s";
/// Where it counts how long something takes: a sixth of it is enough for a loaded machine.
const LONG_LEASE: Duration = Duration::from_secs(6);

fn worker(sandbox: &Sandbox) -> Engine {
    worker_with(sandbox, LEASE)
}

fn worker_with(sandbox: &Sandbox, lease: &str) -> Engine {
    let mut command = sandbox.command(&["worker", "--threads", "2"]);
    command.env("WINDLASS_LEASE", lease);
    sandbox.start(command)
}

#[test]
fn a_worker_stopped_past_its_lease_is_fenced() {
    let sandbox = Sandbox::new();
    // The first attempt would run for ever. The second ends when the file `go` exists.
    let file = sandbox.write(
        "fenced.toml",
        "name = \"fenced\"\n[jobs.waits]\noutput = \"text\"\nrun = '''\n\
         echo $WINDLASS_ATTEMPT >> started\n\
         if [ $WINDLASS_ATTEMPT = 1 ]; then sleep 600; fi\n\
         until [ -e go ]; do sleep 0.05; done\n\
         echo by attempt $WINDLASS_ATTEMPT\n'''\n",
    );
    let run = submit(&sandbox, &file);
    audit::install(sandbox.database());

    let mut stopped = worker(&sandbox);
    let attempts = || sandbox.read("started").lines().count();
    eventually("the first attempt", || (attempts() == 1).then_some(()));
    stopped.signal(Signal::STOP);
    let mut other = worker(&sandbox);
    eventually("the second attempt, by the other worker", || (attempts() == 2).then_some(()));

    stopped.signal(Signal::CONT);
    eventually("the end of the first attempt's processes", || {
        let of_first =
            sandbox.leftovers().into_iter().filter(|process| process.attempt.as_deref() == Some("1"));
        (of_first.count() == 0).then_some(())
    });
    eventually("the fenced worker's new registration", || {
        let alive: i64 = sandbox.tables().value("SELECT count(*) FROM workers WHERE status = 'ALIVE'");
        let all: i64 = sandbox.tables().value("SELECT count(*) FROM workers");
        (alive == 2 && all == 3).then_some(())
    });
    sandbox.write("go", "");
    eventually("the run's end", || (sandbox.tables().run_status(run) == "SUCCESSFUL").then_some(()));

    for engine in [&mut stopped, &mut other] {
        assert!(engine.is_running(), "a worker ended by itself: {}", engine.stderr_so_far());
        engine.signal(Signal::TERM);
        let said = engine.wait().stderr;
        assert!(!said.contains("panicked"), "{said}");
    }
    assert_fenced(&sandbox, run);
}

fn assert_fenced(sandbox: &Sandbox, run: i64) {
    let tables = sandbox.tables();
    let job = &tables.jobs_of(run)["waits"];
    assert_eq!(job.output.as_deref(), Some("\"by attempt 2\""));
    assert_eq!((job.attempt, job.interruptions), (2, 1));
    assert_none("owners", &claims::owner_problems(&audit::changes(&tables)));
    assert_none("bounds", &claims::bound_problems(&tables.jobs(), &tables.attempts()));
    assert_eq!(sandbox.leftovers(), []);
}

/// A job whose first attempt writes lines without end, and so does a process of it outside the process group. The
/// second attempt ends at once.
const WRITES: &str = "name = \"writes\"\n[jobs.writes]\nrun = '''\n\
    echo $WINDLASS_ATTEMPT >> started\n\
    if [ $WINDLASS_ATTEMPT = 1 ]; then\n\
    setsid sh -c 'while :; do echo escaped >> escaped; sleep 0.01; done' &\n\
    while :; do echo line >> lines; sleep 0.01; done\n\
    fi\n'''\n";

/// Another host cannot end its processes.
#[test]
fn the_processes_of_a_stopped_worker_are_dead_before_its_lease_ends() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("writes.toml", WRITES));
    let mut stopped = worker_with(&sandbox, "6s");
    let of_first = || sandbox.leftovers().iter().filter(|one| one.attempt.as_deref() == Some("1")).count();
    let both_write = || !sandbox.read("lines").is_empty() && !sandbox.read("escaped").is_empty();
    eventually("the first attempt", || both_write().then_some(()));

    stopped.signal(Signal::STOP);
    let stopped_at = Instant::now();
    eventually("the end of its processes", || {
        assert!(stopped_at.elapsed() < LONG_LEASE, "they outlived the lease");
        (of_first() == 0).then_some(())
    });
    assert!(stopped_at.elapsed() > LONG_LEASE / 2, "{:?}: the lease was confirmed", stopped_at.elapsed());
    assert_eq!(sandbox.tables().jobs_of(run)["writes"].status, "RUNNING", "nobody could tell");

    stopped.signal(Signal::CONT);
    eventually("the run's end", || (sandbox.tables().run_status(run) == "SUCCESSFUL").then_some(()));
    assert_eq!(sandbox.read("started"), "1\n2\n");
    let tables = sandbox.tables();
    let job = &tables.jobs_of(run)["writes"];
    assert_eq!((job.attempt, job.failures, job.interruptions), (2, 0, 1), "it was no failure of the job");
    assert_eq!(tables.attempts()[0].outcome, "interrupted");
    let workers: i64 = tables.value("SELECT count(*) FROM workers");
    assert_eq!(workers, 1, "nobody else was there to fence it");
    stopped.signal(Signal::TERM);
    let said = stopped.wait().stderr;
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(sandbox.leftovers(), []);
}
