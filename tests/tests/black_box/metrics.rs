//! Promise: `/metrics` is in the format of Prometheus, whose own program finds nothing wrong with it but one name that
//! autoscalers expect, and it stays small and quick whatever the database has.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use windlass_test_database::Access;
use windlass_tests::binary::repository;
use windlass_tests::{Engine, Sandbox, eventually};

/// A service, and the text that it gives to a monitor.
struct Scraped {
    _service: Engine,
    address: String,
    token: String,
}

impl Scraped {
    fn start(sandbox: &Sandbox) -> Scraped {
        sandbox.write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\n");
        let added = sandbox.run(&["token", "add", "prometheus", "--role", "metrics"]).exited(0);
        let mut service = sandbox.spawn(&["serve"]);
        let address = eventually("the service", || {
            let told = service.stderr_so_far();
            assert!(service.is_running(), "it ended: {told}");
            told.split("page: http://").nth(1).and_then(|rest| rest.split('/').next()).map(str::to_owned)
        });
        Scraped { _service: service, address, token: added.stdout.trim().to_owned() }
    }

    fn text(&self) -> String {
        let Scraped { address, token, .. } = self;
        let mut stream = TcpStream::connect(address).expect("the service listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        .expect("a request is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("an answer");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a whole answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{reply}");
        body.to_owned()
    }
}

/// What `promtool` says about a text. Nothing if it is as it should be.
fn promtool(arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut checking = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there: scripts/setup installs it");
    checking.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = checking.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn promtool_complains_of_one_name_alone() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("one.toml", "[jobs.a]\nrun = 'true'\n[jobs.b]\nneeds = ['a']\nrun = 'exit 1'\n");
    let scraped = Scraped::start(&sandbox);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the end of the run", || {
        let left: i64 = sandbox.tables().value("SELECT count(*) FROM runs WHERE finished_at IS NULL");
        (left == 0).then_some(())
    });
    let text = eventually("both attempts", || {
        let text = scraped.text();
        text.contains("windlass_attempts_total{outcome=\"failed\"} 1").then_some(text)
    });
    assert!(text.contains("windlass_job_run_seconds_count{queue=\"default\"} 2"), "{text}");
    assert!(text.contains("windlass_workers{status=\"alive\"} 1"), "{text}");
    let (_code, said) = promtool(&["check", "metrics"], &text);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        ["pending_jobs_count non-histogram and non-summary metrics should not have \"_count\" suffix"]
    );
    let names = [
        "windlass_jobs",
        "windlass_oldest_pending_seconds",
        "windlass_attempts_total",
        "windlass_job_wait_seconds",
        "windlass_job_run_seconds",
        "windlass_commit_seconds",
        "windlass_runs_total",
        "windlass_schedule_late_seconds",
        "windlass_workers",
        "windlass_http_request_seconds",
        "windlass_build_info",
        "pending_jobs_count",
    ];
    for name in names {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name} in\n{text}");
    }
}

#[test]
fn a_scrape_with_ten_thousand_queues_is_small() {
    let sandbox = Sandbox::new();
    let scraped = Scraped::start(&sandbox);
    sandbox.database().sql(Access::Write).execute(
        "INSERT INTO jobs (kind, queue, status)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
         SELECT 'unknown', 'queue' || CAST(n AS TEXT), 'PENDING' FROM numbers",
    );
    let text = eventually("the jobs", || {
        let text = scraped.text();
        text.contains("windlass_jobs{state=\"pending\",queue=\"other\"} 9901").then_some(text)
    });
    let of_queues = text.lines().filter(|line| line.starts_with("pending_jobs_count{")).count();
    assert_eq!(of_queues, 100);
    assert!(text.len() < 100_000, "{} bytes", text.len());
}

#[test]
fn the_alerts_are_rules_about_metrics_that_exist() {
    let file = repository().join("contrib/prometheus-alerts.yml");
    let (code, said) = promtool(&["check", "rules", &file.to_string_lossy()], "");
    assert_eq!(code, Some(0), "{said}");
    let sandbox = Sandbox::new();
    let text = Scraped::start(&sandbox).text();
    let rules = std::fs::read_to_string(file).expect("the rules");
    for word in rules.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
        if word.starts_with("windlass_") {
            let name = word.trim_end_matches("_bucket").trim_end_matches("_count");
            // A server has no file.
            let is_of_file = matches!(name, "windlass_wal_bytes" | "windlass_disk_free_bytes");
            assert!(is_of_file || text.contains(&format!("# TYPE {name} ")), "{name} in\n{text}");
        }
    }
}
