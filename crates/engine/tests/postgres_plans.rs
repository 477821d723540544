//! The plans of the most frequent statements on PostgreSQL: each finds its rows by an index, even if the statistics
//! are from a time when no job waited or ran. A statement that changes rows has one plan for all values. That plan is
//! tested, also if it was made for small tables.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use support::tapped::{Tap, Tapped};
use support::{failure, graph, noop, request, success};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Connection, Dialect, Statement, Value, all, one};
use windlass_engine::store::{Claims, NewJob, Scope};
use windlass_engine::{Clock, Random, Result, Store, TABLES};
use windlass_test_server::Schema;

/// The number of finished rows, and of rows whose time has not come.
const ROWS: i64 = 100_000;

/// Statements and their plans.
type Plans = BTreeMap<(String, Planned), Vec<String>>;

/// How a statement is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Planned {
    /// For its values, like all statements that only read.
    ForValues,
    /// Once for all values, like all statements that write.
    ForAll,
}

/// The sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    Small,
    Large,
}

/// Returns the plan of a statement that is about to run.
fn explain(
    connection: &mut dyn Connection,
    statement: Statement,
    parameters: &[Value<'_>],
    plans: &Mutex<Plans>,
) -> Result<()> {
    let mode = one(connection, "SELECT current_setting('plan_cache_mode')", &[], |row| row.text(0))?;
    let (planned, plan) = match mode.as_str() {
        "force_generic_plan" => (Planned::ForAll, plan_for_all(connection, statement, parameters)?),
        "force_custom_plan" => {
            let explain = format!("EXPLAIN (COSTS OFF) {statement}");
            (Planned::ForValues, all(connection, explain.leak(), parameters, |row| row.text(0))?)
        }
        other => panic!("a transaction did not set its plan mode: {other}"),
    };
    plans.lock().unwrap().insert((statement.to_string(), planned), plan);
    Ok(())
}

fn plan_for_all(
    connection: &mut dyn Connection,
    statement: Statement,
    parameters: &[Value<'_>],
) -> Result<Vec<String>> {
    let in_brackets =
        |list: Vec<&str>| if list.is_empty() { String::new() } else { format!("({})", list.join(", ")) };
    let types = in_brackets(parameters.iter().map(type_of).collect());
    // The plan does not depend on these values. Each column of a set of rows is one value.
    let values = in_brackets(vec!["NULL"; parameters.iter().map(width_of).sum()]);
    let text = &statement.texts(Dialect::Postgres, TABLES.fragments)[0];
    connection.batch(&format!("PREPARE explained {types} AS {text}"))?;
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE explained {values}");
    let plan = all(connection, explain.leak(), &[], |row| row.text(0))?;
    connection.batch("DEALLOCATE explained")?;
    Ok(plan)
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        // The statement says which types the columns of a set have.
        Value::Null | Value::Rows { .. } => "unknown",
        Value::Integer(_) => "bigint",
        Value::Real(_) => "double precision",
        Value::Text(_) => "text",
    }
}

fn width_of(value: &Value<'_>) -> usize {
    match value {
        Value::Rows { width, .. } => *width,
        Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) => 1,
    }
}

