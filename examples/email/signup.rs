//! The producer: reads one address a line, and signs up those that are not there yet.

use std::io::{BufRead, Write, stdin, stdout};

use crate::connection::{Connection, Result};
use crate::mailer::Mail;

pub(crate) fn sign_up_all(database: &str) -> Result<()> {
    let mut connection = Connection::open(database)?;
    for line in stdin().lock().lines() {
        let line = line?;
        let address = line.trim();
        if address.is_empty() {
            continue;
        }
        let payload = serde_json::to_string(&welcome(address))?;
        let is_new = connection.add_user(address, &payload)?;
        // The answer comes after the commit: from here on the user and the mail exist, whatever dies.
        writeln!(stdout(), "{} {address}", if is_new { "signed up" } else { "known" })?;
    }
    Ok(())
}

fn welcome(address: &str) -> Mail {
    Mail {
        to: address.to_owned(),
        subject: "Welcome".to_owned(),
        text: format!("Your account {address} is ready."),
    }
}
