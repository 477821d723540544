//! The worker: a handler of kind `email`.

use serde::{Deserialize, Serialize};
use windlass::{Attempt, Handlers, Outcome, Windlass, WorkerOptions, failed, failed_for_good};

use crate::connection::{Connection, Result};
use crate::smtp::{self, Refused};

/// The payload of a job of kind `email`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// Sends mails until the program is killed.
pub(crate) fn run(database: &str, smtp: &str, threads: i64) -> Result<()> {
    let windlass = Windlass::open(database)?;
    let mut handlers = Handlers::new();
    let (own, smtp) = (database.to_owned(), smtp.to_owned());
    handlers.register("email", move |attempt: &Attempt| deliver(attempt, &own, &smtp));
    let engine = windlass.start(handlers, WorkerOptions { threads, ..WorkerOptions::default() })?;
    println!("worker {}", engine.worker_id());
    engine.join()?;
    Ok(())
}

fn deliver(attempt: &Attempt, database: &str, smtp: &str) -> Outcome {
    let mail: Mail = match serde_json::from_str(&attempt.job().payload) {
        Ok(mail) => mail,
        Err(error) => return failed_for_good(format!("this payload is no mail: {error}")),
    };
    let message_id = format!("<{}@signup.example>", attempt.idempotency_key());
    match send_once(database, smtp, &message_id, &mail) {
        Ok(()) => Outcome::Successful { output: serde_json::to_string(&message_id).ok() },
        Err(error) => match error.downcast_ref::<Refused>() {
            Some(refused) if refused.is_final() => failed_for_good(error.to_string()),
            Some(_) | None => failed(error.to_string()),
        },
    }
}

/// Sends a mail unless it is recorded as sent, and records it.
///
/// The worker writes the ends of several jobs in one transaction, and takes the next job meanwhile. The record is
/// committed here, so that a crash can repeat only the mail that this thread was sending.
fn send_once(database: &str, smtp: &str, message_id: &str, mail: &Mail) -> Result<()> {
    // One connection a mail keeps this short. A larger program has a pool.
    let mut connection = Connection::open(database)?;
    if connection.was_sent(message_id)? {
        return Ok(());
    }
    smtp::send(smtp, message_id, mail)?;
    // From the server's answer to this commit lasts the time in which a crash sends the mail once more.
    connection.record_sent(message_id)
}