/// Runs everything that a worker and a scheduler do frequently.
fn plans(tables: Tables) -> Plans {
    let schema = Schema::new();
    let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
    let clock = Clock::manual(1_000_000);
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let inner = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    let mut client = schema.client();
    let waiting = match tables {
        Tables::Small => 20,
        Tables::Large => {
            fill(&mut client);
            5_000
        }
    };
    let plans = Arc::new(Mutex::new(Plans::new()));
    let kept = Arc::clone(&plans);
    let tap: Tap =
        Arc::new(move |connection, statement, parameters| explain(connection, statement, parameters, &kept));
    let database = Arc::new(Tapped::new(inner, tap));
    let store = Store::new(database, clock.clone(), Random::from_seed(1));
    let worker_id = store.for_workers().register(support::new_worker()).unwrap();
    let run_id = support::submit(&store, graph(vec![vec![], vec![0], vec![0, 1], vec![]]));
    store.jobs().enqueue(vec![noop(); waiting]).unwrap();
    support::limit(&store, "narrow");
    store.jobs().enqueue(support::limited_jobs("narrow")).unwrap();
    store.jobs().enqueue(vec![NewJob { execute_after: Some(1_000_500), ..noop() }]).unwrap();
    clock.advance_ms(1_000);
    if tables == Tables::Small {
        // Small tables that will grow. The statistics know how small they are.
        client
            .batch_execute("ANALYZE jobs, runs, job_dependencies, job_attempts, job_logs, occurrences")
            .unwrap();
    }
    plans.lock().unwrap().clear();

    let claim = |scope: Scope, limit: usize| match store
        .for_workers()
        .claim(request(worker_id, scope, limit))
        .unwrap()
    {
        Claims::Jobs(jobs) => jobs,
        Claims::Fenced => panic!("worker {worker_id} is fenced"),
    };
    store.for_workers().has_claimable(&request(worker_id, Scope::Everything, 1)).unwrap();
    store.for_workers().has_claimable(&request(worker_id, Scope::Runs(vec![run_id]), 1)).unwrap();
    let mut jobs = claim(Scope::Runs(vec![run_id]), 2);
    jobs.extend(claim(Scope::Everything, 1_000));
    let outcomes = [success(), failure()].into_iter().cycle();
    let finishes =
        jobs.iter().zip(outcomes).map(|(job, outcome)| support::finish(worker_id, job, outcome)).collect();
    store.for_workers().finish_and_claim(finishes, None).unwrap();
    let reported = claim(Scope::Everything, 10)[0].id;
    client.batch_execute(&format!("UPDATE jobs SET status = 'SUCCESSFUL' WHERE id = {reported}")).unwrap();
    assert_eq!(store.for_scheduler().apply_reports().unwrap(), 1);
    store.for_workers().heartbeat(worker_id).unwrap();
    store.for_workers().cancel_requests(worker_id).unwrap();
    store.for_scheduler().next_due().unwrap();
    store.for_scheduler().promote_due().unwrap();
    store.for_scheduler().admit_waiting("").unwrap();
    store.workers().live().unwrap();
    store.for_scheduler().has_orphans(&[]).unwrap();
    store.for_scheduler().rescue(vec![(99, 0)]).unwrap();
    store.runs().get(run_id).unwrap();
    store.runs().context(run_id).unwrap();
    store.jobs().values(run_id, &["j0".to_owned()]).unwrap();
    store.jobs().find_by_name(run_id, "j0").unwrap();
    store.for_scheduler().prune_step(support::older_than(clock.now_ms() - 500)).unwrap();
    support::limit_runs(&store, worker_id);
    support::notify_of_groups(&store, worker_id);
    support::fire_schedules(&store, &clock);
    std::mem::take(&mut *plans.lock().unwrap())
}

fn fill(client: &mut postgres::Client) {
    client
        .batch_execute(&format!(
            "ALTER TABLE jobs SET (autovacuum_enabled = false);
             INSERT INTO jobs (kind, status, execute_after, finished_at)
             SELECT 'noop', CASE n % 2 WHEN 0 THEN 'SUCCESSFUL' ELSE 'SCHEDULED' END, 4102444800000,
                    CASE n % 2 WHEN 0 THEN 1000000 END
             FROM generate_series(1, 2 * {ROWS}) AS n;
             INSERT INTO runs (workflow, status, finished_at, unfinished_jobs)
             SELECT 'old', 'SUCCESSFUL', 1000000, 0 FROM generate_series(1, 10000);
             INSERT INTO schedules (workflow, name, removed_at)
             SELECT 'old' || n % 2000, CAST(n AS TEXT), 1 FROM generate_series(1, 10000) AS n;
             INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after)
             SELECT 1 + n % 100, n, CASE n % 2 WHEN 0 THEN 'SKIPPED' ELSE 'WAITING' END, 'schedule', n
             FROM generate_series(1, {ROWS}) AS n;
             ANALYZE jobs; ANALYZE runs; ANALYZE schedules; ANALYZE occurrences;"
        ))
        .unwrap();
}

#[test]
fn no_frequent_statement_scans_a_whole_table_on_postgres() {
    assert_no_full_scans(&plans(Tables::Large));
}

/// These plans are kept for a while when the tables grow.
#[test]
fn no_statement_that_writes_scans_a_small_table_on_postgres() {
    let mut plans = plans(Tables::Small);
    plans.retain(|(_statement, planned), _plan| *planned == Planned::ForAll);
    assert_no_full_scans(&plans);
}

