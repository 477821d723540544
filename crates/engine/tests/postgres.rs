//! What only concerns PostgreSQL: connecting, and broken connections.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/proxy.rs"]
#[allow(dead_code, unreachable_pub)]
mod proxy;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use proxy::{Break, Proxy};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Connection, Database, Durability, OpenMode, Recovery, one};
use windlass_engine::store::{JobFilter, NewJob, Store};
use windlass_engine::{Clock, Error, Random, TABLES, Unavailable};
use windlass_system::wake_ups::WakeUps;
use windlass_test_server::{Pooler, PrivateServer, Schema};

fn address(url: &str) -> PostgresAddress {
    PostgresAddress::parse(url, &|_name| None).unwrap()
}

fn open(url: &str) -> Store {
    open_with(url, &Clock::system().adjustable())
}

fn open_with(url: &str, clock: &Clock) -> Store {
    // Each process has a different seed.
    static SEED: AtomicU64 = AtomicU64::new(1);
    let random = Random::from_seed(SEED.fetch_add(1, Ordering::Relaxed));
    let options =
        PostgresOptions { clock: clock.clone(), random: random.clone(), ..PostgresOptions::default() };
    let database = PostgresDatabase::open(&address(url), &TABLES, &options).unwrap();
    Store::new(Arc::new(database), clock.clone(), random)
}

fn noop() -> NewJob {
    NewJob::new("noop", "null")
}

fn count(store: &Store) -> usize {
    store.jobs().list(&JobFilter::newest(1_000)).unwrap().rows.len()
}

fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The address of the same schema, through a network that breaks.
fn through(proxy: &Proxy, schema: &Schema) -> String {
    let (before_port, after_port) = port_of(&schema.url());
    format!("{before_port}{}{after_port}", proxy.port())
}

/// The parts of an address on 127.0.0.1 before and after the port.
fn port_of(url: &str) -> (String, String) {
    let (host, rest) = url.split_once("127.0.0.1:").unwrap();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap();
    (format!("{host}127.0.0.1:"), rest[end..].to_owned())
}

fn server_port(schema: &Schema) -> u16 {
    let url = schema.url();
    let (_, rest) = url.split_once("127.0.0.1:").unwrap();
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap();
    rest[..end].parse().unwrap()
}

#[test]
fn a_commit_whose_answer_was_lost_is_kept_once() {
    let schema = Schema::new();
    let proxy = Proxy::before(server_port(&schema));
    let store = open(&through(&proxy, &schema));
    for (number, wanted) in [(1, Break::BeforeCommit), (2, Break::AfterCommit)] {
        proxy.break_once(wanted);
        let ids = store.jobs().enqueue(vec![noop()]).unwrap();
        assert_eq!(proxy.broken(), number, "{wanted:?}: the connection broke at the commit");
        assert_eq!(count(&store), number, "{wanted:?}: exactly one row was made");
        assert!(store.jobs().find(ids[0]).unwrap().is_some(), "{wanted:?}: it is the one that was answered");
    }
}

#[test]
fn dead_connections_in_the_pool_are_skipped() {
    let server = PrivateServer::new(&[]);
    let store = open(&server.url());
    store.jobs().enqueue(vec![noop()]).unwrap();
    assert!(server.kill_backends() > 0);
    store.jobs().enqueue(vec![noop()]).unwrap();
    server.kill_backends();
    assert_eq!(count(&store), 2, "the same for a read");
    server.stop_immediate();
    server.start();
    store.jobs().enqueue(vec![noop()]).unwrap();
    assert_eq!(count(&store), 3);
}

