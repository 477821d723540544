//! Signs up users and sends each a mail, with a crash at any moment. The programs in Python beside this one do the same with
//! the same tables. docs/guide/email.md explains it.
//!
//! ```sh
//! cargo run -p windlass --example email -- create-tables windlass.db
//! cargo run -p windlass --example email -- signup windlass.db < addresses.txt
//! cargo run -p windlass --example email -- mailer windlass.db localhost:1025
//! ```

mod connection;
mod mailer;
mod signup;
mod smtp;

use std::process::ExitCode;

use connection::{Connection, Result};

const USAGE: &str = "usage: email create-tables DATABASE
       email signup DATABASE < ADDRESSES
       email mailer DATABASE SMTP_HOST:PORT [THREADS]";

fn main() -> ExitCode {
    match execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn execute() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["create-tables", database] => {
            // This creates the tables of Windlass too.
            windlass::Windlass::open(database)?;
            Connection::open(database)?.create_tables()
        }
        ["signup", database] => signup::sign_up_all(database),
        ["mailer", database, smtp] => mailer::run(database, smtp, 4),
        ["mailer", database, smtp, threads] => mailer::run(database, smtp, threads.parse()?),
        [..] => Err(USAGE.into()),
    }
}
