//! A server to try things on: prints its address, and lets it go when standard input ends (Ctrl-D).
//!
//! Usage: `windlass-test-server [shared|private]`: the one that the tests share (default), or one of its
//! own.

use std::io::{self, Write};
use std::process::ExitCode;

use windlass_test_server::{PrivateServer, SharedServer};

fn main() -> io::Result<ExitCode> {
    let which = std::env::args().nth(1).unwrap_or_else(|| "shared".to_owned());
    match which.as_str() {
        "shared" => serve(SharedServer::get().url())?,
        "private" => serve(&PrivateServer::new(&[]).url())?,
        _neither => {
            eprintln!("usage: windlass-test-server [shared|private]");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(url: &str) -> io::Result<()> {
    println!("{url}");
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
