//! Every operation that changes the tables, with the state that it finds. If it is requested again after a failure,
//! the result must be the same.

use std::cell::OnceCell;

use windlass_engine::store::{
    Backfill, CopyError, DeadLetterCursor, DeadLetters, Finish, NewRun, NewSignal, NewWorker, NextDefinition,
    Order, QueueLimits, RetrySelection, Scope, Setting, Verdict,
};
use windlass_engine::transition::{RetryState, after_attempt};
use windlass_engine::{Error, JobStatus, Result, Store, WorkerStatus};
use windlass_workflow::model::{OnFull, Overlap, Rule, Schedule as Definition};

use crate::states::{self, HOUR_MS, apply, fire_all, keyed, schedule, workflow};
use crate::support::contents::contents;
use crate::support::{Bench, failure, new_worker, noop, older_than, request, success};

/// An operation and the state that it finds.
pub(crate) struct Operation {
    /// The number of transactions that it makes at least.
    pub(crate) commits_min: usize,
    pub(crate) prepare: fn(&TestDatabases),
    pub(crate) run: fn(&Store, &TestDatabases) -> Result<()>,
    pub(crate) leaves: Leaves,
}

/// What is left when the operation is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Tables that break no invariant, and work that other processes can finish.
    WorkThatEnds,
    /// Tables that break no invariant, and more work than a test has time for.
    MuchWork,
    /// A row that breaks an invariant.
    InvalidRow,
}

/// The database that the operation changes, and another one if the operation needs it.
pub(crate) struct TestDatabases {
    pub(crate) bench: Bench,
    other: OnceCell<Bench>,
}

impl TestDatabases {
    pub(crate) fn empty() -> TestDatabases {
        TestDatabases { bench: Bench::new(), other: OnceCell::new() }
    }

    pub(crate) fn new(operation: &Operation) -> TestDatabases {
        let databases = TestDatabases::empty();
        (operation.prepare)(&databases);
        databases
    }

    fn other(&self) -> &Bench {
        self.other.get_or_init(Bench::new)
    }

    /// The contents of both databases.
    pub(crate) fn contents(&self) -> Vec<String> {
        let databases = [("this", Some(&self.bench)), ("other", self.other.get())];
        let lines = |(name, bench): (&str, Option<&Bench>)| -> Vec<String> {
            let lines = bench.map(|bench| contents(&bench.database)).unwrap_or_default();
            lines.into_iter().map(|line| format!("{name} {line}")).collect()
        };
        databases.into_iter().flat_map(lines).collect()
    }

    /// The first schedule.
    fn schedule_id(&self) -> i64 {
        self.bench.store.schedules().list().unwrap()[0].id
    }
}

fn operation(
    commits_min: usize,
    prepare: fn(&TestDatabases),
    run: fn(&Store, &TestDatabases) -> Result<()>,
) -> Operation {
    Operation { commits_min, prepare, run, leaves: Leaves::WorkThatEnds }
}

pub(crate) fn submit() -> Operation {
    operation(
        1,
        |_stage| (),
        |store, _stage| {
            let workflow = workflow("dense", (0..30).map(|job| (0..job).collect()).collect());
            let params = Default::default();
            store
                .runs()
                .submit(NewRun { workflow, params, dir: None, run_key: None, occasion: None })
                .map(drop)
        },
    )
}

pub(crate) fn enqueue() -> Operation {
    operation(
        1,
        |_stage| (),
        |store, _stage| {
            store.jobs().enqueue([vec![noop(); 2_100], vec![keyed("k", OnFull::Wait); 2]].concat()).map(drop)
        },
    )
}

pub(crate) fn enqueue_one() -> Operation {
    operation(1, |_databases| (), |store, _stage| store.jobs().enqueue(vec![noop()]).map(drop))
}

pub(crate) fn apply_with_schedules() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let schedules = ["changed", "removed"].map(|name| schedule(name, Overlap::QueueAll));
        apply(&databases.bench.store, "report", 1, schedules.into()).unwrap();
        databases.bench.clock.advance_ms(3 * HOUR_MS);
    };
    operation(1, prepare, |store, _stage| {
        let rule = Rule::EveryMs(2 * HOUR_MS);
        let changed = Definition { rule, ..schedule("changed", Overlap::QueueAll) };
        apply(store, "report", 2, vec![changed, schedule("added", Overlap::Skip)])
    })
}