#[test]
fn a_missing_server_and_a_refusing_one_give_different_errors() {
    let server = PrivateServer::new(&[]);
    let store = open(&server.url());
    server.stop_fast();
    let error = store.jobs().enqueue(vec![noop()]).unwrap_err();
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::Unreachable(_), .. }), "{error}");
    assert!(error.is_temporary(), "waiting may help");
    let opened = PostgresDatabase::open(&address(&server.url()), &TABLES, &PostgresOptions::default());
    let error = opened.err().unwrap();
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::Unreachable(_), .. }), "{error}");
    server.start();
    let nowhere = server.url().replace("/postgres", "/nowhere");
    let error =
        PostgresDatabase::open(&address(&nowhere), &TABLES, &PostgresOptions::default()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::Refused { .. }, .. }), "{error}");
    assert!(!error.is_temporary(), "waiting does not help");
}

/// Like a stopped server or a machine that hangs: the operating system accepts the connection.
#[test]
fn connecting_to_a_silent_server_times_out() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let url = format!("postgres://somebody@127.0.0.1:{port}/db?connect_timeout=1&sslmode=disable");
        ended
            .send(PostgresDatabase::open(&address(&url), &TABLES, &PostgresOptions::default()).err())
            .unwrap();
    });
    let error = end
        .recv_timeout(Duration::from_secs(60))
        .expect("connecting gave up")
        .expect("the silent server did not answer");
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::Unreachable(_), .. }), "{error}");
    assert!(error.to_string().contains("has not answered for 2 s"), "{error}");
    assert!(error.is_temporary(), "waiting may help");
}

/// The wait is longer than anybody waits for a connection of the pool, so the second connection must not try that
/// server first again.
#[test]
fn a_silent_server_is_skipped_and_then_tried_last() {
    let schema = Schema::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let (before, after) = port_of(&schema.url());
    let server_port = server_port(&schema);
    let url = format!("{before}{silent_port},127.0.0.1:{server_port}{after}&connect_timeout=3");
    let store = open(&url);
    store.jobs().enqueue(vec![noop()]).unwrap();
    assert_eq!(count(&store), 1);
    silent.set_nonblocking(true).unwrap();
    let asked = silent.incoming().take_while(Result::is_ok).count();
    assert_eq!(asked, 1, "the first connection has found out");
}

/// The only connection that listens is opened again by itself, even if the server does not answer for a while.
#[test]
fn listening_resumes_after_a_silent_server() {
    let server = PrivateServer::new(&[]);
    let proxy = Proxy::before(server.port());
    let (before, after) = port_of(&server.url());
    let store = open(&format!("{before}{}{after}?connect_timeout=1", proxy.port()));
    store.watch();
    let listens = || {
        let question = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'";
        server.client().query_one(question, &[]).unwrap().get::<_, i64>(0) > 0
    };
    wait_for("the listener", listens);
    proxy.accept_silently(1);
    server.kill_backends();
    wait_for("it to connect again", || proxy.silent_connections_left() == 0);
    wait_for("the listener to give up and to connect once more", listens);
}

#[test]
fn a_server_that_takes_no_writes_is_waited_for() {
    let server = PrivateServer::new(&[]);
    let store = open(&server.url());
    let mut client = server.client();
    client.batch_execute("ALTER SYSTEM SET default_transaction_read_only = on").unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    wait_for("the server to take no writes", || store.jobs().enqueue(vec![noop()]).is_err());
    let error = store.jobs().enqueue(vec![noop()]).unwrap_err();
    assert_eq!(error, Error::unavailable("enqueue jobs", Unavailable::Standby));
    assert!(error.is_temporary());
    client.batch_execute("SET default_transaction_read_only = off").unwrap();
    client.batch_execute("ALTER SYSTEM RESET default_transaction_read_only").unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    wait_for("writes", || store.jobs().enqueue(vec![noop()]).is_ok());
}

#[test]
fn processes_that_open_together_create_the_tables_once() {
    let schema = Schema::new();
    let url = schema.url();
    let missing = PostgresOptions { mode: OpenMode::Existing, ..PostgresOptions::default() };
    let error = PostgresDatabase::open(&address(&url), &TABLES, &missing).err().unwrap();
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::NoTables(_), .. }), "{error}");
    let openers: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || open(&url).instance().unwrap())
        })
        .collect();
    let instances: Vec<String> = openers.into_iter().map(|opener| opener.join().unwrap()).collect();
    assert!(instances.iter().all(|instance| *instance == instances[0]), "{instances:?}");
}

