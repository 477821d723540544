//! Following the output of a job: each line once, whatever happens between.

use std::sync::Arc;

use windlass_engine::store::{
    ClaimRequest, ClaimedJob, Claims, Finish, LogLine, LogStream, NewWorker, Role, Scope, WorkerCapabilities,
};
use windlass_engine::transition::{Outcome, Repeat, after_attempt};

use super::site::{Site, Stream};

/// A worker that does what the test says.
struct Worker<'s> {
    site: &'s Site,
    id: i64,
}

impl Worker<'_> {
    fn new(site: &Site) -> Worker<'_> {
        let worker = NewWorker {
            host: "host".to_owned(),
            pid: 1,
            process: "1".to_owned(),
            scope: Scope::Everything,
            worker_capabilities: WorkerCapabilities::of_kinds(vec!["shell".to_owned()]),
            threads: 1,
            lease_ms: 60_000,
        };
        Worker { site, id: site.store.for_workers().register(worker).unwrap() }
    }

    fn claim(&self) -> ClaimedJob {
        let request = ClaimRequest {
            worker_id: self.id,
            scope: Scope::Everything,
            worker_capabilities: WorkerCapabilities::of_kinds(vec!["shell".to_owned()]),
            limit: 1,
            idle_threads: 1,
        };
        match self.site.store.for_workers().claim(request).unwrap() {
            Claims::Jobs(mut jobs) => jobs.remove(0),
            Claims::Fenced => panic!("the worker is fenced"),
        }
    }

    fn write(&self, job: &ClaimedJob, lines: std::ops::RangeInclusive<i64>) {
        let lines = lines.map(|line| line_of(job, line)).collect();
        self.site.store.for_workers().append_logs(Arc::new(lines)).unwrap();
    }

    fn finish(&self, job: &ClaimedJob, outcome: Outcome, logs: Vec<LogLine>) {
        let finish = Finish {
            job_id: job.id,
            run_id: job.run_id,
            attempt: job.retry_state.attempt,
            worker_id: self.id,
            transition: after_attempt(&job.retry_state, outcome, 0.5),
            exit_code: None,
            logs,
            artifacts: Vec::new(),
            variables: Vec::new(),
        };
        self.site.store.for_workers().finish_and_claim(vec![finish], None).unwrap();
    }
}

fn line_of(job: &ClaimedJob, line: i64) -> LogLine {
    let text = format!("text {line} <b>\u{202e}");
    LogLine { job_id: job.id, attempt: job.retry_state.attempt, line, at: 0, stream: LogStream::Stdout, text }
}

/// A run of one job, which is tried twice.
fn submit(site: &Site) {
    let workflow =
        super::site::workflow("one", "[jobs.a]\nrun = 'true'\nretry = { max_attempts = 2, delay = '1s' }\n");
    let run = windlass_engine::store::NewRun {
        workflow,
        params: Default::default(),
        dir: None,
        run_key: None,
        occasion: None,
    };
    site.store.runs().submit(run).unwrap();
}

/// The ids of the lines until one of them has this id.
fn read_until(stream: &mut Stream<'_>, last: &str) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.last().is_none_or(|id| id != last) {
        let message = stream.next().unwrap_or_else(|| panic!("the stream ended before {last}: {ids:?}"));
        ids.extend(message.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned));
    }
    ids
}

fn ids(attempt: i64, lines: std::ops::RangeInclusive<i64>) -> Vec<String> {
    lines.map(|line| format!("{attempt}.{line}")).collect()
}

#[test]
fn each_line_comes_once_across_reconnects_retries_and_restarts() {
    let mut site = Site::new();
    let token = site.token("page", Role::View);
    submit(&site);
    let (first, path) = {
        let worker = Worker::new(&site);
        let job = worker.claim();
        let path = format!("/api/v1/jobs/{}/logs/stream", job.id);
        worker.write(&job, 1..=1_200);
        let mut stream = site.get(&path).token(&token).stream();
        let mut seen = read_until(&mut stream, "1.1200");
        worker.write(&job, 1_201..=1_203);
        seen.extend(read_until(&mut stream, "1.1203"));
        assert_eq!(seen, ids(1, 1..=1_203));
        drop(stream);
        // Nobody follows these.
        worker.write(&job, 1_204..=1_250);
        let mut stream = site.get(&path).token(&token).header("last-event-id", "1.1203").stream();
        assert_eq!(read_until(&mut stream, "1.1250"), ids(1, 1_204..=1_250));
        // The attempt fails, and the next one begins.
        let failed = Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Allowed };
        worker.finish(&job, failed, vec![line_of(&job, 1_251)]);
        assert_eq!(read_until(&mut stream, "1.1251"), ids(1, 1_251..=1_251));
        site.clock.advance_ms(10_000);
        site.store.for_scheduler().promote_due().unwrap();
        let again = worker.claim();
        worker.write(&again, 1..=2);
        assert_eq!(read_until(&mut stream, "2.2"), ids(2, 1..=2));
        (again, path)
    };
    site.restart();
    let worker = Worker::new(&site);
    worker.write(&first, 3..=3);
    let mut stream = site.get(&path).token(&token).header("last-event-id", "2.2").stream();
    assert_eq!(read_until(&mut stream, "2.3"), ids(2, 3..=3));
}

