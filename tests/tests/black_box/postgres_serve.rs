//! `serve` with a server that stops answering: the service manager gets no watchdog signal until the server answers again.

use std::time::Duration;

use rustix::process::Signal;
use windlass_test_server::PrivateServer;
use windlass_tests::Sandbox;

use crate::serve_manager::Manager;
use crate::support::assert_says;

#[test]
fn a_service_without_answers_of_the_database_sends_no_watchdog_signal() {
    let (sandbox, server) = (Sandbox::new(), PrivateServer::new(&[]));
    let mut manager = Manager::in_sandbox(&sandbox);
    let mut command = sandbox.command(&["serve"]);
    command.env("WINDLASS_DB", server.url());
    let mut service = manager.start_command(&sandbox, command, Duration::from_secs(2));
    manager.hear("READY=1");
    manager.hear("WATCHDOG=1");
    server.pause();
    manager.hear("STATUS=no answer from the database for ");
    // A watchdog signal may have been on its way. After it, none may come.
    for _tick in 0..3 {
        let heard = manager.hear("");
        assert!(heard.starts_with("STATUS=no answer from the database"), "{heard}");
    }
    server.go_on();
    manager.hear("WATCHDOG=1");
    service.signal(Signal::TERM);
    assert_says(&service.wait(), 0, &[]);
}