#[test]
fn a_role_without_access_to_the_schema_creates_no_tables_elsewhere() {
    let server = PrivateServer::new(&[]);
    open(&server.url());
    server.client().batch_execute("CREATE ROLE stranger LOGIN").unwrap();
    let url = server.url().replace("postgres@", "stranger@");
    let error = PostgresDatabase::open(&address(&url), &TABLES, &PostgresOptions::default()).err().unwrap();
    assert!(matches!(error, Error::Unavailable { reason: Unavailable::Forbidden(_), .. }), "{error}");
    assert!(error.to_string().contains("GRANT USAGE ON SCHEMA windlass TO stranger"), "{error}");
}

#[test]
fn the_clock_of_a_process_follows_the_server() {
    let schema = Schema::new();
    let clock = Clock::system().adjustable();
    clock.adjust(0, 0..=clock.monotonic_ms());
    let store = open_with(&schema.url(), &clock);
    let row = schema
        .client()
        .query_one("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)", &[])
        .unwrap();
    let server_ms: i64 = row.get(0);
    let apart_ms = (store.clock().now_ms() - server_ms).abs();
    assert!(apart_ms < 5_000, "{apart_ms} ms apart, and it was set to 1970");
}

#[test]
fn other_processes_are_notified_of_commits_and_of_inserts_by_other_programs() {
    let schema = Schema::new();
    let (told, teller) = (open(&schema.url()), open(&schema.url()));
    told.watch();
    let pending = told.listen(WakeUps::PENDING);
    let long = Duration::from_secs(30);
    wait_for("the listener to be ready", || {
        teller.jobs().enqueue(vec![noop()]).unwrap();
        pending.wait(Duration::from_millis(100)).intersects(WakeUps::PENDING)
    });
    while pending.wait(Duration::from_millis(300)).intersects(WakeUps::PENDING) {}
    // The wake-up says that anything may have changed, because the change was found by polling.
    let anything = told.listen(WakeUps::FOREIGN);
    teller.jobs().enqueue(vec![noop()]).unwrap();
    let heard = anything.wait(long);
    assert!(heard.intersects(WakeUps::PENDING), "{heard:?}");
    assert!(!heard.intersects(WakeUps::CANCEL), "notified, and not found by polling: {heard:?}");
    while pending.wait(Duration::from_millis(300)).intersects(WakeUps::PENDING) {}
    let due = told.listen(WakeUps::DUE);
    schema.client().batch_execute("INSERT INTO jobs (kind) VALUES ('noop')").unwrap();
    assert!(due.wait(long).intersects(WakeUps::DUE), "another program inserted a row");
}

