//! Notifications: what targets want is marked once, in the transaction that makes it happen, and delivered at least once.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, success};
use windlass_engine::store::{
    DELIVERY_ATTEMPTS_MAX, DeliveryResult, MessageDetails, NewRegistration, NewTarget, Notification,
    NotificationEvent, NotificationFilter, NotificationStatus, Prune, Pruned, RetrySelection,
};
use windlass_engine::{RunStatus, WorkerStatus};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};

use NotificationEvent::{RunCancelled, RunFailed, RunSuccessful, ScheduleLate, WorkerDead};

fn target(name: &str, events: &[NotificationEvent]) -> NewTarget {
    NewTarget { name: name.to_owned(), events: events.to_vec(), workflows: Vec::new(), tags: Vec::new() }
}

fn set(bench: &Bench, worker: i64, targets: &[NewTarget]) {
    bench.store.notifications().set_targets(worker, targets).unwrap();
}

/// All notifications, the oldest first.
fn listed(bench: &Bench) -> Vec<Notification> {
    let filter = NotificationFilter { limit: 100, ..NotificationFilter::default() };
    let mut all = bench.store.notifications().list(&filter).unwrap();
    all.reverse();
    bench.assert_sound();
    all
}

fn told(bench: &Bench) -> Vec<(String, NotificationEvent, i64)> {
    listed(bench).into_iter().map(|note| (note.target, note.event, note.subject_id)).collect()
}

/// Submits a run of one job, and ends it.
fn end_run(bench: &Bench, worker: i64, workflow: Workflow, ends_well: bool) -> i64 {
    let run_id = bench.submit(workflow);
    let job = bench.claim(worker, 1).remove(0);
    bench.clock.advance_ms(1);
    bench.finish(worker, &job, if ends_well { success() } else { failure() });
    run_id
}

fn named(name: &str, tags: &[&str]) -> Workflow {
    let mut workflow = Workflow::graph(name, [vec![]]);
    workflow.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    workflow
}