/// What a service does with its folder and with itself when it starts.
pub(crate) fn start_a_service() -> Operation {
    let prepare = |databases: &TestDatabases| {
        apply(&databases.bench.store, "gone", 1, vec![schedule("hourly", Overlap::Skip)]).unwrap();
        apply(&databases.bench.store, "changed", 1, vec![schedule("hourly", Overlap::Skip)]).unwrap();
    };
    operation(6, prepare, |store, _stage| {
        apply(store, "new", 1, vec![schedule("hourly", Overlap::Allow)])?;
        apply(store, "changed", 2, vec![schedule("other", Overlap::Allow)])?;
        apply(store, "plain", 3, vec![])?;
        if store.registrations().get("gone")?.is_some() {
            store.registrations().remove("gone")?;
        }
        // A worker of the same process, because the test's process does not die.
        let known = store.workers().live()?.pop().map(|worker| worker.id);
        let worker_id = match known {
            Some(worker_id) => worker_id,
            None => store.for_workers().register(NewWorker { threads: 4, ..new_worker() })?,
        };
        store.for_workers().claim(request(worker_id, Scope::Everything, 4)).map(drop)
    })
}

pub(crate) fn fire() -> Operation {
    operation(6, |databases| states::due_schedules(&databases.bench), |store, _stage| fire_all(store))
}

pub(crate) fn backfill() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let rule = Rule::EveryMs(1_000);
        let definition = Definition { rule, end_ms: Some(0), ..schedule("often", Overlap::Skip) };
        apply(&databases.bench.store, "report", 1, vec![definition]).unwrap();
    };
    let operation = operation(3, prepare, |store, databases| {
        let schedule_id = databases.schedule_id();
        let backfill = Backfill { schedule_id, from_ms: -2_100_000, to_ms: -1_000, at_once: 1 };
        store.schedules().backfill(backfill).map(drop)
    });
    Operation { leaves: Leaves::MuchWork, ..operation }
}

pub(crate) fn pause_and_resume() -> Operation {
    operation(
        4,
        |databases| states::due_schedules(&databases.bench),
        |store, databases| {
            store.schedules().pause(databases.schedule_id())?;
            store.registrations().pause("report")?;
            store.registrations().resume("report")?;
            store.schedules().resume(databases.schedule_id()).map(drop)
        },
    )
}

pub(crate) fn trigger() -> Operation {
    operation(
        1,
        |databases| states::due_schedules(&databases.bench),
        |store, databases| store.schedules().fire(databases.schedule_id()).map(drop),
    )
}

pub(crate) fn cancel_a_run() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let worker = states::pending_jobs(&databases.bench);
        assert_eq!(databases.bench.claim(worker, 2).len(), 2);
    };
    operation(1, prepare, |store, _stage| store.runs().cancel(1).map(drop))
}

pub(crate) fn cancel_a_job() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::pending_jobs(&databases.bench);
    };
    operation(1, prepare, |store, _stage| store.jobs().cancel(1).map(drop))
}

pub(crate) fn retry_failed_jobs() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| store.runs().retry(1, RetrySelection::Failed).map(drop);
    operation(1, |databases| states::failed_run(&databases.bench), run)
}

pub(crate) fn retry_from_a_job() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| {
        store.runs().retry(1, RetrySelection::From("j0".to_owned())).map(drop)
    };
    operation(1, |databases| states::failed_run(&databases.bench), run)
}