fn assert_no_full_scans(plans: &Plans) {
    assert!(plans.len() >= 25, "{} statements were recorded", plans.len());
    let wrong: Vec<String> = plans
        .iter()
        .flat_map(|((statement, _planned), plan)| {
            let nexts = plan.iter().skip(1).map(String::as_str).chain([""]);
            plan.iter()
                .zip(nexts)
                .filter(|(step, next)| is_wrong(statement, step, next))
                .map(move |(step, _next)| format!("{step}, in: {statement}\n{}", plan.join("\n")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `next` is the plan's line after this step.
fn is_wrong(statement: &str, step: &str, next: &str) -> bool {
    let tables = ["jobs", "runs", "job_dependencies", "job_attempts", "job_logs", "occurrences"];
    // This is how every job of every run is found.
    let finds_all_of_all_runs = step.ends_with("Index Cond: (run_id IS NOT NULL)");
    // A choice of rows to lock must not be a part of another statement, which could evaluate it again for each row.
    let locks_again = step.contains("LockRows") && statement.contains("UPDATE jobs");
    // The indexes of waiting jobs, running jobs, live workers and targets are small. No other index may be read as a whole.
    let whole = ["pkey", "jobs_name", "jobs_finished_alone", "jobs_failed", "runs_finished"];
    let reads_an_index = step.contains("Index")
        && step.contains(" using ")
        && !next.contains("Index Cond")
        && whole.iter().any(|index| step.contains(index))
        && !step.contains("notification_targets_pkey");
    let reads_a_table = tables.iter().any(|table| {
        ["Seq Scan", "Bitmap Heap Scan"].iter().any(|scan| step.contains(&format!("{scan} on {table}")))
    });
    // Of these few rows an index may be read into a bitmap.
    let reads_notifications = step.contains("Seq Scan on notifications");
    finds_all_of_all_runs || reads_notifications || locks_again || reads_an_index || reads_a_table
}

/// Jobs are claimed and finished by ids. The first job of a queue is found in its index, without sorting.
#[test]
fn a_claim_costs_the_same_with_any_number_of_jobs_on_postgres() {
    let plans = plans(Tables::Large);
    let plans_of = |part: &str| {
        let all = plans.iter().filter(|((statement, _planned), _plan)| statement.contains(part));
        let found: Vec<String> = all.map(|(_statement, plan)| plan.join("\n")).collect();
        assert!(!found.is_empty(), "no statement with {part:?}");
        found
    };
    for (part, index) in [
        ("SET status = 'RUNNING', worker_id", "Index Scan using jobs_pkey on jobs\n"),
        ("SET status = CASE WHEN jobs.cancel_requested_at", "Index Scan using jobs_pkey on jobs\n"),
        ("GROUP BY edges.child_id) AS children", "Index Scan using jobs_pkey on jobs\n"),
        ("GROUP BY edges.child_id) AS children", "using job_dependencies_pkey on job_dependencies edges\n"),
        ("SET blocked_by = jobs.blocked_by - news.ended", "Index Scan using jobs_pkey on jobs\n"),
        ("SET blocked_by = 0", "Index Scan using jobs_pkey on jobs\n"),
        ("ORDER BY {rank}, id LIMIT $2 {lock}", "Index Scan using jobs_claim on jobs\n"),
        ("ORDER BY {rank}, id LIMIT $6", "Index Scan using jobs_claim_in_run on jobs\n"),
        ("ORDER BY execute_after, id LIMIT $2", "Index Scan using jobs_due on jobs\n"),
        (
            "SET status = CASE WHEN concurrency_key IS NULL AND (control",
            "Index Scan using jobs_pkey on jobs\n",
        ),
    ] {
        for plan in plans_of(part) {
            assert!(plan.contains(index), "{part}\n{plan}");
            assert!(!plan.contains("Sort"), "{part}\n{plan}");
        }
    }
    // The claim steps from partition to partition with one seek each. Otherwise it would read all waiting jobs.
    let seek = "Index Cond: (ROW(queue, kind, requires, code_version) >= ROW(COALESCE(candidate.queue";
    for plan in plans_of("candidates (id)") {
        assert!(plan.contains(seek) && !plan.contains("Sort"), "{plan}");
    }
}
