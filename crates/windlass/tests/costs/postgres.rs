//! The costs on PostgreSQL: round trips, which a [`Proxy`] counts.

use std::sync::Arc;

use windlass::{Clock, Random};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::{Store, TABLES};
use windlass_test_database::{DatabaseKind, TestDatabase};

use crate::ceilings::{ON_SERVER, OnServer};
use crate::proxy::Proxy;
use crate::work::{Cost, hold};

#[test]
fn a_job_costs_no_more_than_its_ceilings() {
    hold(ON_SERVER.iter().map(cost).collect());
}

fn cost(most: &OnServer) -> Cost {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::of_kind(DatabaseKind::Postgres, folder.path());
    let proxy = Proxy::to(&database.address());
    let observer = open(&database.address(), most.work.clock());
    let store = open(&proxy.address(), most.work.clock());
    let mut before = 0;
    most.work.perform(&store, &observer, || before = proxy.answers());
    let round_trips = proxy.answers() - before;
    Cost { work: most.work, unit: "round trips", counted: round_trips, ceiling: most.round_trips }
}

fn open(url: &str, clock: Clock) -> Store {
    let address = PostgresAddress::parse(url, &|_variable| None).unwrap();
    let clock = clock.adjustable();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let database = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    Store::new(Arc::new(database), clock, Random::from_seed(7))
}
