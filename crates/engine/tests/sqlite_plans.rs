//! The plans of the most frequent statements: each uses an index that holds only the rows it needs, so that its cost
//! does not depend on the other rows.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use support::tapped::{Tap, Tapped};
use support::{failure, graph, noop, request, success};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Dialect, Statement};
use windlass_engine::store::{Claims, NewJob, Scope};
use windlass_engine::{Clock, Random, Store, TABLES};
use windlass_test_database::TestDatabase;

type Statements = Arc<Mutex<BTreeSet<Statement>>>;

/// Runs everything that a worker and a scheduler do frequently.
fn record(path: &Path) -> BTreeSet<Statement> {
    let inner = SqliteDatabase::open(path, &TABLES, &SqliteOptions::default()).unwrap();
    let statements = Statements::default();
    let clock = Clock::manual(1_000_000);
    let noted = Arc::clone(&statements);
    let tap: Tap = Arc::new(move |_connection, statement, _parameters| {
        noted.lock().unwrap().insert(statement);
        Ok(())
    });
    let database = Arc::new(Tapped::new(inner, tap));
    let store = Store::new(database, clock.clone(), Random::from_seed(1));
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    let bench = support::Bench { store, clock, database, folder };
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![0, 1], vec![]]));
    bench.enqueue(noop());
    bench.enqueue(NewJob { execute_after: Some(2_000_000), ..noop() });
    statements.lock().unwrap().clear();

    bench.store.for_workers().has_claimable(&request(worker, Scope::Everything, 1)).unwrap();
    bench.store.for_workers().has_claimable(&request(worker, Scope::Runs(vec![run_id]), 1)).unwrap();
    // One claim is by run, the others are by queue and kind.
    let Claims::Jobs(mut jobs) =
        bench.store.for_workers().claim(request(worker, Scope::Runs(vec![run_id]), 1)).unwrap()
    else {
        panic!("worker {worker} is fenced");
    };
    jobs.extend(bench.claim(worker, 10));
    bench.finish_all(&[(worker, jobs[0].clone(), success()), (worker, jobs[1].clone(), failure())]);
    bench.finish(worker, &jobs[2], success());
    bench.store.for_workers().heartbeat(worker).unwrap();
    bench.store.for_workers().cancel_requests(worker).unwrap();
    bench.store.for_scheduler().next_due().unwrap();
    bench.store.for_scheduler().promote_due().unwrap();
    bench.store.for_scheduler().decide_waiting().unwrap();
    bench.store.for_scheduler().dispatch_events().unwrap();
    bench.store.for_scheduler().admit_waiting("").unwrap();
    bench.store.workers().live().unwrap();
    bench.store.for_scheduler().has_orphans(&[]).unwrap();
    bench.store.for_scheduler().rescue(vec![(99, 0)]).unwrap();
    let reported = bench.enqueue(noop());
    assert!(bench.claim(worker, 10).iter().any(|job| job.id == reported));
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute("UPDATE jobs SET status = 'SUCCESSFUL' WHERE id = ?1", [reported]).unwrap();
    drop(raw);
    assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 1);
    bench.store.runs().get(run_id).unwrap();
    bench.store.runs().context(run_id).unwrap();
    bench.store.jobs().values(run_id, &["j0".to_owned()]).unwrap();
    bench.store.jobs().find_by_name(run_id, "j0").unwrap();
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms() + 1)).unwrap().jobs,
        2
    );
    support::limit(&bench.store, "narrow");
    bench.store.jobs().enqueue(support::limited_jobs("narrow")).unwrap();
    assert!(bench.store.for_workers().has_claimable(&request(worker, Scope::Everything, 10)).unwrap());
    let limited = bench.claim(worker, 10);
    bench.store.for_scheduler().admit_waiting("").unwrap();
    bench.finish(worker, limited.last().unwrap(), success());
    support::limit_runs(&bench.store, worker);
    support::notify_of_groups(&bench.store, worker);
    bench.store.variables().set("cursor", "1").unwrap();
    bench.store.variables().values(&BTreeSet::from(["cursor".to_owned()])).unwrap();
    support::fire_schedules(&bench.store, &bench.clock);
    drop(bench);
    std::mem::take(&mut *statements.lock().unwrap())
}

#[test]
fn no_frequent_statement_scans_a_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path);
    assert!(statements.len() >= 20, "{} statements were recorded", statements.len());
    let raw = rusqlite::Connection::open(&path).unwrap();
    for statement in statements {
        for step in texts(statement).iter().flat_map(|text| plan(&raw, text)) {
            let reads_a_table = [
                "jobs",
                "runs",
                "job_dependencies",
                "job_attempts",
                "job_logs",
                "edges",
                "child",
                "occurrences",
                "schedules",
                "notifications",
            ]
            .iter()
            .any(|table| step == format!("SCAN {table}"));
            assert!(!reads_a_table, "{step}, in: {statement}");
            let sorts_the_claim =
                step.contains("TEMP B-TREE") && statement.to_string().contains("status = 'PENDING'");
            assert!(!sorts_the_claim, "{step}, in: {statement}");
        }
    }
}

