//! On a server: how often it is asked and answers, counted on the way by a [`Proxy`].

use std::sync::Arc;

use windlass::{Clock, Random, Store};
use windlass_engine::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_test_database::{TestDatabase, Underneath};

use crate::ceilings::ON_SERVER;
use crate::proxy::Proxy;
use crate::work::{Cost, Work, hold};

#[test]
fn enqueueing_one_by_one_costs_no_more() {
    stays_below(Work::EnqueueOne);
}

#[test]
fn enqueueing_a_batch_costs_no_more() {
    stays_below(Work::EnqueueBatch);
}

#[test]
fn a_drain_costs_no_more() {
    stays_below(Work::Drain);
}

#[test]
fn a_chain_costs_no_more() {
    stays_below(Work::Chain);
}

#[test]
fn a_fan_costs_no_more() {
    stays_below(Work::Fan);
}

#[track_caller]
fn stays_below(work: Work) {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::made_of(Underneath::Postgres, folder.path());
    let proxy = Proxy::to(&database.address());
    let observer = open(&database.address());
    let store = open(&proxy.address());
    let mut before = 0;
    work.perform(&store, &observer, || before = proxy.answers());
    let round_trips = proxy.answers() - before;
    let ceiling = ON_SERVER.iter().find(|ceiling| ceiling.work == work).unwrap();
    hold(work, &[Cost { unit: "round trips", counted: round_trips, ceiling: ceiling.round_trips }]);
}

fn open(url: &str) -> Store {
    let address = PostgresAddress::parse(url, &|_variable| None).unwrap();
    let clock = Clock::system().led();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let database = PostgresDatabase::open(&address, &options).unwrap();
    Store::new(Arc::new(database), clock, Random::from_seed(7))
}