#[test]
fn a_stream_of_output_ends_with_its_job() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    submit(&site);
    let worker = Worker::new(&site);
    let job = worker.claim();
    let path = format!("/api/v1/jobs/{}/logs/stream", job.id);
    let mut stream = site.get(&path).token(&token).stream();
    let mut other = site.get(&path).token(&token).stream();
    worker.write(&job, 1..=2);
    let message = (0..10).find_map(|_| stream.next().filter(|message| message.contains("id: "))).unwrap();
    assert!(
        message.contains("\"attempt\":1,\"line\":1,") && message.contains("\"text\":\"text 1 <b>"),
        "{message}"
    );
    worker.finish(&job, Outcome::Successful { output: None }, vec![line_of(&job, 3)]);
    for stream in [&mut stream, &mut other] {
        read_until(stream, "1.3");
        assert_eq!(stream.next().as_deref(), Some("event: end\ndata: {}\n\n"));
        assert_eq!(stream.next(), None);
    }
    let mut late = site.get(&format!("{path}?after=1.1")).token(&token).stream();
    assert_eq!(read_until(&mut late, "1.3"), ids(1, 2..=3));
    assert_eq!(late.next().as_deref(), Some("event: end\ndata: {}\n\n"));
    // A browser that comes back is told to stay away.
    site.get(&path).token(&token).header("last-event-id", "1.3").send().is(204);
    site.get(&format!("{path}?after=3")).token(&token).send().is(400);
    site.get("/api/v1/jobs/77/logs/stream").token(&token).send().is(404);
    site.get(&path).send().is(401);
}

#[test]
fn lines_of_a_page_are_written_as_in_the_page() {
    let site = Site::new();
    let cookie = site.session(Role::View);
    submit(&site);
    let worker = Worker::new(&site);
    let job = worker.claim();
    worker.write(&job, 1..=3);
    let path = format!("/live?run=1&job={}&after=1.2", job.id);
    let mut stream = site.get(&path).header("cookie", &cookie).stream();
    let message = (0..10).find_map(|_| stream.next().filter(|message| message.contains("id: 1.3"))).unwrap();
    let shown = "id=\\\"L3\\\"";
    assert!(
        message.contains(shown) && message.contains("text 3 &lt;b&gt;\u{2039}U+202E\u{203a}"),
        "{message}"
    );
    worker.finish(&job, Outcome::Successful { output: None }, Vec::new());
    // The page goes on after the job.
    stream.until("run 1");
}

#[test]
fn a_hundred_who_follow_cost_the_reads_of_one() {
    let site = Site::new();
    // One caller has only a part of the streams.
    let tokens: Vec<String> = (0..4).map(|at| site.token(&format!("page {at}"), Role::View)).collect();
    submit(&site);
    let worker = Worker::new(&site);
    let job = worker.claim();
    let path = format!("/api/v1/jobs/{}/logs/stream", job.id);
    worker.write(&job, 1..=1);
    let mut streams: Vec<_> = (0..100).map(|at| site.get(&path).token(&tokens[at / 25]).stream()).collect();
    for line in 2..=4 {
        for stream in &mut streams {
            read_until(stream, &format!("1.{}", line - 1));
        }
        worker.write(&job, line..=line);
    }
    for stream in &mut streams {
        read_until(stream, "1.4");
    }
    let before = site.reads();
    worker.write(&job, 5..=900);
    for stream in &mut streams {
        assert_eq!(read_until(stream, "1.900"), ids(1, 5..=900));
    }
    // What has changed, and the lines; and the same for hints that come late. Each viewer would read at least once.
    let reads = site.reads() - before;
    assert!(reads <= 20, "{reads}");
}

