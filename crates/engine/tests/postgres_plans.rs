//! The plans of the statements that run all the time, on PostgreSQL: each finds its rows by an index, in a
//! database whose statistics are from a time when nothing waited and nothing ran.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use support::tapped::{Tap, Tapped};
use support::{failure, graph, noop, request, success};
use windlass_engine::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::db::{Connection, Value};
use windlass_engine::store::{Claims, NewJob, Scope};
use windlass_engine::{Clock, Random, Result, Store};
use windlass_test_server::Schema;

/// Rows that are over, and as many whose time has not come.
const ROWS: i64 = 100_000;

/// Statements with the plans they had.
type Plans = Arc<Mutex<BTreeMap<&'static str, Vec<String>>>>;

/// Asks for the plan of a statement that is about to run.
fn explain(
    connection: &mut dyn Connection,
    sql: &'static str,
    parameters: &[Value<'_>],
    plans: &Plans,
) -> Result<()> {
    let explain: &'static str = Box::leak(format!("EXPLAIN (COSTS OFF) {sql}").into_boxed_str());
    let mut plan = Vec::new();
    connection.query(explain, parameters, &mut |row| {
        plan.push(row.text(0)?);
        Ok(())
    })?;
    plans.lock().unwrap().insert(sql, plan);
    Ok(())
}

/// Everything a worker and a scheduler do all the time, in a large database.
fn plans() -> BTreeMap<&'static str, Vec<String>> {
    let schema = Schema::new();
    let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
    let clock = Clock::manual(1_000_000);
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let inner = PostgresDatabase::open(&address, &options).unwrap();
    let mut client = schema.client();
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
             SELECT 'old', CAST(n AS TEXT), 1 FROM generate_series(1, 100) AS n;
             INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after)
             SELECT 1 + n % 100, n, CASE n % 2 WHEN 0 THEN 'SKIPPED' ELSE 'WAITING' END, 'schedule', n
             FROM generate_series(1, {ROWS}) AS n;
             ANALYZE jobs; ANALYZE runs; ANALYZE schedules; ANALYZE occurrences;"
        ))
        .unwrap();
    let plans = Plans::default();
    let kept = Arc::clone(&plans);
    let tap: Tap = Arc::new(move |connection, sql, parameters| explain(connection, sql, parameters, &kept));
    let database = Arc::new(Tapped::new(inner, tap));
    let store = Store::new(database, clock.clone(), Random::from_seed(1));
    let worker_id = store.register_worker(support::new_worker()).unwrap();
    let run_id = support::submit(&store, graph(vec![vec![], vec![0], vec![0, 1], vec![]]));
    store.enqueue(vec![noop(); 5_000]).unwrap();
    support::limit(&store, "narrow");
    store.enqueue(support::limited_jobs("narrow")).unwrap();
    store.enqueue(vec![NewJob { execute_after: Some(1_000_500), ..noop() }]).unwrap();
    clock.advance_ms(1_000);
    plans.lock().unwrap().clear();

    let claim = |scope: Scope, limit: usize| match store.claim(request(worker_id, scope, limit)).unwrap() {
        Claims::Jobs(jobs) => jobs,
        Claims::Fenced => panic!("worker {worker_id} is fenced"),
    };
    store.has_claimable(&request(worker_id, Scope::Everything, 1)).unwrap();
    store.has_claimable(&request(worker_id, Scope::Runs(vec![run_id]), 1)).unwrap();
    let mut jobs = claim(Scope::Runs(vec![run_id]), 2);
    jobs.extend(claim(Scope::Everything, 1_000));
    let outcomes = [success(), failure()].into_iter().cycle();
    let finishes =
        jobs.iter().zip(outcomes).map(|(job, outcome)| support::finish(worker_id, job, outcome)).collect();
    store.finish_and_claim(finishes, None).unwrap();
    let reported = claim(Scope::Everything, 10)[0].id;
    client.batch_execute(&format!("UPDATE jobs SET status = 'SUCCESSFUL' WHERE id = {reported}")).unwrap();
    assert_eq!(store.settle_reports().unwrap(), 1);
    store.heartbeat(worker_id).unwrap();
    store.cancel_requests(worker_id).unwrap();
    store.next_due().unwrap();
    store.promote_due().unwrap();
    store.admit_waiting("").unwrap();
    store.live_workers().unwrap();
    store.has_orphans(&[]).unwrap();
    store.rescue(vec![(99, 0)]).unwrap();
    store.run(run_id).unwrap();
    store.run_context(run_id).unwrap();
    store.outputs(run_id, &["j0".to_owned()]).unwrap();
    store.find_job_by_name(run_id, "j0").unwrap();
    store.prune_step(support::older_than(clock.now_ms() - 500)).unwrap();
    support::fire_schedules(&store, &clock);
    std::mem::take(&mut *plans.lock().unwrap())
}

