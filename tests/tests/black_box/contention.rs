//! Several processes on one database: no attempt has two owners, and no process reports a lock.

use rustix::process::Signal;
use windlass_tests::graphs::Graph;
use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Outcome, Sandbox, audit, claims, eventually, journal};

use crate::support::{assert_none, probes, submit};

const JOBS: usize = 150;

fn assert_calm(outcome: &Outcome) {
    let said = outcome.stderr.to_lowercase();
    assert!(!said.contains("locked") && !said.contains("busy"), "{}", outcome.stderr);
    assert!(!said.contains("panicked"), "{}", outcome.stderr);
}

#[test]
fn two_workers_and_a_run_share_a_database() {
    let mut rng = round_rng(seed("two_workers_and_a_run_share_a_database"), 0);
    let sandbox = Sandbox::new();
    // Wide graphs without edges: all workers can claim all jobs at once.
    let work: Vec<u64> = (0..JOBS).map(|_| rng.u64(0..10)).collect();
    let wide = Graph::random(&mut rng, JOBS, 0);
    submit(&sandbox, &probes(&sandbox, "first", &wide, |index| work[index]));
    audit::install(sandbox.database());

    let mut workers = [0, 1].map(|_| sandbox.spawn(&["worker", "--threads", "4"]));
    eventually("both workers' registration", || {
        let workers: i64 = sandbox.tables().value("SELECT count(*) FROM workers WHERE status = 'ALIVE'");
        (workers == 2).then_some(())
    });
    let deep = Graph::random(&mut rng, JOBS, JOBS * 2);
    let own_journal = sandbox.write("second.json", {
        let file = probes(&sandbox, "second", &deep, |index| work[index]);
        std::fs::read_to_string(file).expect("the file was just written").replace("job_", "second_")
    });
    let run = sandbox.run(&["run", &own_journal, "--threads", "4"]).exited(0);
    eventually("the end of both runs", || {
        let ended: i64 = sandbox.tables().value("SELECT count(*) FROM runs WHERE status = 'SUCCESSFUL'");
        (ended == 2).then_some(())
    });
    assert_calm(&run);
    for worker in &mut workers {
        worker.signal(Signal::TERM);
        assert_calm(&worker.wait());
    }
    assert_shared(&sandbox);
}

fn assert_shared(sandbox: &Sandbox) {
    let tables = sandbox.tables();
    let (jobs, changes) = (tables.jobs(), audit::changes(&tables));
    assert_eq!(jobs.len(), JOBS * 2);
    assert_none("lost", &claims::lost(&jobs, &changes));
    assert_none("owners", &claims::owner_problems(&changes));
    assert_none("journal", &journal::problems(&journal::parse(&sandbox.read("journal")), &jobs));
    let owners: i64 =
        tables.value("SELECT count(DISTINCT worker_id) FROM test_audit WHERE after = 'RUNNING'");
    assert!(owners >= 2, "one process did everything: the test proves nothing");
    assert!(jobs.iter().all(|job| job.attempt == 1), "a job was claimed again without need");
    assert_eq!(sandbox.leftovers(), []);
}
