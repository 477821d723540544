//! A pool without a free connection says why.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Barrier;

use windlass_db::Database;
use windlass_db::postgres::{CONNECTIONS_MAX, PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::{Error, TABLES, Unavailable};
use windlass_test_server::PrivateServer;

fn open(url: &str) -> PostgresDatabase {
    let address = PostgresAddress::parse(url, &|_variable| None).unwrap();
    PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap()
}

fn reason(database: &PostgresDatabase) -> Unavailable {
    match database.read(&mut |connection| connection.query("SELECT 1", &[], &mut |_row| Ok(()))) {
        Err(Error::Unavailable { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exhausted_pool_and_an_exhausted_server_give_different_errors() {
    let server = PrivateServer::new(&[]);
    server.client().batch_execute("CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app").unwrap();
    let database = open(&server.url().replace("postgres@", "app@"));

    // The last connection is the listener's. The others are for transactions.
    let most = usize::try_from(CONNECTIONS_MAX - 1).unwrap();
    let (all_read, go_on) = (Barrier::new(most + 1), Barrier::new(most + 1));
    std::thread::scope(|scope| {
        for _thread in 0..most {
            scope.spawn(|| {
                let read = database.read(&mut |connection| {
                    connection.query("SELECT 1", &[], &mut |_row| Ok(()))?;
                    all_read.wait();
                    go_on.wait();
                    Ok(())
                });
                // On a slow machine the server may not have answered in time.
                let _lost = read;
            });
        }
        all_read.wait();
        let reason = reason(&database);
        go_on.wait();
        assert!(
            matches!(&reason, Unavailable::NoConnectionFree(why) if why.contains("each of the 10 of this process")),
            "{reason:?}"
        );
    });

    server.client().batch_execute("ALTER ROLE app CONNECTION LIMIT 0").unwrap();
    server.kill_backends();
    let reason = reason(&database);
    assert!(
        matches!(&reason, Unavailable::NoConnectionFree(why) if why.contains("too many connections for role")),
        "{reason:?}"
    );
    assert!(reason.is_temporary());
}