pub(crate) fn retry_with_another_definition() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| {
        // A job is new, and the settings of another one and of the run differ.
        let mut workflow = store.runs().workflow(1)?;
        let mut added = workflow.jobs[0].clone();
        added.name = "added".to_owned();
        workflow.jobs.push(added);
        workflow.jobs[0].timeout_ms = Some(5_000);
        workflow.timeout_ms = Some(60_000);
        let next = NextDefinition { workflow, file: None };
        match store.runs().retry_with(1, RetrySelection::Failed, next) {
            // It was retried before the failure.
            Ok(_) | Err(Error::Conflict { .. } | Error::Invalid { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    };
    operation(1, |databases| states::failed_run(&databases.bench), run)
}

pub(crate) fn delete_dead_letters() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::pending_jobs(&databases.bench);
        databases.bench.raw().execute(
            "UPDATE jobs SET status = 'FAILED', waits_for = NULL, finished_at = 1 WHERE run_id IS NULL",
        );
    };
    operation(1, prepare, |store, _stage| {
        let which = DeadLetters {
            statuses: vec![JobStatus::Failed],
            kind: None,
            queue: None,
            error: None,
            before_ms: i64::MAX,
        };
        store.jobs().delete_next(&which, DeadLetterCursor::default()).map(drop)
    })
}

pub(crate) fn prune() -> Operation {
    operation(
        3,
        |databases| states::many_finished_jobs(&databases.bench),
        |store, databases| {
            let old = older_than(databases.bench.clock.now_ms());
            while store.for_scheduler().prune_step(old)? != Default::default() {}
            Ok(())
        },
    )
}

fn copy(source: &Store, target: &Store) -> Result<()> {
    source.upkeep().copy_to(target).map(drop).map_err(|error| match error {
        CopyError::Source(error) | CopyError::Target(error) => error,
    })
}

pub(crate) fn copy_into_a_failing_database() -> Operation {
    operation(
        1,
        |databases| states::failed_run(databases.other()),
        |target, databases| copy(&databases.other().store, target),
    )
}

pub(crate) fn copy_from_a_failing_database() -> Operation {
    operation(
        0,
        |databases| states::failed_run(&databases.bench),
        |source, databases| copy(source, &databases.other().store),
    )
}

pub(crate) fn restore() -> Operation {
    operation(
        3,
        |databases| states::many_running_jobs(&databases.bench),
        |store, _stage| store.for_restore().finish_restore().map(drop),
    )
}

pub(crate) fn rescue() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let worker = states::pending_jobs(&databases.bench);
        assert_eq!(databases.bench.claim(worker, 100).len(), 3);
    };
    operation(1, prepare, |store, _stage| store.for_scheduler().rescue(vec![(1, 0)]).map(drop))
}

pub(crate) fn rescue_with_an_invalid_row() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| store.for_scheduler().rescue(vec![(1, 0)]).map(drop);
    let operation = operation(5, |databases| states::worker_with_an_invalid_job(&databases.bench), run);
    Operation { leaves: Leaves::InvalidRow, ..operation }
}

/// Finishes those of the first 200 jobs that the first worker executes, and claims.
fn end_and_claim(store: &Store, limit: usize) -> Result<()> {
    let worker_id = 1;
    let mut running = store.for_workers().claimed_by(worker_id)?;
    // Jobs that this call claims are left out, because it may be repeated.
    running.retain(|(job_id, _run_id, _facts)| *job_id <= 200);
    let end = |(job_id, run_id, retry_state): (i64, Option<i64>, RetryState)| {
        let transition = after_attempt(&retry_state, success(), 0.5);
        Finish {
            job_id,
            run_id,
            attempt: retry_state.attempt,
            worker_id,
            transition,
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        }
    };
    let finishes = running.into_iter().map(end).collect();
    store
        .for_workers()
        .finish_and_claim(finishes, Some(request(worker_id, Scope::Everything, limit)))
        .map(drop)
}

pub(crate) fn finish_and_claim() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let worker = states::pending_jobs(&databases.bench);
        assert_eq!(databases.bench.claim(worker, 100).len(), 3);
    };
    operation(2, prepare, |store, _stage| end_and_claim(store, 1))
}

pub(crate) fn finish_and_claim_many() -> Operation {
    let prepare = |databases: &TestDatabases| states::many_running_and_pending_jobs(&databases.bench);
    operation(2, prepare, |store, _stage| end_and_claim(store, 200))
}

pub(crate) fn expand() -> Operation {
    operation(
        1,
        |databases| states::undecided_group(&databases.bench, 3),
        |store, _stage| store.for_scheduler().decide_waiting().map(drop),
    )
}

