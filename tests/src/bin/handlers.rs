//! A program that embeds Windlass: a worker for tests with many jobs. Its one handler, `sleep`, takes as
//! many milliseconds as the payload says.
//!
//! The database is that of `WINDLASS_DB`, the lease that of `WINDLASS_LEASE_MS`. SIGTERM drains it.

use std::error::Error;
use std::time::Duration;

use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use windlass::{Attempt, Handlers, Outcome, Windlass, WorkerOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new([SIGTERM])?;
    let windlass = Windlass::open(std::env::var("WINDLASS_DB")?)?;
    let mut handlers = Handlers::new();
    handlers.register("sleep", |attempt: &Attempt| {
        let work_ms = attempt.job().payload.parse().unwrap_or(0);
        if work_ms > 0 {
            attempt.stop().wait(Duration::from_millis(work_ms));
        }
        Outcome::Successful { output: None }
    });
    let mut options = WorkerOptions { threads: 4, ..WorkerOptions::default() };
    if let Ok(lease_ms) = std::env::var("WINDLASS_LEASE_MS") {
        options.lease_ms = lease_ms.parse()?;
    }
    let engine = windlass.start(handlers, options)?;
    println!("{}", engine.worker_id());
    signals.forever().next();
    engine.drain();
    engine.join()?;
    Ok(())
}
