//! Ending attempts: several in one transaction, and what each leaves behind.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, noop};
use windlass_engine::store::{ClaimedJob, Finish, LogLine, LogStream, NewJob};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};

#[test]
fn each_of_several_ends_in_one_transaction_keeps_its_own() {
    let bench = Bench::new();
    let (one, two) = (bench.worker(), bench.worker());
    let run_id = bench.submit(graph(vec![vec![]; 4]));
    bench.store.enqueue(vec![NewJob { max_attempts: 1, ..noop() }; 4]).unwrap();
    let claimed = [(one, bench.claim(one, 3)), (two, bench.claim(two, 5))];
    let mut ends: Vec<(i64, ClaimedJob, Outcome)> = Vec::new();
    for (worker, jobs) in claimed {
        for job in jobs {
            let outcome = match job.id % 3 {
                0 => Outcome::Failed { error: format!("error of {}", job.id), repeat: Repeat::Pointless },
                1 => Outcome::Successful { output: None },
                _ => Outcome::Successful { output: Some(format!("{{\"job\": {}}}", job.id)) },
            };
            ends.push((worker, job, outcome));
        }
    }
    assert_eq!(ends.len(), 8);
    ends.reverse();
    let finishes = ends
        .iter()
        .map(|(worker, job, outcome)| Finish {
            logs: vec![LogLine {
                job_id: job.id,
                attempt: 1,
                line: 1,
                at: 1,
                stream: LogStream::Stdout,
                text: format!("line of {}", job.id),
            }],
            ..support::finish(*worker, job, outcome.clone())
        })
        .collect();
    assert_eq!(bench.store.finish_and_claim(finishes, None).unwrap().0.conflicts, [0_i64; 0]);
    for (worker, job, outcome) in ends {
        let found = bench.store.job(job.id).unwrap();
        let (status, output, error) = match outcome {
            Outcome::Successful { output } => (JobStatus::Successful, output, None),
            _ => (JobStatus::Failed, None, Some(format!("error of {}", job.id))),
        };
        assert_eq!((found.status, found.output, found.last_error.clone()), (status, output, error.clone()));
        assert_eq!(found.worker_id, Some(worker));
        let attempts = bench.store.attempts(job.id).unwrap();
        let attempts: Vec<_> =
            attempts.into_iter().map(|attempt| (attempt.worker_id, attempt.error)).collect();
        assert_eq!(attempts, error.map(|error| (Some(worker), Some(error))).into_iter().collect::<Vec<_>>());
        let lines = bench.store.last_logs(job.id, 1, 10).unwrap();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, [format!("line of {}", job.id)]);
    }
    assert_eq!(bench.store.run(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}
