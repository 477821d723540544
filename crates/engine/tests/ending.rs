//! Finishing several attempts in one transaction, and what each of them leaves in the tables.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, noop};
use windlass_engine::store::{ClaimedJob, Finish, LogLine, LogStream, NewJob};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};

#[test]
fn attempts_that_finish_in_one_transaction_keep_their_own_results() {
    let bench = Bench::new();
    let (one, two) = (bench.worker(), bench.worker());
    let run_id = bench.submit(graph(vec![vec![]; 4]));
    bench.store.jobs().enqueue(vec![NewJob { max_attempts: 1, ..noop() }; 4]).unwrap();
    let claimed = [(one, bench.claim(one, 3)), (two, bench.claim(two, 5))];
    let ends: Vec<(i64, ClaimedJob)> = claimed
        .into_iter()
        .flat_map(|(worker, jobs)| jobs.into_iter().map(move |job| (worker, job)))
        .rev()
        .collect();
    assert_eq!(ends.len(), 8);
    let error = |id: i64| (id % 3 == 0).then(|| format!("error of {id}"));
    let output = |id: i64| (id % 3 == 1).then(|| format!("{{\"job\": {id}}}"));
    let finishes = ends.iter().map(|(worker, job)| {
        let outcome = match error(job.id) {
            Some(error) => Outcome::Failed { error, repeat: Repeat::Pointless },
            None => Outcome::Successful { output: output(job.id) },
        };
        let (attempt, line, at, stream) = (1, 1, 1, LogStream::Stdout);
        let line = LogLine { job_id: job.id, attempt, line, at, stream, text: format!("line of {}", job.id) };
        Finish { logs: vec![line], ..support::finish(*worker, job, outcome) }
    });
    assert_eq!(
        bench.store.for_workers().finish_and_claim(finishes.collect(), None).unwrap().0.conflicts,
        [0_i64; 0]
    );
    for (worker, job) in ends {
        let (found, error) = (bench.store.jobs().get(job.id).unwrap(), error(job.id));
        let status = if error.is_some() { JobStatus::Failed } else { JobStatus::Successful };
        assert_eq!((found.status, found.output, found.last_error), (status, output(job.id), error.clone()));
        assert_eq!(found.worker_id, Some(worker));
        let attempts = bench.store.jobs().attempts(job.id).unwrap();
        let attempts: Vec<_> =
            attempts.into_iter().map(|attempt| (attempt.worker_id, attempt.error)).collect();
        assert_eq!(attempts, error.map(|error| (Some(worker), Some(error))).into_iter().collect::<Vec<_>>());
        let lines = bench.store.logs().last(job.id, 1, 10).unwrap();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, [format!("line of {}", job.id)]);
    }
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}

/// The message of a skipped job names the job that it waited for.
#[test]
fn a_skipped_job_says_why() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![], vec![0], vec![2], vec![1]]));
    let jobs = bench.claim(worker, 1);
    bench.finish(worker, &jobs[0], support::failure());
    bench.store.jobs().cancel(bench.store.jobs().of_run(run_id).unwrap()[1].id).unwrap();
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    let reasons: Vec<_> = jobs[2..].iter().map(|job| (job.status, job.last_error.as_deref())).collect();
    let skipped = |reason| (JobStatus::Skipped, Some(reason));
    let (by_failure, by_cancel) = ("skipped: `j0` is FAILED", "skipped: `j1` is CANCELLED");
    assert_eq!(reasons, [skipped(by_failure), skipped(by_failure), skipped(by_cancel)]);
    bench.assert_sound();
}

/// No attempt and no line of output is written, even in the same transaction as valid results.
#[test]
fn a_discarded_result_writes_nothing() {
    let bench = Bench::new();
    let (owner, other) = (bench.worker(), bench.worker());
    let ids = bench.store.jobs().enqueue(vec![noop(); 2]).unwrap();
    let jobs = bench.claim(owner, 2);
    let finish = |worker, job: &ClaimedJob| {
        let (attempt, line, at, stream, text) = (1, 1, 1, LogStream::Stdout, format!("of worker {worker}"));
        let line = LogLine { job_id: job.id, attempt, line, at, stream, text };
        Finish { logs: vec![line], ..support::finish(worker, job, support::failure()) }
    };
    let finishes = vec![finish(other, &jobs[0]), finish(owner, &jobs[1])];
    let finished = bench.store.for_workers().finish_and_claim(finishes, None).unwrap().0;
    assert_eq!(finished.conflicts, [ids[0]]);
    let left = |id| {
        (bench.store.jobs().attempts(id).unwrap().len(), bench.store.logs().last(id, 1, 10).unwrap().len())
    };
    assert_eq!([left(ids[0]), left(ids[1])], [(0, 0), (1, 1)]);
    assert_eq!(bench.store.jobs().get(ids[0]).unwrap().status, JobStatus::Running);
}

/// `allow_failure` does not cover a cancellation.
#[test]
fn a_cancelled_job_fails_its_run_in_spite_of_allow_failure() {
    for runs in [false, true] {
        let bench = Bench::new();
        let worker = bench.worker();
        let mut workflow = graph(vec![vec![], vec![0]]);
        workflow.jobs[0].allow_failure = true;
        let run_id = bench.submit(workflow);
        let jobs = if runs { bench.claim(worker, 1) } else { Vec::new() };
        bench.store.jobs().cancel(bench.store.jobs().of_run(run_id).unwrap()[0].id).unwrap();
        for job in &jobs {
            bench.finish(worker, job, Outcome::Cancelled { error: "stopped".to_owned() });
        }
        let states: Vec<_> =
            bench.store.jobs().of_run(run_id).unwrap().into_iter().map(|job| job.status).collect();
        assert_eq!(states, [JobStatus::Cancelled, JobStatus::Skipped], "{runs}");
        assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed, "{runs}");
        bench.assert_sound();
    }
}