#[test]
fn a_character_that_the_server_cannot_store_is_replaced() {
    let schema = Schema::new();
    let store = open(&schema.url());
    let mut job = NewJob::new("a\0b", r#"{"escaped": "\u0000", "literal": "\\u0000"}"#);
    job.queue = "q\0".to_owned();
    let id = store.jobs().enqueue(vec![job]).unwrap()[0];
    let job = store.jobs().get(id).unwrap();
    assert_eq!((job.kind.as_str(), job.queue.as_str()), ("a\u{fffd}b", "q\u{fffd}"));
    assert_eq!(job.payload, r#"{"escaped": "\u0000", "literal": "\\u0000"}"#, "an escaped character is kept");
}

#[test]
fn the_requested_durability_is_set() {
    let server = PrivateServer::new(&[("synchronous_commit", "off")]);
    let schema = Schema::new();
    let (own, hasty) = (schema.url(), server.url());
    let synchronous = |url: &str, options: &PostgresOptions| {
        let database = PostgresDatabase::open(&address(url), &TABLES, options).unwrap();
        let found = Arc::new(Mutex::new(String::new()));
        let slot = Arc::clone(&found);
        let operation = Box::new(move |connection: &mut dyn Connection| {
            let sql = "SELECT current_setting('synchronous_commit')";
            *slot.lock().unwrap() = one(connection, sql, &[], |row| row.text(0))?;
            Ok(())
        });
        database.write("read a setting", operation, Recovery::Report).unwrap();
        found.lock().unwrap().clone()
    };
    let asked_for = |durability| PostgresOptions { durability, ..PostgresOptions::default() };
    for url in [&own, &hasty] {
        assert_eq!(synchronous(url, &PostgresOptions::default()), "on", "the default is full durability");
        assert_eq!(synchronous(url, &asked_for(Durability::Full)), "on");
        assert_eq!(synchronous(url, &asked_for(Durability::Normal)), "off");
    }
}

#[test]
fn a_deadlock_is_retried_without_an_error() {
    let server = PrivateServer::new(&[("deadlock_timeout", "20ms")]);
    let database =
        PostgresDatabase::open(&address(&server.url()), &TABLES, &PostgresOptions::default()).unwrap();
    let database = Arc::new(database);
    // In the first round both transactions hold one row before they ask for the other: a deadlock.
    let meet = Arc::new(Barrier::new(2));
    let lock = |database: &PostgresDatabase, names: [&'static str; 2], round: i64, meet: &Arc<Barrier>| {
        let (meet, mut is_to_meet) = (Arc::clone(meet), round == 0);
        database.write(
            "lock two rows",
            Box::new(move |connection| {
                for name in names {
                    connection.execute(
                        "INSERT INTO queues (name) VALUES ($1)
                         ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(queues.paused_at, 0) + 1",
                        &[name.into()],
                    )?;
                    if std::mem::take(&mut is_to_meet) {
                        meet.wait();
                    }
                }
                Ok(())
            }),
            Recovery::Report,
        )
    };
    let (other, other_meets) = (Arc::clone(&database), Arc::clone(&meet));
    const ROUNDS: i64 = 100;
    let opposite = std::thread::spawn(move || {
        (0..ROUNDS).try_for_each(|round| lock(&other, ["b", "a"], round, &other_meets))
    });
    (0..ROUNDS).try_for_each(|round| lock(&database, ["a", "b"], round, &meet)).unwrap();
    opposite.join().unwrap().unwrap();
    let mut client = server.client();
    let row = client.query_one("SELECT sum(paused_at)::BIGINT FROM windlass.queues", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 2 * (2 * ROUNDS - 1), "each transaction was kept once");
    assert!(server.log().contains("deadlock detected"), "there was a deadlock");
}

/// The server's connections move between clients after each transaction, so no notifications arrive.
#[test]
fn everything_works_behind_a_pooler_in_transaction_mode() {
    let schema = Schema::new();
    let pooler = Pooler::before(server_port(&schema));
    let (before, after) = port_of(&schema.url());
    let url = format!("{before}{}{after}", pooler.port());
    let clock = Clock::system().adjustable();
    let store = open_with(&url, &clock);
    store.watch();
    clock.adjust(0, 0..=0);
    let pending = store.listen(WakeUps::PENDING);
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let store = open(&url);
            std::thread::spawn(move || {
                (0..20).for_each(|_| {
                    store.jobs().enqueue(vec![noop(), noop()]).unwrap();
                    count(&store);
                });
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(count(&store), 320);
    assert_eq!(store.upkeep().check().unwrap(), []);
    // Without notifications, changes are found by polling.
    while pending.wait(Duration::from_millis(5)).intersects(WakeUps::PENDING) {}
    assert!(pending.wait(Duration::from_secs(30)).intersects(WakeUps::PENDING));
    wait_for("the server's time", || clock.now_ms() > 1_000_000_000_000);
}