#[test]
fn a_run_is_told_to_the_targets_that_want_it() {
    let bench = Bench::new();
    let worker = bench.worker();
    end_run(&bench, worker, graph(vec![vec![]]), false);
    assert_eq!(told(&bench), [], "there is no target");
    let nightly = NewTarget {
        workflows: vec!["nightly".to_owned(), "etl-*".to_owned()],
        ..target("night", &[RunFailed])
    };
    let tagged = NewTarget { tags: vec!["prod".to_owned()], ..target("prod", &[RunFailed, RunSuccessful]) };
    set(&bench, worker, &[target("all", &[RunFailed, RunCancelled]), nightly, tagged]);
    let good = end_run(&bench, worker, named("etl-good", &["prod"]), true);
    let bad = end_run(&bench, worker, named("etl-bad", &["dev", "prod"]), false);
    let other = end_run(&bench, worker, named("other", &["dev"]), false);
    let exact = end_run(&bench, worker, named("nightly", &[]), false);
    let longer = end_run(&bench, worker, named("nightly2", &[]), false);
    let cancelled = bench.submit(named("etl-stopped", &["prod"]));
    bench.store.runs().cancel(cancelled).unwrap();
    let all = |run| ("all".to_owned(), RunFailed, run);
    let mut expected = vec![
        ("prod".to_owned(), RunSuccessful, good),
        all(bad),
        ("night".to_owned(), RunFailed, bad),
        ("prod".to_owned(), RunFailed, bad),
        all(other),
        all(exact),
        ("night".to_owned(), RunFailed, exact),
        all(longer),
        ("all".to_owned(), RunCancelled, cancelled),
    ];
    let mut found = told(&bench);
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_run_that_is_retried_and_ends_again_is_told_again() {
    let bench = Bench::new();
    let worker = bench.worker();
    set(&bench, worker, &[target("ops", &[RunFailed, RunSuccessful])]);
    let run = end_run(&bench, worker, graph(vec![vec![]]), false);
    bench.store.runs().retry(run, RetrySelection::Failed).unwrap();
    assert_eq!(told(&bench).len(), 1);
    let claimed = bench.store.notifications().claim("ops", 1_000).unwrap().unwrap();
    assert_eq!(
        bench.store.notifications().details(&claimed).unwrap(),
        MessageDetails::Run(None),
        "it goes on"
    );
    let job = bench.claim(worker, 1).remove(0);
    bench.clock.advance_ms(1);
    bench.finish(worker, &job, success());
    assert_eq!(told(&bench), [("ops".to_owned(), RunFailed, run), ("ops".to_owned(), RunSuccessful, run)]);
}

#[test]
fn a_report_of_another_program_is_told_too() {
    let bench = Bench::new();
    let worker = bench.worker();
    set(&bench, worker, &[target("ops", &[RunFailed])]);
    let run = bench.submit(graph(vec![vec![]]));
    let job = bench.claim(worker, 1).remove(0);
    let sql = format!("UPDATE jobs SET status = 'FAILED', last_error = 'by hand' WHERE id = {}", job.id);
    bench.raw().execute(&sql);
    while bench.store.for_scheduler().apply_reports().unwrap() > 0 {}
    assert_eq!(bench.store.runs().get(run).unwrap().status, RunStatus::Failed);
    assert_eq!(told(&bench), [("ops".to_owned(), RunFailed, run)]);
    let claimed = bench.store.notifications().claim("ops", 1_000).unwrap().unwrap();
    let MessageDetails::Run(Some(details)) = bench.store.notifications().details(&claimed).unwrap() else {
        panic!()
    };
    assert_eq!(details.failed_jobs.len(), 1);
}

#[test]
fn a_notification_is_delivered_with_one_id_until_its_target_takes_it() {
    let bench = Bench::new();
    let worker = bench.worker();
    set(&bench, worker, &[target("ops", &[RunFailed])]);
    end_run(&bench, worker, graph(vec![vec![]]), false);
    let notes = bench.store.notifications();
    assert_eq!(notes.claim("other", 1_000).unwrap(), None);
    let first = notes.claim("ops", 1_000).unwrap().unwrap();
    assert_eq!(notes.claim("ops", 1_000).unwrap(), None, "another service is delivering it");
    // The first service died. After its lease another one delivers the same message.
    bench.clock.advance_ms(1_000);
    let second = notes.claim("ops", 1_000).unwrap().unwrap();
    assert_eq!((second.attempt, second.message_id()), (2, first.message_id()));
    assert!(
        !notes.record(&first, &DeliveryResult::Failed("late".to_owned())).unwrap(),
        "it lost the notification"
    );
    assert!(notes.record(&second, &DeliveryResult::Failed("status 500".to_owned())).unwrap());
    let [note] = listed(&bench).try_into().unwrap();
    assert_eq!((note.status, note.last_error.as_deref()), (NotificationStatus::Pending, Some("status 500")));
    bench.clock.advance_ms(9_999);
    assert_eq!(notes.claim("ops", 1_000).unwrap(), None);
    bench.clock.advance_ms(1);
    let third = notes.claim("ops", 1_000).unwrap().unwrap();
    assert!(notes.record(&third, &DeliveryResult::Interrupted).unwrap());
    let last = notes.claim("ops", 1_000).unwrap().unwrap();
    assert_eq!(last.message_id(), first.message_id());
    assert!(notes.record(&last, &DeliveryResult::Delivered).unwrap());
    assert_eq!(notes.claim("ops", 1_000).unwrap(), None);
    assert_eq!(listed(&bench)[0].status, NotificationStatus::Delivered);
    // Deliveries that ended long ago are pruned.
    bench.clock.advance_ms(8 * 86_400_000);
    while bench.store.for_scheduler().prune_step(Prune::default()).unwrap() != Pruned::default() {}
    assert_eq!(told(&bench), []);
}

#[test]
fn a_notification_is_given_up_after_many_failures_or_a_long_wait() {
    let bench = Bench::new();
    let worker = bench.worker();
    set(&bench, worker, &[target("broken", &[RunFailed]), target("gone", &[RunFailed])]);
    end_run(&bench, worker, graph(vec![vec![]]), false);
    let notes = bench.store.notifications();
    for attempt in 1..=DELIVERY_ATTEMPTS_MAX {
        bench.clock.advance_ms(3_600_000);
        let claimed = notes.claim("broken", 1_000).unwrap().unwrap();
        assert_eq!(claimed.attempt, attempt);
        notes.record(&claimed, &DeliveryResult::Failed("status 500".to_owned())).unwrap();
    }
    let status = |name: &str| {
        let all = listed(&bench);
        let note = all.iter().find(|note| note.target == name).unwrap();
        (note.status, note.last_error.clone())
    };
    assert_eq!(status("broken"), (NotificationStatus::Failed, Some("status 500".to_owned())));
    assert_eq!(notes.give_up_old().unwrap(), 0);
    bench.clock.advance_ms(48 * 3_600_000);
    assert_eq!(notes.give_up_old().unwrap(), 1);
    assert_eq!(status("gone"), (NotificationStatus::Failed, Some("no service has this target".to_owned())));
    assert_eq!(notes.failed_since(0).unwrap(), 2);
    let summaries = notes.targets().unwrap();
    assert_eq!(summaries.iter().map(|target| target.pending).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_notification_that_was_refused_for_good_is_not_repeated() {
    let bench = Bench::new();
    let worker = bench.worker();
    set(&bench, worker, &[target("ops", &[RunFailed])]);
    end_run(&bench, worker, graph(vec![vec![]]), false);
    let notes = bench.store.notifications();
    let claimed = notes.claim("ops", 1_000).unwrap().unwrap();
    assert!(notes.record(&claimed, &DeliveryResult::Refused("status 400".to_owned())).unwrap());
    let [note] = listed(&bench).try_into().unwrap();
    assert_eq!((note.status, note.last_error.as_deref()), (NotificationStatus::Failed, Some("status 400")));
    bench.clock.advance_ms(24 * 3_600_000);
    assert_eq!(notes.claim("ops", 1_000).unwrap(), None);
}

#[test]
fn a_target_stays_as_long_as_a_service_may_have_it() {
    let bench = Bench::new();
    let (first, second) = (bench.worker(), bench.worker());
    let names = || -> Vec<String> {
        let targets = bench.store.notifications().targets().unwrap();
        targets.into_iter().filter(|target| target.is_wanted).map(|target| target.name).collect()
    };
    set(&bench, first, &[target("a", &[RunFailed]), target("b", &[RunFailed])]);
    set(&bench, second, &[target("c", &[RunFailed])]);
    assert_eq!(names(), ["a", "b", "c"], "the first service is alive and has a and b");
    set(&bench, first, &[target("a", &[RunFailed, RunSuccessful])]);
    assert_eq!(names(), ["a", "c"], "its configuration was read again");
    let run = end_run(&bench, second, graph(vec![vec![]]), true);
    assert_eq!(told(&bench), [("a".to_owned(), RunSuccessful, run)]);
    bench.store.for_workers().set_status(first, WorkerStatus::Stopped).unwrap();
    set(&bench, second, &[target("c", &[RunFailed])]);
    assert_eq!(names(), ["c"], "nobody has a any more");
}

/// Two services with the same targets leave each other's rows alone, and neither takes the targets of the other with it.
#[test]
fn a_target_goes_with_its_last_service() {
    let bench = Bench::new();
    let (first, second, third) = (bench.worker(), bench.worker(), bench.worker());
    let ops = || vec![target("ops", &[RunFailed])];
    let rows = || -> Vec<(i64, i64)> {
        let sql = "SELECT worker_id, updated_at FROM notification_targets ORDER BY worker_id";
        bench.raw().rows(sql, |row| Ok((row.get(0)?, row.get(1)?)))
    };
    set(&bench, first, &ops());
    set(&bench, second, &ops());
    let written = rows();
    assert_eq!(written.iter().map(|(owner, _at)| *owner).collect::<Vec<_>>(), [first, second]);
    bench.clock.advance_ms(60_000);
    set(&bench, first, &ops());
    set(&bench, second, &ops());
    assert_eq!(rows(), written, "nothing is written again");
    // The one that wrote last dies, and one without targets starts.
    bench.store.for_workers().set_status(second, WorkerStatus::Dead).unwrap();
    set(&bench, third, &[]);
    let run = end_run(&bench, third, graph(vec![vec![]]), false);
    assert_eq!(told(&bench), [("ops".to_owned(), RunFailed, run)], "once, and by the one that lives");
    bench.store.for_workers().set_status(first, WorkerStatus::Stopped).unwrap();
    set(&bench, third, &[]);
    assert_eq!(rows(), [], "nobody has it any more");
}

#[test]
fn what_any_service_wants_of_a_target_is_told_once() {
    let bench = Bench::new();
    let (first, second) = (bench.worker(), bench.worker());
    let narrow = NewTarget { workflows: vec!["etl".to_owned()], ..target("ops", &[RunFailed]) };
    set(&bench, first, &[narrow]);
    set(&bench, second, &[NewTarget { tags: vec!["prod".to_owned()], ..target("ops", &[RunFailed]) }]);
    let of_first = end_run(&bench, first, named("etl", &[]), false);
    let of_second = end_run(&bench, first, named("other", &["prod"]), false);
    let of_both = end_run(&bench, first, named("etl", &["prod"]), false);
    end_run(&bench, first, named("other", &[]), false);
    let ops = |run| ("ops".to_owned(), RunFailed, run);
    assert_eq!(told(&bench), [ops(of_first), ops(of_second), ops(of_both)]);
}

#[test]
fn a_worker_that_died_is_told_once() {
    let bench = Bench::new();
    let (worker, dead) = (bench.worker(), bench.worker());
    set(&bench, worker, &[target("ops", &[WorkerDead])]);
    for _time in 0..2 {
        bench.store.for_scheduler().rescue(vec![(dead, 0)]).unwrap();
    }
    assert_eq!(told(&bench), [("ops".to_owned(), WorkerDead, dead)]);
    let claimed = bench.store.notifications().claim("ops", 1_000).unwrap().unwrap();
    let details = bench.store.notifications().details(&claimed).unwrap();
    assert!(matches!(details, MessageDetails::Worker(Some(_))), "{details:?}");
}

#[test]
fn a_schedule_that_is_late_is_told_once_for_each_occurrence() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = named("nightly", &["prod"]);
    workflow.schedules = vec![Schedule {
        name: "hourly".to_owned(),
        rule: Rule::EveryMs(3_600_000),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }];
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    let tagged = NewTarget { tags: vec!["prod".to_owned()], ..target("prod", &[ScheduleLate]) };
    let untagged = NewTarget { tags: vec!["dev".to_owned()], ..target("dev", &[ScheduleLate]) };
    let by_name = NewTarget { workflows: vec!["night*".to_owned()], ..target("name", &[ScheduleLate]) };
    let scheduler = bench.store.for_scheduler();
    let due = scheduler.next_firing(&[]).unwrap().unwrap();
    bench.clock.advance_ms(due - bench.clock.now_ms() + 5 * 60_000);
    assert_eq!(scheduler.mark_late_schedules().unwrap(), 0, "nobody wants it");
    set(&bench, worker, &[tagged, untagged, by_name]);
    assert_eq!(scheduler.mark_late_schedules().unwrap(), 0, "five minutes are not over");
    bench.clock.advance_ms(1);
    assert_eq!(scheduler.mark_late_schedules().unwrap(), 2);
    assert_eq!(scheduler.mark_late_schedules().unwrap(), 0);
    let mut targets: Vec<String> = told(&bench).into_iter().map(|(target, _event, _id)| target).collect();
    targets.sort();
    assert_eq!(targets, ["name", "prod"]);
}
