#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::thread::{JoinHandle, yield_now};
use std::time::{Duration, Instant};

use windlass_test_server::Schema;

use super::*;
use crate::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use crate::random::Random;

fn open(schema: &Schema) -> Store {
    let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
    let options = PostgresOptions::default();
    let database = PostgresDatabase::open(&address, &options).unwrap();
    Store::new(Arc::new(database), options.clock, Random::from_seed(7))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
        yield_now();
    }
}

fn enqueue(store: &Store, jobs: Vec<NewJob>) -> JoinHandle<Result<Vec<i64>>> {
    let store = store.clone();
    std::thread::spawn(move || store.enqueue(jobs))
}

/// Has the server do something to each job that is inserted, as what somebody has added to the tables may.
fn before_each_row(schema: &Schema, what: &str) {
    let trigger = format!(
        "CREATE FUNCTION interfere() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {what} RETURN new; END$$;
         CREATE TRIGGER interferes BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION interfere()"
    );
    schema.client().batch_execute(&trigger).unwrap();
}

/// What callers get of whom each wants one job, and who go together.
fn together(store: &Store, kinds: &[&str]) -> Vec<Result<Vec<i64>>> {
    let jobs = kinds.iter().map(|kind| NewJob::new(*kind, "1")).collect();
    let parts: Vec<Range<usize>> = (0..kinds.len()).map(|place| place..place + 1).collect();
    store.accept_parts(&Arc::new(jobs), &parts)
}

/// Two jobs of a kind, which differ.
fn pair(kind: &str) -> Vec<NewJob> {
    vec![NewJob::new(kind, "1"), NewJob::new(kind, "2")]
}

/// What callers get who come while one of them waits for somebody that has locked the table.
fn all_at_once(schema: &Schema, kinds: &[&str]) -> Vec<Result<Vec<i64>>> {
    let store = open(schema);
    let mut locker = schema.client();
    locker.batch_execute("BEGIN; LOCK TABLE jobs").unwrap();
    let callers: Vec<_> = kinds.iter().map(|kind| enqueue(&store, pair(kind))).collect();
    until("somebody", || store.arrivals.queue.inside() == kinds.len());
    locker.batch_execute("COMMIT").unwrap();
    callers.into_iter().map(|caller| caller.join().unwrap()).collect()
}

#[test]
fn who_comes_while_others_are_accepted_goes_with_the_next_and_gets_its_own_ids() {
    const KINDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let schema = Schema::new();
    open(&schema);
    let accepted = all_at_once(&schema, &KINDS);
    let mut client = schema.client();
    for (kind, ids) in KINDS.into_iter().zip(accepted) {
        let rows =
            client.query("SELECT kind, payload FROM jobs WHERE id = ANY ($1) ORDER BY id", &[&ids.unwrap()]);
        let rows: Vec<(String, String)> = rows.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(rows, [(kind.to_owned(), "1".to_owned()), (kind.to_owned(), "2".to_owned())]);
    }
    let transactions = client.query("SELECT DISTINCT CAST(xmin AS TEXT) FROM jobs", &[]).unwrap();
    assert!(transactions.len() <= 3, "{} for eight: the first, and all others", transactions.len());
}

#[test]
fn of_several_that_go_together_one_fails_alone() {
    let schema = Schema::new();
    open(&schema);
    schema
        .client()
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN RAISE check_violation USING MESSAGE = 'not this one'; END$$;
             CREATE TRIGGER refuses BEFORE INSERT ON jobs FOR EACH ROW
             WHEN (new.kind = 'bad') EXECUTE FUNCTION refuse()",
        )
        .unwrap();
    let accepted = all_at_once(&schema, &["good", "good", "bad", "good", "good"]);
    let refused: Vec<usize> = (0..accepted.len()).filter(|place| accepted[*place].is_err()).collect();
    assert_eq!(refused, [2], "{accepted:?}");
    let ids: HashSet<i64> = accepted.into_iter().flatten().flatten().collect();
    assert_eq!(ids.len(), 8, "each has its own");
}

#[test]
fn who_lacks_a_right_for_its_jobs_takes_it_from_nobody_else() {
    let schema = Schema::new();
    let store = open(&schema);
    let refuse =
        "IF new.kind = 'secret' THEN RAISE insufficient_privilege USING MESSAGE = 'not yours'; END IF;";
    before_each_row(&schema, refuse);
    let accepted = together(&store, &["a", "secret", "b"]);
    assert!(matches!(accepted.as_slice(), [Ok(_), Err(_), Ok(_)]), "{accepted:?}");
}

#[test]
fn nobody_gets_anothers_id_where_a_job_is_left_out() {
    let schema = Schema::new();
    let store = open(&schema);
    before_each_row(&schema, "IF new.kind = 'unwanted' THEN RETURN NULL; END IF;");
    let accepted = together(&store, &["a", "unwanted", "b"]);
    let ids: Vec<i64> = accepted.iter().flatten().flatten().copied().collect();
    assert_eq!(accepted, [Ok(vec![ids[0]]), Ok(Vec::new()), Ok(vec![ids[1]])]);
    let kinds = ids.iter().map(|id| store.job(*id).unwrap().kind);
    assert_eq!(kinds.collect::<Vec<_>>(), ["a", "b"]);
}

/// Each may have to wait for as long as the one before it.
#[test]
fn what_is_wrong_with_the_database_is_not_tried_once_more_for_each() {
    let schema = Schema::new();
    let store = open(&schema);
    let refuse = "IF new.kind = 'bad' THEN RAISE check_violation; END IF;
                  IF new.kind = 'late' THEN RAISE lock_not_available; END IF;";
    before_each_row(&schema, refuse);
    let accepted = together(&store, &["a", "bad", "late", "b"]);
    let refused = Error::unavailable(WHAT, Unavailable::Locked);
    assert!(accepted[0].is_ok() && accepted[1].as_ref().is_err_and(Error::is_conflict), "{accepted:?}");
    assert_eq!(accepted[2..], [Err(refused.clone()), Err(refused)]);
}

/// Somebody holds its key in a transaction that does not end.
#[test]
fn who_waits_for_a_key_holds_nobody_up() {
    let schema = Schema::new();
    let store = open(&schema);
    let mut holder = schema.client();
    holder.batch_execute("BEGIN; INSERT INTO jobs (kind, unique_key) VALUES ('held', 'k')").unwrap();
    let waits = enqueue(&store, vec![NewJob { unique_key: Some("k".to_owned()), ..NewJob::new("a", "1") }]);
    let holder_pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    let mut observer = schema.client();
    until("the one with the key", || {
        observer.query_one(waiting, &[&holder_pid]).unwrap().get::<_, i64>(0) > 0
    });
    assert_eq!(store.enqueue(pair("b")).unwrap().len(), 2);
    assert!(!waits.is_finished());
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(waits.join().unwrap().unwrap().len(), 1);
}
