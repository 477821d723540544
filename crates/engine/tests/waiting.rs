//! Jobs that wait for an event or for a person, and the events.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use serde_json::{Map, json};
use support::{Bench, success};
use windlass_engine::store::{ClockStep, Job, NewSignal, Reason, RetrySelection, Signalled, Verdict};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::{Source, Workflow};

fn parse(jobs: &str) -> Workflow {
    let text = format!("name = \"shop\"\n{jobs}");
    windlass_workflow::parse(&Source::new("shop.toml", text.into_bytes()).unwrap()).unwrap()
}

/// The wait begins when `order` has ended.
const ORDER: &str = "
    [jobs.order]
    run = \"true\"
    [jobs.paid]
    needs = [\"order\"]
    wait_for = { event = \"paid\", key = \"{{ run.workflow }}\", timeout = \"3d\" }
    [jobs.ship]
    needs = [\"paid\"]
    run = \"true\"";

const RELEASE: &str = "
    [jobs.ask]
    approval = { prompt = \"Release {{ run.workflow }}?\", fields = { version = {} }, timeout = \"1d\" }
    [jobs.release]
    needs = [\"ask\"]
    run = \"true\"";

const DAY_MS: i64 = 86_400_000;

struct Shop {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Shop {
    fn of(jobs: &str) -> Shop {
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(parse(jobs)));
        Shop { bench, worker, run_id }
    }

    fn schedule(&self) {
        self.bench.store.for_scheduler().promote_due().unwrap();
        while self.bench.store.for_scheduler().dispatch_events().unwrap() {}
        while self.bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    }

    fn work(&self) -> Vec<String> {
        let jobs = self.bench.claim(self.worker, 10);
        for job in &jobs {
            self.bench.finish(self.worker, job, success());
        }
        jobs.into_iter().filter_map(|job| job.name).collect()
    }

    /// What schedulers and workers do now. Returns the jobs that were executed.
    fn turn(&self) -> Vec<String> {
        let mut executed = Vec::new();
        for _turn in 0..4 {
            self.schedule();
            executed.extend(self.work());
        }
        self.bench.assert_sound();
        executed
    }

    fn signal(&self, key: &str, payload: &str) -> Signalled {
        let signal = NewSignal {
            name: "paid".to_owned(),
            key: Some(key.to_owned()),
            payload: payload.to_owned(),
            event_id: None,
        };
        self.bench.store.events().signal(signal).unwrap()
    }

    fn job(&self, name: &str) -> Job {
        self.bench.store.jobs().find_by_name(self.run_id, name).unwrap().unwrap()
    }

    fn status(&self) -> RunStatus {
        self.bench.store.runs().get(self.run_id).unwrap().status
    }

    fn assert_paid(&self, payload: &str) {
        assert_eq!(self.turn(), ["ship"]);
        let output = self.job("paid").output.unwrap();
        let expected = format!("{{\"key\":\"shop\",\"payload\":{payload},");
        assert!(output.starts_with(&expected), "{output}");
        assert_eq!(self.status(), RunStatus::Successful);
    }
}

#[test]
fn an_event_ends_a_wait_whenever_it_comes_after_the_run_was_created() {
    // Before the wait begins.
    let shop = Shop::of(ORDER);
    shop.signal("shop", "1");
    shop.schedule();
    assert_eq!(shop.work(), ["order"]);
    shop.assert_paid("1");
    // At its beginning: undecided, and not dispatched.
    let shop = Shop::of(ORDER);
    shop.work();
    shop.signal("shop", "2");
    shop.assert_paid("2");
    // After it.
    let shop = Shop::of(ORDER);
    assert_eq!(shop.turn(), ["order"]);
    assert_eq!(shop.job("paid").status, JobStatus::Waiting);
    shop.signal("shop", "3");
    shop.signal("shop", "4");
    shop.assert_paid("3");
}

#[test]
fn other_events_and_earlier_ones_end_no_wait() {
    let shop = Shop::of(ORDER);
    shop.signal("shop", "1");
    let late = shop.bench.submit(parse(ORDER));
    shop.turn();
    shop.signal("other", "2");
    let other = NewSignal {
        name: "ordered".to_owned(),
        key: Some("shop".to_owned()),
        payload: "3".to_owned(),
        event_id: None,
    };
    shop.bench.store.events().signal(other).unwrap();
    shop.turn();
    assert_eq!(shop.status(), RunStatus::Successful);
    let late = Shop { run_id: late, ..shop };
    assert_eq!(late.job("paid").status, JobStatus::Waiting, "the event came before the run");
    let why = late.bench.store.jobs().why(late.job("paid").id).unwrap();
    let deadline_at = Some(late.bench.clock.now_ms() + 3 * DAY_MS);
    let (event, key) = ("paid".to_owned(), Some("shop".to_owned()));
    assert_eq!(why.reasons, [Reason::WaitsForEvent { event, key, deadline_at }]);
    late.signal("shop", "5");
    late.assert_paid("5");
}

#[test]
fn every_job_that_waits_sees_the_event() {
    let wait = "wait_for = { event = \"paid\" }";
    let shop = Shop::of(&format!("[jobs.a]\n{wait}\n[jobs.b]\n{wait}\n[jobs.c]\nneeds = [\"b\"]\n{wait}"));
    shop.turn();
    let signal = NewSignal { name: "paid".to_owned(), key: None, payload: "{}".to_owned(), event_id: None };
    shop.bench.store.events().signal(signal).unwrap();
    shop.turn();
    assert_eq!(shop.status(), RunStatus::Successful);
    assert!(shop.job("a").output.unwrap().starts_with("{\"key\":null,"));
}

#[test]
fn a_signal_with_a_known_id_changes_nothing() {
    let shop = Shop::of(ORDER);
    let signal = |payload: &str| {
        let signal = NewSignal {
            name: "paid".to_owned(),
            key: None,
            payload: payload.to_owned(),
            event_id: Some("payment-7".to_owned()),
        };
        shop.bench.store.events().signal(signal)
    };
    let first = signal("1").unwrap();
    assert!(first.created);
    assert_eq!(signal("2").unwrap(), Signalled { id: first.id, created: false });
    let count: i64 = shop.bench.raw().value("SELECT count(*) FROM events WHERE payload = '1'");
    assert_eq!(count, 1);
    for payload in ["{", &format!("\"{}\"", "x".repeat(70_000))] {
        assert!(signal(payload).is_err());
    }
}

#[test]
fn a_wait_that_takes_too_long_fails_or_is_skipped() {
    for (on_timeout, status, run) in
        [("fail", JobStatus::Failed, RunStatus::Failed), ("skip", JobStatus::Skipped, RunStatus::Successful)]
    {
        let jobs = format!(
            "[jobs.paid]\nwait_for = {{ event = \"paid\", timeout = \"1d\", on_timeout = \"{on_timeout}\" }}
             [jobs.asked]\napproval = {{ prompt = \"?\", timeout = \"1d\", on_timeout = \"{on_timeout}\" }}
             [jobs.ship]\nneeds = [\"paid\"]\nrun = \"true\""
        );
        let shop = Shop::of(&jobs);
        shop.turn();
        assert_eq!(shop.bench.store.for_scheduler().next_due().unwrap(), Some(1_000_000 + DAY_MS));
        shop.bench.clock.advance_ms(DAY_MS - 1);
        shop.turn();
        assert_eq!(shop.job("paid").status, JobStatus::Waiting);
        shop.bench.clock.advance_ms(1);
        shop.turn();
        assert_eq!([shop.job("paid").status, shop.job("asked").status], [status, status]);
        let error = shop.job("paid").last_error.unwrap();
        assert!(error.contains("no event `paid` came within 1d"), "{error}");
        assert_eq!((shop.job("ship").status, shop.status()), (JobStatus::Skipped, run));
    }
}

#[test]
fn a_step_of_the_clock_does_not_change_the_time_of_a_wait() {
    let shop = Shop::of(RELEASE);
    shop.turn();
    shop.bench.clock.step_wall_ms(2 * DAY_MS);
    let step = ClockStep { number: 1, by_ms: 2 * DAY_MS, now_ms: shop.bench.clock.now_ms(), unseen_ms: 0 };
    shop.bench.store.for_scheduler().move_with_clock(step).unwrap();
    shop.turn();
    assert_eq!(shop.job("ask").status, JobStatus::Waiting);
    shop.bench.clock.advance_ms(DAY_MS);
    shop.turn();
    assert_eq!(shop.job("ask").status, JobStatus::Failed);
}

#[test]
fn a_person_approves_or_rejects() {
    let shop = Shop::of(RELEASE);
    let jobs = shop.bench.store.jobs();
    let fields = Map::from_iter([("version".to_owned(), json!("1.4"))]);
    let approve = Verdict::Approve { by: "ada".to_owned(), fields };
    let ask = shop.job("ask");
    assert_eq!(jobs.approval(ask.id).unwrap().unwrap().fields[0].name, "version");
    let early = jobs.decide_approval(ask.id, approve.clone()).unwrap_err().to_string();
    assert!(early.contains("has not asked"), "{early}");
    assert_eq!(shop.turn(), [""; 0]);
    let why = jobs.why(ask.id).unwrap();
    let deadline_at = Some(shop.bench.clock.now_ms() + DAY_MS);
    let prompt = "Release shop?".to_owned();
    assert_eq!(why.reasons, [Reason::WaitsForApproval { prompt, deadline_at }]);
    jobs.decide_approval(ask.id, approve.clone()).unwrap();
    let again = jobs.decide_approval(ask.id, approve).unwrap_err().to_string();
    assert!(again.contains("it is SUCCESSFUL"), "{again}");
    assert_eq!(shop.turn(), ["release"]);
    let output = shop.job("ask").output.unwrap();
    let output: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&output["by"], &output["fields"]["version"]), (&json!("ada"), &json!("1.4")));
    assert_eq!(shop.status(), RunStatus::Successful);

    let shop = Shop::of(RELEASE);
    shop.turn();
    let reject = Verdict::Reject { by: "bob".to_owned(), reason: "not today".to_owned() };
    shop.bench.store.jobs().decide_approval(shop.job("ask").id, reject).unwrap();
    let error = shop.job("ask").last_error.unwrap();
    assert_eq!((error.as_str(), shop.status()), ("rejected by bob: not today", RunStatus::Failed));
    shop.bench.assert_sound();
}

#[test]
fn a_wait_can_be_cancelled_and_begins_again_after_a_retry() {
    let shop = Shop::of(ORDER);
    shop.turn();
    shop.bench.store.runs().cancel(shop.run_id).unwrap();
    assert_eq!(shop.status(), RunStatus::Cancelled);
    shop.bench.clock.advance_ms(4 * DAY_MS);
    shop.bench.store.runs().retry(shop.run_id, RetrySelection::Failed).unwrap();
    shop.turn();
    assert_eq!(shop.job("paid").status, JobStatus::Waiting, "its time begins again");
    // An event that came meanwhile would count too: it came after the run was created.
    shop.signal("shop", "7");
    shop.assert_paid("7");
}

#[test]
fn an_event_wakes_more_jobs_than_one_transaction_does() {
    let shop = Shop::of("[jobs.first]\nwait_for = { event = \"paid\" }");
    shop.turn();
    let rows = "INSERT INTO jobs (run_id, name, kind, status, waits_for, control, event, started_at)
        SELECT 1, 'w' || n, 'wait_for', 'WAITING', 'event', '{\"then\":{\"wait_for\":{\"event\":\"paid\"}}}', 'paid/', 1
        FROM (WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
              SELECT n FROM numbers) AS numbers";
    shop.bench.raw().execute(rows);
    shop.bench.raw().execute("UPDATE runs SET total_jobs = 2501, unfinished_jobs = 2501");
    let signal = NewSignal { name: "paid".to_owned(), key: None, payload: "{}".to_owned(), event_id: None };
    shop.bench.store.events().signal(signal).unwrap();
    shop.turn();
    assert_eq!(shop.status(), RunStatus::Successful);
}

#[test]
fn no_event_is_lost_between_the_look_and_the_wait() {
    let shop = Shop::of("[jobs.paid]\nwait_for = { event = \"paid\" }");
    let workflow = parse("[jobs.paid]\nwait_for = { event = \"paid\" }");
    let store = &shop.bench.store;
    for _round in 0..20 {
        let run_id = shop.bench.submit(workflow.clone());
        let barrier = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                store.for_scheduler().decide_waiting().unwrap();
            });
            scope.spawn(|| {
                barrier.wait();
                let (name, payload) = ("paid".to_owned(), "1".to_owned());
                store.events().signal(NewSignal { name, key: None, payload, event_id: None }).unwrap();
                store.for_scheduler().dispatch_events().unwrap();
            });
            scope.spawn(|| {
                barrier.wait();
                store.for_scheduler().dispatch_events().unwrap();
            });
        });
        shop.turn();
        assert_eq!(store.runs().get(run_id).unwrap().status, RunStatus::Successful);
    }
}

#[test]
fn events_are_kept_for_a_week_and_as_long_as_an_older_run_is_unfinished() {
    let shop = Shop::of(ORDER);
    shop.signal("other", "1");
    shop.turn();
    let left = || shop.bench.raw().value::<i64>("SELECT count(*) FROM events");
    let prune =
        || while shop.bench.store.for_scheduler().prune_step(Default::default()).unwrap().leftovers > 0 {};
    shop.bench.clock.advance_ms(8 * DAY_MS);
    prune();
    assert_eq!(left(), 1, "the run may wait for it");
    shop.bench.store.runs().cancel(shop.run_id).unwrap();
    prune();
    assert_eq!(left(), 0);
    shop.signal("other", "2");
    shop.bench.clock.advance_ms(8 * DAY_MS);
    prune();
    assert_eq!(left(), 1, "it is not dispatched");
    shop.turn();
    // The number of an event is never used twice, so a new run does not take an old event for a new one.
    prune();
    assert_eq!(left(), 0);
    assert_eq!(shop.signal("other", "3").id, 3);
}

/// The first run waits for what the second one sends.
#[test]
fn a_job_sends_an_event_once_however_often_it_is_executed() {
    let shop = Shop::of(ORDER);
    assert_eq!(shop.turn(), ["order"]);
    let sender = shop.bench.submit(parse(
        "params = { amount = { default = '7' } }\n[jobs.tell]\n\
         signal = { event = 'paid', key = '{{ run.workflow }}', payload = { amount = 7, by = ['{{ run.workflow }}'] } }\n",
    ));
    shop.assert_paid("{\"amount\":7,\"by\":[\"shop\"]}");
    let tell = shop.bench.store.jobs().find_by_name(sender, "tell").unwrap().unwrap();
    assert_eq!((tell.status, tell.attempt), (JobStatus::Successful, 0));
    let sent = json!({ "event": "paid", "key": "shop", "payload": { "amount": 7, "by": ["shop"] } });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&tell.output.unwrap()).unwrap(), sent);
    let events = || {
        let sql = "SELECT count(*) FROM events";
        shop.bench.raw().rows(sql, |row| row.get::<_, i64>(0))[0]
    };
    assert_eq!(events(), 1);
    shop.bench.store.runs().retry(sender, RetrySelection::From("tell".to_owned())).unwrap();
    shop.turn();
    assert_eq!(shop.bench.store.runs().get(sender).unwrap().status, RunStatus::Successful);
    assert_eq!(events(), 1, "the id of the event is that of the job");
}

#[test]
fn an_event_that_cannot_be_sent_fails_its_job() {
    let long = "x".repeat(40_000);
    let text = format!(
        "[jobs.long]\nsignal = {{ event = 'e', payload = ['{long}', '{{{{ run.workflow }}}}', '{long}'] }}\n\
         [jobs.empty]\nsignal = {{ event = 'e', key = '{{{{ run.run_key | default(\"\") }}}}' }}\n"
    );
    let shop = Shop::of(
        &text
            .replace("run.run_key | default(\"\")", "params.none | default(\"\")")
            .replace("[jobs.long]", "[params.none]\nrequired = false\n[jobs.long]"),
    );
    shop.turn();
    for (name, reason) in [("long", "the limit is 65536"), ("empty", "`signal.key` is empty")] {
        let job = shop.job(name);
        assert_eq!(job.status, JobStatus::Failed);
        let error = job.last_error.unwrap();
        assert!(error.contains(reason), "{error}");
    }
}
