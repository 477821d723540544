//! Statements on tables that the server believes to be empty, although they are not. An interrupted copy leaves pages
//! without rows, and the server counts those before the next copy starts. No statement may read all of `jobs` again
//! for each row.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use support::tapped::{Tap, Tapped};
use support::{failure, graph, noop, request, success};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Connection, Dialect, Statement, Value, all};
use windlass_engine::store::{Claims, RetrySelection, Scope};
use windlass_engine::{Clock, Random, Result, RunStatus, Store, TABLES};
use windlass_test_server::Schema;

/// Standalone jobs.
const LONE_JOBS: usize = 2_000;
/// A run has this many layers of this many jobs. Each job needs all jobs of the previous layer.
const LAYERS: usize = 3;
const LAYER_JOBS: usize = 20;
/// All rows of the tables, approximately.
const ROWS: u64 = (LONE_JOBS + LAYERS * LAYER_JOBS + (LAYERS - 1) * LAYER_JOBS * LAYER_JOBS) as u64;
/// How often a statement may look at each row. A statement that reads `jobs` for each edge would look at it some
/// hundred times.
const VISITS_MAX: u64 = 10;

/// How many rows each statement looked at in its most expensive run, and with which plan.
type Visits = BTreeMap<String, (u64, Vec<String>)>;

/// A schema whose statistics say that these tables have no rows, although they have pages.
fn schema_with_empty_statistics(tables: &str) -> Schema {
    let schema = Schema::new();
    drop(open(&schema, &Clock::manual(1_000_000)));
    let mut client = schema.client();
    client
        .batch_execute(&format!(
            "ALTER TABLE jobs SET (autovacuum_enabled = false);
             ALTER TABLE runs SET (autovacuum_enabled = false);
             ALTER TABLE job_dependencies SET (autovacuum_enabled = false);
             BEGIN;
             INSERT INTO runs (workflow) VALUES ('lost');
             INSERT INTO jobs (kind) SELECT 'noop' FROM generate_series(1, {LONE_JOBS});
             INSERT INTO job_dependencies (parent_id, child_id)
             SELECT min(jobs.id), min(jobs.id) + n FROM jobs CROSS JOIN generate_series(1, 1000) AS n GROUP BY n;
             ROLLBACK;
             ANALYZE {tables};"
        ))
        .unwrap();
    let believed = client
        .query_one("SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = CAST('jobs' AS regclass)", &[])
        .unwrap();
    assert_eq!(believed.get::<_, i64>(0), 0);
    schema
}

fn open(schema: &Schema, clock: &Clock) -> PostgresDatabase {
    let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    PostgresDatabase::open(&address, &TABLES, &options).unwrap()
}

/// A store that counts the rows at which its statements look.
fn counting(schema: &Schema, clock: &Clock) -> (Store, Arc<Mutex<Visits>>) {
    let visits = Arc::new(Mutex::new(Visits::new()));
    let kept = Arc::clone(&visits);
    let tap: Tap = Arc::new(move |connection, statement, parameters| {
        let plan = executed_plan(connection, statement, parameters)?;
        let rows = rows_in(&plan);
        let sql = statement.to_string();
        let mut visits = kept.lock().unwrap();
        if visits.get(&sql).is_none_or(|(most, _plan)| rows > *most) {
            visits.insert(sql, (rows, plan));
        }
        Ok(())
    });
    let database = Arc::new(Tapped::new(open(schema, clock), tap));
    (Store::new(database, clock.clone(), Random::from_seed(1)), visits)
}

