//! A bad night.

use std::collections::BTreeMap;

use windlass_engine::store::{
    Count, FailureGroup, Failures, FocusedJob, HistogramPart, JobCounts, KeyHolder, Page, Run, Taken,
    Triggered,
};
use windlass_engine::{JobStatus, RunSource, RunStatus, WaitsFor};
use windlass_web::pages::runs::{Filter, Note, RunsData, Visited};

const MINUTE_MS: i64 = 60_000;

pub(crate) fn run(
    id: i64,
    workflow: &str,
    status: RunStatus,
    params: &str,
    created_at: i64,
    took_ms: i64,
) -> Run {
    let finished_at = status.is_terminal().then_some(created_at + took_ms);
    Run {
        id,
        workflow: workflow.to_owned(),
        status,
        stop_reason: None,
        params: params.to_owned(),
        dir: None,
        run_key: None,
        total_jobs: 9,
        unfinished_jobs: 0,
        failed_jobs: 0,
        deadline_at: None,
        created_at,
        started_at: Some(created_at + 100),
        finished_at,
        ran_before_ms: 0,
        schedule_id: None,
        scheduled_for: None,
        source: Some(RunSource::Schedule),
        started_by: None,
        outcome: None,
        parent_job_id: None,
        root_run_id: None,
        tags: Vec::new(),
        concurrency: None,
        waits_for: None,
    }
}

fn focused(run_id: i64, name: &str, status: JobStatus, error: Option<&str>, now_ms: i64) -> FocusedJob {
    FocusedJob {
        id: run_id * 10,
        run_id,
        name: name.to_owned(),
        status,
        waits_for: None,
        attempt: 1,
        failures: 0,
        started_at: Some(now_ms - 72_000),
        execute_after: now_ms - 90_000,
        queue: "default".to_owned(),
        queue_is_paused: false,
        concurrency_key: None,
        key_holder: None,
        event_name: None,
        error: error.map(str::to_owned),
    }
}

fn counts(of: &[(JobStatus, i64)]) -> JobCounts {
    let mut counts = JobCounts::default();
    of.iter().for_each(|(status, count)| counts.add(*status, *count));
    counts
}

fn histogram(now_ms: i64) -> Vec<HistogramPart> {
    let exact = |number| Count { number, is_exact: true };
    (0..48)
        .map(|part| HistogramPart {
            from_ms: now_ms - (48 - part) * 30 * MINUTE_MS,
            successful: exact(11 + (part * 7 + part * part) % 9 + if part % 24 == 9 { 24 } else { 0 }),
            failed: exact(match part {
                15 | 20 | 33 | 36 | 40 => 1,
                26 | 38 => 2,
                _ => 0,
            }),
        })
        .collect()
}

