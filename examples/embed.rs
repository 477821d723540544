//! A Rust program that embeds Windlass. It shows a typed handler beside the built-in kind `shell`,
//! jobs that survive the program, a retry, and the output of a job.
//!
//! ```sh
//! cargo run -p windlass --example embed -- /tmp/embed.db
//! ```
//!
//! Kill it at any moment and start it again: jobs that were enqueued are not lost, and are executed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::{Attempt, Handlers, NewJob, Result, Windlass, WorkerOptions, typed};

#[derive(Serialize, Deserialize)]
struct Invoice {
    customer: String,
    cents: i64,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    text: String,
    /// The same in every attempt, so that a payment service can recognize a repeated request.
    idempotency_key: String,
}

fn charge(attempt: &Attempt, invoice: Invoice) -> std::result::Result<Receipt, String> {
    if attempt.number() == 1 && invoice.cents > 10_000 {
        return Err("the payment service did not answer".to_owned());
    }
    let text = format!("{} paid {}.{:02}", invoice.customer, invoice.cents / 100, invoice.cents % 100);
    Ok(Receipt { text, idempotency_key: attempt.idempotency_key() })
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "embed.db".to_owned());
    let windlass = Windlass::open(&path)?;

    let mut handlers = Handlers::with_built_in_kinds();
    handlers.register("charge", typed(charge));
    let engine = windlass.start(handlers, WorkerOptions::default())?;

    let invoice = |customer: &str, cents| {
        serde_json::to_string(&Invoice { customer: customer.to_owned(), cents }).unwrap_or_default()
    };
    let ids = windlass.jobs().enqueue(vec![
        NewJob::new("charge", invoice("Small & Co", 1_250)),
        NewJob::new("charge", invoice("Large & Sons", 99_900)),
        NewJob::new("shell", r#"{"run": "date +%Y", "output": "text"}"#),
    ])?;

    for id in ids {
        // The job may be executed by another process.
        let Some(job) = windlass.wait_for_job(id, Duration::from_secs(60))? else {
            println!("job j{id} has not finished yet; its result will be in {path}");
            continue;
        };
        println!(
            "{} {} after {} attempts: {}",
            job.kind,
            job.status,
            job.attempt,
            job.output.unwrap_or_default()
        );
    }
    engine.drain();
    engine.join()
}