/// Executes a statement before it runs, rolls it back, and returns the plan with its row counts.
fn executed_plan(
    connection: &mut dyn Connection,
    statement: Statement,
    parameters: &[Value<'_>],
) -> Result<Vec<String>> {
    let list = |parts: Vec<String>| match parts.is_empty() {
        true => String::new(),
        false => format!("({})", parts.join(", ")),
    };
    let types = list(parameters.iter().map(|value| type_of(value).to_owned()).collect());
    let text = &statement.texts(Dialect::Postgres, TABLES.fragments)[0];
    connection.batch(&format!("SAVEPOINT before; PREPARE counted {types} AS {text}"))?;
    let explain =
        format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE counted {}", list(literals(parameters)));
    let plan = all(connection, explain.leak(), &[], |row| row.text(0))?;
    connection.batch("ROLLBACK TO SAVEPOINT before; DEALLOCATE counted")?;
    Ok(plan)
}

/// The rows that the nodes of a plan returned or filtered out, in all loops.
fn rows_in(plan: &[String]) -> u64 {
    let number_after = |line: &str, words: &str| -> Option<u64> {
        let digits = line.split_once(words)?.1;
        digits.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
    };
    let (mut rows, mut loops) = (0, 1);
    for line in plan {
        if let Some(given) = number_after(line, "actual rows=") {
            loops = number_after(line, "loops=").unwrap();
            rows += given * loops;
        } else if line.trim_start().starts_with("Rows Removed") {
            rows += number_after(line, ": ").unwrap() * loops;
        }
    }
    rows
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

/// The parameters as SQL. Each column of a set of rows is one parameter, and the columns after the first come last.
fn literals(parameters: &[Value<'_>]) -> Vec<String> {
    let column = |values: &[Value<'_>], width: usize, place: usize| {
        let texts: Vec<String> = values.iter().skip(place).step_by(width.max(1)).map(literal).collect();
        // As one text, because the statement says which type it has.
        let unquoted = texts.iter().map(|text| match text.strip_prefix('\'') {
            Some(rest) => {
                format!("\"{}\"", rest[..rest.len() - 1].replace('\\', "\\\\").replace('"', "\\\""))
            }
            None => text.clone(),
        });
        format!("'{{{}}}'", unquoted.collect::<Vec<_>>().join(","))
    };
    let mut literals = Vec::new();
    let mut columns = Vec::new();
    for value in parameters {
        if let Value::Rows { values, width } = value {
            literals.push(column(values, *width, 0));
            columns.extend((1..*width).map(|place| column(values, *width, place)));
        } else {
            literals.push(literal(value));
        }
    }
    literals.extend(columns);
    literals
}

fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Rows { .. } => unreachable!("a set in a set"),
    }
}

fn layered() -> windlass_workflow::Workflow {
    let jobs = 0..LAYERS * LAYER_JOBS;
    graph(
        jobs.map(|job| match job / LAYER_JOBS {
            0 => Vec::new(),
            layer => ((layer - 1) * LAYER_JOBS..layer * LAYER_JOBS).collect(),
        })
        .collect(),
    )
}

/// Fills a store. Returns the id of its run.
fn fill(store: &Store) -> i64 {
    let run_id = support::submit(store, layered());
    store.jobs().enqueue(vec![noop(); LONE_JOBS]).unwrap();
    run_id
}

fn assert_bounded(visits: &Mutex<Visits>, statements_min: usize) {
    let visits = visits.lock().unwrap();
    assert!(visits.len() >= statements_min, "{} statements were counted", visits.len());
    let wrong: Vec<String> = visits
        .iter()
        .filter(|(_statement, (rows, _plan))| *rows > ROWS * VISITS_MAX)
        .map(|(statement, (rows, plan))| format!("{rows} of {ROWS} rows: {statement}\n{}", plan.join("\n")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_copy_after_an_interrupted_copy_reads_each_row_a_few_times() {
    let (folder, schema, clock) = (
        tempfile::tempdir().unwrap(),
        schema_with_empty_statistics("runs, jobs, job_dependencies"),
        Clock::manual(1_000_000),
    );
    let file =
        SqliteDatabase::open(&folder.path().join("source.db"), &TABLES, &SqliteOptions::default()).unwrap();
    let source = Store::new(Arc::new(file), clock.clone(), Random::from_seed(1));
    fill(&source);
    let (target, visits) = counting(&schema, &clock);
    source.upkeep().copy_to(&target).unwrap();
    assert_bounded(&visits, 30);
    let row = schema
        .client()
        .query_one("SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = CAST('jobs' AS regclass)", &[])
        .unwrap();
    let jobs = i64::try_from(LONE_JOBS + LAYERS * LAYER_JOBS).unwrap();
    assert_eq!(row.get::<_, i64>(0), jobs, "the next statements are planned with correct statistics");
}

#[test]
fn no_statement_reads_a_table_for_each_row_with_empty_statistics() {
    let (schema, clock) = (schema_with_empty_statistics("runs, jobs"), Clock::manual(1_000_000));
    let (store, visits) = counting(&schema, &clock);
    let run_id = fill(&store);
    let worker_id = store.for_workers().register(support::new_worker()).unwrap();
    clock.advance_ms(1_000);
    store.for_scheduler().promote_due().unwrap();

    // Statements that people run.
    assert_eq!(store.upkeep().check().unwrap(), []);
    let last =
        store.jobs().find_by_name(run_id, &format!("j{}", LAYERS * LAYER_JOBS - 1)).unwrap().unwrap().id;
    store.jobs().why(last).unwrap();
    assert_eq!(store.jobs().parents(last).unwrap().len(), LAYER_JOBS);
    assert_eq!(store.jobs().dependencies(run_id).unwrap().len(), (LAYERS - 1) * LAYER_JOBS * LAYER_JOBS);
    store.upkeep().stats().unwrap();
    store.upkeep().health().unwrap();
    store.jobs().of_run(run_id).unwrap();
    store.runs().job_counts(run_id).unwrap();
    store.queues().list().unwrap();

    // Statements of a worker, with a run that fails, is retried, and succeeds.
    for outcome in [failure(), success()] {
        while store.runs().get(run_id).unwrap().finished_at.is_none() {
            let wanted = request(worker_id, Scope::Runs(vec![run_id]), LAYER_JOBS);
            let Claims::Jobs(jobs) = store.for_workers().claim(wanted).unwrap() else { panic!("fenced") };
            let ends = jobs.iter().map(|job| support::finish(worker_id, job, outcome.clone())).collect();
            store.for_workers().finish_and_claim(ends, None).unwrap();
            clock.advance_ms(3_600_000);
            store.for_scheduler().promote_due().unwrap();
        }
        if store.runs().get(run_id).unwrap().status == RunStatus::Failed {
            store.runs().retry(run_id, RetrySelection::Failed).unwrap();
        }
    }
    store.runs().retry(run_id, RetrySelection::From("j0".to_owned())).unwrap();
    store.runs().cancel(run_id).unwrap();

    // Statements of upkeep.
    store.for_scheduler().rescue(vec![(worker_id, 0)]).unwrap();
    store.for_scheduler().reconcile_step(0).unwrap();
    store.for_scheduler().admit_waiting("").unwrap();
    store.for_scheduler().apply_reports().unwrap();
    store.for_scheduler().next_due().unwrap();
    store.for_scheduler().prune_step(support::older_than(clock.now_ms())).unwrap();
    assert_bounded(&visits, 60);
}