pub(crate) fn data(now_ms: i64) -> RunsData {
    let ago = |minutes: i64| now_ms - minutes * MINUTE_MS;
    let refused = "exit code 1: connection to warehouse:5432 refused";
    let day = r#"{"day":"2026-11-21"}"#;
    use RunStatus::{Cancelled, Failed, Pending, Running, Successful};
    let mut rows = vec![
        run(48219, "etl-orders", Running, day, ago(6), 0),
        run(48218, "sync-crm", Running, r#"{"tenant":7}"#, ago(11), 0),
        run(48217, "mail-digest", Pending, "{}", ago(40), 0),
        run(48204, "sync-crm", Failed, r#"{"tenant":7}"#, ago(98), 621_000),
        run(48203, "nightly-report", Successful, day, ago(102), 128_000),
        run(48196, "etl-orders", Failed, day, ago(126), 263_000),
        run(48188, "etl-orders", Failed, day, ago(186), 259_000),
        run(48183, "send-invoices", Failed, r#"{"month":"2026-11"}"#, ago(222), 161_000),
        run(48180, "backup-db", Successful, r#"{"target":"eu-1"}"#, ago(237), 1_130_000),
        run(48172, "import-prices", Cancelled, r#"{"file":"prices-2026-47.csv"}"#, ago(270), 52_000),
        run(48169, "etl-orders", Successful, day, ago(280), 186_000),
        run(48150, "<script>alert(1)</script>", Failed, "{\"a\":\"\u{202e}gpj.exe\"}", ago(1_100), 86_000),
    ];
    rows[1].source = None;
    rows[1].started_by = Some("deploy".to_owned());
    rows[1].run_key = Some("deploy-7".to_owned());
    rows[2].total_jobs = 4;
    rows[2].unfinished_jobs = 4;
    rows[2].started_at = None;
    rows[7].source = Some(RunSource::Event);
    rows[9].source = None;
    rows[10].source = Some(RunSource::Catchup);
    for row in &mut rows {
        row.schedule_id = row.source.map(|_| 1);
    }
    let waiting = FocusedJob {
        waits_for: Some(WaitsFor::Slot),
        concurrency_key: Some("tenant-7".to_owned()),
        key_holder: Some(KeyHolder::Run(48190)),
        ..focused(48218, "push_contacts", JobStatus::Waiting, None, now_ms)
    };
    let paused = FocusedJob {
        queue: "mail".to_owned(),
        queue_is_paused: true,
        ..focused(48217, "send", JobStatus::Pending, None, now_ms)
    };
    let jobs = [
        focused(48219, "transform", JobStatus::Running, None, now_ms),
        waiting,
        paused,
        focused(48204, "push_contacts", JobStatus::Failed, Some("timed out after 10m"), now_ms),
        focused(48196, "load_warehouse", JobStatus::Failed, Some(refused), now_ms),
        focused(48188, "load_warehouse", JobStatus::Failed, Some(refused), now_ms),
        focused(48183, "render_pdf", JobStatus::Failed, Some("killed by SIGKILL after 3 attempts"), now_ms),
        focused(48172, "parse", JobStatus::Cancelled, Some("cancelled by a person"), now_ms),
        focused(
            48150,
            "a\u{202e}b",
            JobStatus::Failed,
            Some("\u{1b}[31m<img src=x onerror=alert(1)>"),
            now_ms,
        ),
    ];
    let group = |workflow: &str, job: &str, error: &str, runs: Vec<i64>, minutes| FailureGroup {
        workflow: workflow.to_owned(),
        job: job.to_owned(),
        error: error.to_owned(),
        run_ids: runs,
        job_ids: vec![],
        first_at: ago(300),
        last_at: ago(minutes),
    };
    let exact = |number| Count { number, is_exact: true };
    let failed_counts = [
        (JobStatus::Successful, 6),
        (JobStatus::Failed, 1),
        (JobStatus::Cancelled, 1),
        (JobStatus::Skipped, 1),
    ];
    let counts_of_jobs = BTreeMap::from([
        (48219, counts(&[(JobStatus::Successful, 5), (JobStatus::Running, 1), (JobStatus::Blocked, 3)])),
        (48218, counts(&[(JobStatus::Successful, 2), (JobStatus::Waiting, 1), (JobStatus::Blocked, 1)])),
        (48204, counts(&[(JobStatus::Successful, 2), (JobStatus::Failed, 1), (JobStatus::Skipped, 1)])),
        (48196, counts(&failed_counts)),
        (48188, counts(&failed_counts)),
        (48183, counts(&failed_counts)),
        (48172, counts(&[(JobStatus::Successful, 1), (JobStatus::Cancelled, 3)])),
    ]);
    RunsData {
        filter: Filter::default(),
        runs: Page { rows, next: Some(48150), searched_to: None },
        focused: jobs.into_iter().map(|job| (job.run_id, job)).collect(),
        counts_of_jobs,
        slot_holders: BTreeMap::new(),
        usual_ms: [("etl-orders", 190_000), ("sync-crm", 41_000), ("backup-db", 1_100_000)]
            .map(|(name, ms)| (name.to_owned(), ms))
            .into(),
        schedules: BTreeMap::from([(1, "hourly".to_owned())]),
        counts: vec![
            (Pending, exact(1)),
            (Running, exact(4)),
            (Successful, exact(812)),
            (Failed, exact(9)),
            (Cancelled, exact(1)),
        ],
        failures: Failures {
            groups: vec![
                group("etl-orders", "load_warehouse", refused, vec![48196, 48188, 48177, 48162], 126),
                group("sync-crm", "push_contacts", "timed out after 10m", vec![48204, 48101], 98),
                group("send-invoices", "render_pdf", "killed by SIGKILL after 3 attempts", vec![48183], 220),
            ],
            since_ms: ago(582),
        },
        triggered: BTreeMap::from([(
            48183,
            Triggered {
                trigger: "billing".to_owned(),
                taken: Some(Taken::Event { id: 7, name: Some("invoice.due".to_owned()) }),
            },
        )]),
        visited: Visited::Marked(ago(582)),
        histogram: histogram(now_ms),
        notes: vec![
            Note {
                about: "Schedule",
                subject: Some(("backup-db/default".to_owned(), "/workflows/backup-db".to_owned())),
                text: "is 14 min late".to_owned(),
            },
            Note {
                about: "Queue",
                subject: Some(("mail".to_owned(), "/queues".to_owned())),
                text: "has been paused since 01:12, 38 jobs wait".to_owned(),
            },
        ],
        workflows: ["backup-db", "etl-orders", "sync-crm"].map(str::to_owned).to_vec(),
    }
}

/// The first day of an installation.
pub(crate) fn nothing(now_ms: i64) -> RunsData {
    let exact = Count { number: 0, is_exact: true };
    RunsData {
        runs: Page { rows: Vec::new(), next: None, searched_to: None },
        focused: BTreeMap::new(),
        counts_of_jobs: BTreeMap::new(),
        counts: RunStatus::ALL.map(|status| (status, exact)).to_vec(),
        failures: Failures { groups: Vec::new(), since_ms: now_ms - 1_440 * MINUTE_MS },
        visited: Visited::Never(now_ms - 1_440 * MINUTE_MS),
        histogram: histogram(now_ms)
            .into_iter()
            .map(|part| HistogramPart { successful: exact, failed: exact, ..part })
            .collect(),
        notes: Vec::new(),
        ..data(now_ms)
    }
}