#[test]
fn failures_and_the_timeline_are_read_over_rest() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    for _run in 0..2 {
        submit(&site);
    }
    let worker = Worker::new(&site);
    let fail = |error: &str, job: &ClaimedJob| {
        let failed = Outcome::Failed { error: error.to_owned(), repeat: Repeat::Allowed };
        worker.finish(job, failed, Vec::new());
    };
    site.clock.advance_ms(1_000);
    let first = worker.claim();
    let second = worker.claim();
    site.clock.advance_ms(2_000);
    for (job, error) in [(&first, "refused"), (&second, "timed out")] {
        fail(error, job);
    }
    site.clock.advance_ms(60_000);
    site.store.for_scheduler().promote_due().unwrap();
    let again = worker.claim();
    let timeline = site.get(&format!("/api/v1/runs/{}/timeline", again.run_id.unwrap())).token(&token).send();
    let parts = timeline.is(200).json()[0]["parts"].clone();
    let kinds: Vec<&str> =
        parts.as_array().unwrap().iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ready", "failed", "backoff", "running"]);
    assert_eq!((&parts[1]["from"], &parts[1]["until"]), (&parts[0]["until"], &parts[2]["from"]));
    assert!(parts[3]["until"].is_null(), "it runs: {parts}");
    // It is the same while nothing happens.
    let tag = timeline.header("etag").to_owned();
    site.clock.advance_ms(5_000);
    let path = format!("/api/v1/runs/{}/timeline", again.run_id.unwrap());
    site.get(&path).token(&token).header("if-none-match", &tag).send().is(304);
    fail("refused", &again);
    fail("timed out", &worker.claim());
    let found = site.get("/api/v1/failures?limit=1").token(&token).send();
    assert_eq!(found.is(200).json()["causes"].as_array().unwrap().len(), 1);
    let link = found.header("link");
    let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let rest = site.get(next).token(&token).send();
    assert_eq!(rest.is(200).json()["causes"].as_array().unwrap().len(), 1);
    assert_eq!(rest.header("link"), "");
    let errors = [&found, &rest].map(|reply| reply.json()["causes"][0]["error"].as_str().unwrap().to_owned());
    assert!(errors.contains(&"refused".to_owned()) && errors.contains(&"timed out".to_owned()), "{errors:?}");
    let none = site.get("/api/v1/failures?since=2200-01-01T00:00:00Z").token(&token).send();
    assert_eq!(none.is(200).json()["causes"], serde_json::json!([]));
    site.get("/api/v1/failures?since=today").token(&token).send().is(400);
}

/// The service stops while a client reads the output of a job that is over: the end of the stream is not the end of the output.
#[test]
fn a_stream_that_is_cut_off_does_not_say_that_it_has_all_lines() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    submit(&site);
    let worker = Worker::new(&site);
    let job = worker.claim();
    worker.write(&job, 1..=10_000);
    worker.finish(&job, Outcome::Successful { output: None }, Vec::new());
    let path = format!("/api/v1/jobs/{}/logs/stream", job.id);
    let mut stream = site.get(&path).token(&token).stream();
    read_until(&mut stream, "1.500");
    site.viewers.stop();
    let mut rest = String::new();
    while let Some(message) = stream.next() {
        rest.push_str(&message);
    }
    assert!(!rest.contains("event: end") && !rest.contains("id: 1.10000"), "{}", rest.len());
}

#[test]
fn a_download_that_is_cut_says_so() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    submit(&site);
    let worker = Worker::new(&site);
    let job = worker.claim();
    let long = |line| LogLine { text: "x".repeat(16 * 1024), ..line_of(&job, line) };
    let path = format!("/jobs/{}/log.txt", job.id);
    let said = "[windlass] This file ends after";

    site.store.for_workers().append_logs(Arc::new((1..=1_000).map(long).collect())).unwrap();
    let whole = site.get(&path).token(&token).send();
    assert_eq!(whole.body.lines().count(), 1_000);
    assert!(!whole.body.contains(said));

    site.store.for_workers().append_logs(Arc::new((1_001..=3_001).map(long).collect())).unwrap();
    let cut = site.get(&path).token(&token).send();
    assert_eq!(cut.body.lines().count(), 3_001);
    let last = cut.body.lines().last().unwrap().to_owned();
    assert!(last.starts_with(said), "{last}");
    assert!(
        last.contains(&format!("after 3000 lines. `windlass logs j{} --attempt 1` writes", job.id)),
        "{last}"
    );
}