#[test]
fn no_statement_that_runs_all_the_time_reads_a_table_from_end_to_end_on_postgres() {
    let plans = plans();
    assert!(plans.len() >= 25, "{} statements were recorded", plans.len());
    let tables = ["jobs", "runs", "job_dependencies", "job_attempts", "job_logs", "occurrences"];
    for (statement, plan) in &plans {
        for (step, next) in plan.iter().zip(plan.iter().skip(1).map(String::as_str).chain([""])) {
            // Every job of every run is found by that.
            assert!(!step.ends_with("Index Cond: (run_id IS NOT NULL)"), "{step}, in: {statement}");
            // Within a statement the choice of rows to lock would be made anew for each row.
            let locks_again = step.contains("LockRows") && statement.contains("UPDATE jobs");
            assert!(!locks_again, "{step}, in: {statement}");
            // The indexes of what waits, runs and lives are small. Others are never read as a whole.
            let whole = ["pkey", "jobs_name", "jobs_finished_alone", "jobs_failed", "runs_finished"].iter();
            let reads_an_index = step.contains("Index")
                && step.contains(" using ")
                && !next.contains("Index Cond")
                && whole.clone().any(|index| step.contains(index));
            assert!(!reads_an_index, "{step}, in: {statement}\n{}", plan.join("\n"));
            let reads_a_table = tables.iter().any(|table| {
                ["Seq Scan", "Bitmap Heap Scan"]
                    .iter()
                    .any(|scan| step.contains(&format!("{scan} on {table}")))
            });
            assert!(!reads_a_table, "{step}, in: {statement}\n{}", plan.join("\n"));
        }
    }
}

/// What is claimed and finished is found by ids; the head of the queue by its index, without sorting.
#[test]
fn a_claim_costs_the_same_whatever_waits_on_postgres() {
    let plans = plans();
    let plan_of = |part: &str| {
        let found = plans.iter().find(|(statement, _plan)| statement.contains(part));
        found.unwrap_or_else(|| panic!("no statement with {part:?}")).1.join("\n")
    };
    for (part, index) in [
        ("SET status = 'RUNNING', worker_id", "Index Scan using jobs_pkey on jobs\n"),
        ("SET status = CASE WHEN jobs.cancel_requested_at", "Index Scan using jobs_pkey on jobs\n"),
        ("SET blocked_by = jobs.blocked_by - satisfied.edges", "Index Scan using jobs_pkey on jobs\n"),
        ("ORDER BY {rank}, id LIMIT $2 {lock}", "Index Scan using jobs_claim on jobs\n"),
        ("ORDER BY {rank}, id LIMIT $6", "Index Scan using jobs_claim_in_run on jobs\n"),
        ("ORDER BY execute_after, id LIMIT $2", "Index Scan using jobs_due on jobs\n"),
        ("SET status = CASE WHEN concurrency_key IS NULL", "Index Scan using jobs_pkey on jobs\n"),
    ] {
        let plan = plan_of(part);
        assert!(plan.contains(index), "{part}\n{plan}");
        assert!(!plan.contains("Sort"), "{part}\n{plan}");
    }
    // From lane to lane by one seek: else a claim would read all that waits.
    let plan = plan_of("heads (id)");
    let seek = "Index Cond: (ROW(queue, kind, requires, version) >= ROW(COALESCE(head.queue";
    assert!(plan.contains(seek) && !plan.contains("Sort"), "{plan}");
}