pub(crate) fn finish_the_last_item() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::running_items(&databases.bench, 1);
    };
    operation(2, prepare, |store, _stage| end_and_claim(store, 3))
}

/// Ends the first of the first worker's attempts as a failure.
pub(crate) fn fail_an_item_fast() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::running_items(&databases.bench, 2);
    };
    operation(1, prepare, |store, _stage| {
        let worker_id = 1;
        let mut running = store.for_workers().claimed_by(worker_id)?;
        running.retain(|(_job_id, _run_id, retry_state)| retry_state.failures == 0);
        let Some((job_id, run_id, retry_state)) = running.into_iter().min_by_key(|job| job.0) else {
            return Ok(());
        };
        let transition = after_attempt(&retry_state, failure(), 0.5);
        let attempt = retry_state.attempt;
        let finish = Finish {
            job_id,
            run_id,
            attempt,
            worker_id,
            transition,
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        };
        if store.jobs().of_run(1)?.iter().any(|job| job.failures > 0) {
            return Ok(());
        }
        store.for_workers().finish_and_claim(vec![finish], None).map(drop)
    })
}

pub(crate) fn cancel_a_group() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::running_items(&databases.bench, 2);
    };
    operation(1, prepare, |store, _stage| {
        let group = store.jobs().find_by_name(1, "j0")?.map(|job| job.id);
        store.jobs().cancel(group.unwrap_or_default()).map(drop)
    })
}

pub(crate) fn cancel_a_run_with_items() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::running_items(&databases.bench, 2);
    };
    operation(1, prepare, |store, _stage| store.runs().cancel(1).map(drop))
}

pub(crate) fn retry_items() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| store.runs().retry(1, RetrySelection::Failed).map(drop);
    operation(1, |databases| states::failed_group(&databases.bench), run)
}

pub(crate) fn retry_before_a_group() -> Operation {
    let run = |store: &Store, _stage: &TestDatabases| {
        store.runs().retry(1, RetrySelection::From("j0".to_owned())).map(drop)
    };
    operation(1, |databases| states::failed_group(&databases.bench), run)
}

pub(crate) fn apply_reports() -> Operation {
    operation(
        2,
        |databases| states::many_reports(&databases.bench),
        |store, _stage| {
            while store.for_scheduler().apply_reports()? > 0 {}
            Ok(())
        },
    )
}

pub(crate) fn apply_reports_with_an_invalid_row() -> Operation {
    let prepare = |databases: &TestDatabases| states::one_invalid_report(&databases.bench);
    let operation = operation(7, prepare, |store, _stage| store.for_scheduler().apply_reports().map(drop));
    Operation { leaves: Leaves::InvalidRow, ..operation }
}

pub(crate) fn reconcile() -> Operation {
    let prepare = |databases: &TestDatabases| states::runs_with_wrong_counters(&databases.bench);
    let operation = operation(3, prepare, |store, _stage| store.for_scheduler().reconcile_step(0).map(drop));
    // The remaining runs have wrong counters until they are reconciled.
    Operation { leaves: Leaves::InvalidRow, ..operation }
}

pub(crate) fn admit() -> Operation {
    let prepare = |databases: &TestDatabases| states::keys_with_free_slots(&databases.bench);
    // A job that is cancelled for another one frees its slot in one step, and the next step gives it away.
    operation(3, prepare, |store, _stage| {
        (0..4).try_for_each(|_turn| store.for_scheduler().admit_waiting("").map(drop))
    })
}

pub(crate) fn decide() -> Operation {
    let prepare = |databases: &TestDatabases| states::undecided_jobs(&databases.bench);
    // One after the other: the children of a skipped job are decided in the next transaction.
    operation(2, prepare, |store, _stage| {
        while store.for_scheduler().decide_waiting()? > 0 {}
        Ok(())
    })
}