/// The claim reads the first rows of an index of claimable jobs, in its order.
#[test]
fn the_claim_reads_its_index_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let ordered: Vec<Statement> = record(&path)
        .into_iter()
        .filter(|statement| statement.to_string().contains("ORDER BY {rank}, id LIMIT $"))
        .collect();
    assert_eq!(ordered.len(), 3, "by concurrency key, by claim partition, and by run");
    let raw = rusqlite::Connection::open(&path).unwrap();
    for (statement, index) in
        ordered.into_iter().zip(["jobs_claim ", "jobs_key_waiting ", "jobs_claim_in_run "])
    {
        let plan = plan(&raw, &texts(statement)[0]);
        assert!(plan[0].contains(index), "{plan:?}");
    }
}

/// The claim of a worker in another language, as the guide shows it, reads the same index in its order.
#[test]
fn the_claim_of_the_guide_reads_the_index_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    drop(SqliteDatabase::open(&path, &TABLES, &SqliteOptions::default()).unwrap());
    let page = include_str!("../../../docs/guide/sql-workers.md");
    let claim = page.split("```sql\n-- claim\n").nth(1).unwrap().split("```").next().unwrap();
    let plan = plan(&rusqlite::Connection::open(&path).unwrap(), claim);
    let head = "SEARCH jobs USING INDEX jobs_claim (queue=? AND kind=? AND requires=? AND code_version=?)";
    assert!(plan.iter().any(|step| step == head), "{plan:#?}");
    assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
}

/// The claim steps from partition to partition with one seek each. Otherwise it would read all waiting jobs.
#[test]
fn the_next_claim_partition_is_found_with_one_seek() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path);
    let candidates =
        statements.into_iter().find(|statement| statement.to_string().contains("candidates (id)")).unwrap();
    let candidates = &texts(candidates)[0];
    let raw = rusqlite::Connection::open(&path).unwrap();
    let plan = plan(&raw, candidates);
    let seek = "SEARCH next USING INDEX jobs_claim ((queue,kind,requires,code_version)>(?,?,?,?))";
    assert!(plan.iter().any(|step| step == seek), "{plan:#?}");
    // The plan does not show this: with `>`, SQLite would begin at the equal rows and read the whole partition.
    raw.execute_batch(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
         INSERT INTO jobs (kind, status) SELECT 'noop', 'PENDING' FROM numbers",
    )
    .unwrap();
    let mut statement = raw.prepare(candidates).unwrap();
    let mut rows = statement.raw_query();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    let steps = statement.get_status(rusqlite::StatementStatus::VmStep);
    assert!((1..1_000).contains(&steps), "{steps} steps of SQLite's machine for some lanes of 5,000 rows");
}

/// The items that run and the next one are found by the group and the state, in order, however many have ended.
#[test]
fn the_next_item_of_a_group_is_found_in_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path);
    let raw = rusqlite::Connection::open(&path).unwrap();
    for (part, step) in [
        (
            "status = 'BLOCKED' ORDER BY id LIMIT $2",
            "SEARCH jobs USING INDEX jobs_group (group_id=? AND status=?)",
        ),
        ("AND +group_id = $1", "SEARCH jobs USING COVERING INDEX jobs_group (group_id=? AND status=?)"),
        ("AND +group_id = $1", "SCAN jobs USING INDEX jobs_reported"),
    ] {
        let statement = statements.iter().find(|statement| statement.to_string().contains(part)).unwrap();
        let plan = plan(&raw, &texts(*statement)[0]);
        assert!(plan.iter().any(|known| known == step), "{part}: {plan:#?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{part}: {plan:#?}");
    }
}

/// A variable is found by its name, however many there are.
#[test]
fn a_variable_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let reads =
        statements.iter().filter(|statement| statement.to_string().contains("FROM variables WHERE name"));
    let plans: Vec<Vec<String>> = reads.map(|statement| plan(&raw, &texts(*statement)[0])).collect();
    assert_eq!(plans, [["SEARCH variables USING INDEX sqlite_autoindex_variables_1 (name=?)"]]);
}

/// What SQLite runs for a statement.
fn texts(statement: Statement) -> Vec<String> {
    statement.texts(Dialect::Sqlite, TABLES.fragments)
}

fn plan(raw: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut steps = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}
