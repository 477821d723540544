//! What lists, counts and reports read on PostgreSQL: no whole table, and no more rows than the answer needs. Reads are
//! planned for the statistics of the moment, which autovacuum renews when a fiftieth of the rows has changed.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::{Arc, Mutex};

use support::reading;
use support::tapped::{Tap, Tapped};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Dialect, Statement, all};
use windlass_engine::{Clock, Random, Store, TABLES};
use windlass_test_server::Schema;

/// More rows than any step of a page or report of a few rows reads or drops.
const ROWS_MAX: f64 = 3_000.0;

/// The plans of some reads with the rows of each step, in a database that was used for long.
fn plans(read: fn(&Store)) -> Vec<(Statement, Vec<String>)> {
    let schema = Schema::new();
    let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
    let clock = Clock::manual(200_000_000);
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let inner = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    let mut client = schema.client();
    client.batch_execute(&reading::FILL.join(";")).unwrap();
    client.batch_execute("ANALYZE").unwrap();
    let plans = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&plans);
    let tap: Tap = Arc::new(move |connection, statement, parameters| {
        let text = &statement.texts(Dialect::Postgres, TABLES.fragments)[0];
        let explain = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {text}");
        let plan = all(connection, explain.leak(), parameters, |row| row.text(0))?;
        kept.lock().unwrap().push((statement, plan));
        Ok(())
    });
    let database = Arc::new(Tapped::new(inner, tap));
    read(&Store::new(database, clock, Random::from_seed(1)));
    std::mem::take(&mut *plans.lock().unwrap())
}

/// The number after a word in a line of a plan.
fn number_after(line: &str, word: &str) -> f64 {
    let digits = line.split_once(word).map_or("", |(_before, after)| after);
    let end = digits.find(|character: char| !character.is_ascii_digit() && character != '.');
    digits[..end.unwrap_or(digits.len())].trim_end_matches('.').parse().unwrap_or(0.0)
}

fn assert_no_table_is_read_whole(plans: &[(Statement, Vec<String>)]) {
    assert!(!plans.is_empty());
    for (statement, plan) in plans {
        let is_whole = ["jobs", "runs", "job_logs", "job_dependencies", "job_attempts"]
            .iter()
            .any(|table| plan.iter().any(|step| step.contains(&format!("Seq Scan on {table}"))));
        assert!(!is_whole, "{statement}\n{}", plan.join("\n"));
    }
}

#[test]
fn lists_and_reports_read_no_more_rows_than_they_need_on_postgres() {
    let plans = plans(reading::read_by_indexes);
    assert_no_table_is_read_whole(&plans);
    for (statement, plan) in plans {
        let most = plan.iter().map(|line| {
            let loops = number_after(line, "loops=").max(1.0);
            let rows = number_after(line, "actual rows=").max(number_after(line, "Removed by Filter: "));
            rows * loops
        });
        let most = most.fold(0.0, f64::max);
        assert!(most < ROWS_MAX, "{most} rows in: {statement}\n{}", plan.join("\n"));
    }
}

#[test]
fn counts_and_searches_read_along_indexes_on_postgres() {
    assert_no_table_is_read_whole(&plans(reading::read_to_a_bound));
}