/// A job sleeps, one waits for an event, and one for a person. What they wait for comes.
pub(crate) fn end_waits() -> Operation {
    let prepare = |databases: &TestDatabases| states::waiting_jobs(&databases.bench);
    operation(4, prepare, |store, databases| {
        let decide = || {
            while store.for_scheduler().decide_waiting()? > 0 {}
            Ok(())
        };
        decide()?;
        let signal = NewSignal {
            name: "paid".to_owned(),
            key: None,
            payload: "1".to_owned(),
            event_id: Some("once".to_owned()),
        };
        store.events().signal(signal)?;
        while store.for_scheduler().dispatch_events()? {}
        decide()?;
        let clock = &databases.bench.clock;
        clock.advance_ms((states::WAITS_END_MS - clock.now_ms()).max(0));
        store.for_scheduler().promote_due()?;
        decide()?;
        let asked = store.jobs().find_by_name(1, "ask")?.unwrap();
        if asked.status == JobStatus::Waiting {
            let approve = Verdict::Approve { by: "ada".to_owned(), fields: Default::default() };
            store.jobs().decide_approval(asked.id, approve)?;
        }
        Ok(())
    })
}

/// Does what a scheduler does about decisions and calls.
pub(crate) fn decide_all(store: &Store) -> Result<()> {
    let scheduler = store.for_scheduler();
    while scheduler.decide_waiting()? + scheduler.stop_calls()? + scheduler.end_calls()? > 0 {}
    Ok(())
}

/// A run ends and others wait: one begins, one is skipped, and one cancels the run that has the slot of another key.
pub(crate) fn admit_runs() -> Operation {
    let prepare = |databases: &TestDatabases| states::waiting_runs(&databases.bench);
    operation(4, prepare, |store, _stage| {
        // A run that is cancelled before it began leaves its slot to the next one.
        (0..3).try_for_each(|_step| store.for_scheduler().admit_runs("").map(drop))
    })
}

/// Jobs send events, and a job of another run waits for one of them.
pub(crate) fn send_events() -> Operation {
    let prepare = |databases: &TestDatabases| states::undecided_signals(&databases.bench);
    operation(3, prepare, |store, _stage| {
        decide_all(store)?;
        while store.for_scheduler().dispatch_events()? {}
        decide_all(store)
    })
}

pub(crate) fn start_calls() -> Operation {
    // The run, and the run that its child starts.
    operation(2, |databases| states::calls(&databases.bench), |store, _stage| decide_all(store))
}

pub(crate) fn end_calls() -> Operation {
    let prepare = |databases: &TestDatabases| states::ended_calls(&databases.bench, success());
    operation(2, prepare, |store, _stage| decide_all(store))
}

pub(crate) fn stop_calls() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::running_calls(&databases.bench);
        databases.bench.store.runs().cancel(1).unwrap();
    };
    operation(2, prepare, |store, _stage| decide_all(store))
}

pub(crate) fn retry_failed_calls() -> Operation {
    let prepare = |databases: &TestDatabases| {
        states::ended_calls(&databases.bench, states::final_failure());
        decide_all(&databases.bench.store).unwrap();
    };
    operation(1, prepare, |store, _stage| match store.runs().retry(1, RetrySelection::Failed) {
        // It was retried before the failure.
        Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    })
}

pub(crate) fn promote_due_jobs() -> Operation {
    operation(
        2,
        |databases| states::many_due_jobs(&databases.bench),
        |store, databases| {
            while store
                .for_scheduler()
                .next_due()?
                .is_some_and(|at_ms| at_ms <= databases.bench.clock.now_ms())
            {
                store.for_scheduler().promote_due()?;
            }
            Ok(())
        },
    )
}

/// Changing the order to arrival resets the priorities of waiting jobs in several transactions.
pub(crate) fn limit_a_queue() -> Operation {
    let prepare = |databases: &TestDatabases| {
        let mut jobs = vec![noop(); 5_001];
        jobs.iter_mut().for_each(|job| job.priority = 7);
        databases.bench.store.jobs().enqueue(jobs).unwrap();
    };
    let operation = operation(3, prepare, |store, _stage| {
        let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
        store.queues().limit("default", limits)
    });
    Operation { leaves: Leaves::MuchWork, ..operation }
}

pub(crate) fn stop_a_worker() -> Operation {
    let prepare = |databases: &TestDatabases| {
        databases.bench.worker();
    };
    operation(2, prepare, |store, _stage| {
        store.for_workers().set_status(1, WorkerStatus::Draining)?;
        store.for_workers().set_status(1, WorkerStatus::Stopped).map(drop)
    })
}
