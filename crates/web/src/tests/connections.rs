//! A server with a socket, and the threads that call the store for it.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use windlass_engine::store::Role;
use windlass_engine::{Clock, Random, Store};
use windlass_test_database::TestDatabase;
use windlass_views::DoctorView;

use super::site::{Site, open, sentences};
use crate::options::{ListenAddress, WebOptions};
use crate::problem::Problem;
use crate::sentences::Sentences;
use crate::server::{Listener, WebServer};
use crate::threads::{Access, DatabaseThreads, NoResult};

pub(super) fn start() -> (WebServer, Store, TestDatabase, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    let clock = Clock::system();
    let store = Store::new(open(&database, &clock), clock, Random::from_seed(1));
    let listen = ListenAddress::Set("127.0.0.1:0".parse().unwrap());
    let options = WebOptions { listen, ..WebOptions::default() };
    let listener = Listener::bind(&options).unwrap();
    let server = WebServer::start(listener, &store, sentences(), options).unwrap();
    (server, store, database, folder)
}

#[test]
fn the_database_is_called_on_threads_of_its_own() {
    let (server, store, _database, _folder) = start();
    drop(server);
    let (threads, end) = DatabaseThreads::start(&store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let name = runtime.block_on(threads.call(Access::Read, |_store| {
        // A runtime on this thread would panic.
        assert!(tokio::runtime::Handle::try_current().is_err());
        std::thread::current().name().map(str::to_owned)
    }));
    assert!(name.unwrap().unwrap().starts_with("windlass-web-reader"));
    drop(threads);
    end.wait();
}

#[test]
fn a_full_queue_refuses_the_next_call() {
    let (server, store, _database, _folder) = start();
    drop(server);
    let (threads, _end) = DatabaseThreads::start(&store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (started, has_started) = channel();
        let mut gates = Vec::new();
        let mut calls = Vec::new();
        for number in 0..2 + 64 {
            let (gate, is_open) = channel::<()>();
            gates.push(gate);
            let started = started.clone();
            let mut call = Box::pin(threads.call(Access::Write, move |_store| {
                let _ = started.send(());
                let _closed = is_open.recv();
            }));
            // The first poll puts the call into the queue.
            assert!(futures_poll(call.as_mut()).is_none());
            calls.push(call);
            if number < 2 {
                has_started.recv().unwrap();
            }
        }
        let refused = threads.call(Access::Write, |_store| ()).await;
        assert_eq!(refused, Err(NoResult::Full));
        // The threads that read have a queue of their own.
        assert_eq!(threads.call(Access::Read, |_store| 7).await, Ok(7));
        drop(gates);
        for call in calls {
            call.await.unwrap();
        }
        assert_eq!(threads.call(Access::Write, |_store| 8).await, Ok(8));
    });
}

/// Polls a future once.
fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn a_defect_of_a_handler_takes_no_thread() {
    let (server, store, _database, _folder) = start();
    drop(server);
    let (threads, _end) = DatabaseThreads::start(&store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..10 {
            let panicked = threads.call(Access::Read, |_store| panic!("as planned")).await;
            assert_eq!(panicked, Err::<(), _>(NoResult::Panicked));
        }
        assert_eq!(threads.call(Access::Read, |_store| 7).await, Ok(7));
    });
}

#[test]
fn the_reads_of_a_request_have_two_seconds_together_and_writes_have_no_limit() {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    let clock = Clock::manual(1_800_000_000_000);
    let store = Store::new(open(&database, &clock), clock.clone(), Random::from_seed(1));
    let (threads, _end) = DatabaseThreads::start(&store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let reads_with_pauses_of = |pause_ms| {
            let clock = clock.clone();
            move |store: &Store| {
                for read in 0..5 {
                    if let Err(error) = store.queues().paused() {
                        return (read, Some(Problem::from(error).status.as_u16()));
                    }
                    clock.advance_ms(pause_ms);
                }
                (5, None)
            }
        };
        // Each request has its own time, also when a thread had others before.
        for _request in 0..10 {
            assert_eq!(threads.call(Access::Read, reads_with_pauses_of(499)).await, Ok((5, None)));
            assert_eq!(threads.call(Access::Read, reads_with_pauses_of(500)).await, Ok((4, Some(503))));
        }
        assert_eq!(threads.call(Access::Write, reads_with_pauses_of(60_000)).await, Ok((5, None)));
    });
}

#[test]
fn a_page_whose_reads_take_too_long_together_says_how_to_ask_for_less() {
    let clock = Arc::new(OnceLock::<Clock>::new());
    let slow = Arc::clone(&clock);
    // The first of the three reads of the page.
    let health = move || {
        slow.get().unwrap().advance_ms(2_000);
        Ok(DoctorView { ok: true, findings: Vec::new() })
    };
    let sentences = Sentences::new(|_reason, _job, _now_ms| String::new(), health);
    let site = Site::that_says(WebOptions::default(), sentences);
    clock.set(site.clock.clone()).unwrap();
    let token = site.token("page", Role::View);
    let refused = site.get("/system").token(&token).send();
    let says = |text: &str| refused.body.contains(text);
    assert!(says("longer than 2 seconds together") && says("sk for less"), "{refused:?}");
    refused.is(503);
    // The next request has its own time.
    site.get("/queues").token(&token).send().is(200);
}

#[test]
fn a_read_that_was_ended_says_how_to_ask_for_less() {
    let reason = windlass_engine::Unavailable::Cancelled("as planned".to_owned());
    let problem = crate::problem::Problem::from(windlass_engine::Error::unavailable("read", reason));
    assert_eq!(problem.status, 503);
    let (_title, detail, next_step) = problem.texts();
    assert!(detail.contains("longer than 2 seconds") && next_step.starts_with("ask for less"), "{problem:?}");
}
