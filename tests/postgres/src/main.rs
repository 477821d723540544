//! Runs a server to try things on. Prints its address, and ends when standard input ends (Ctrl-D).
//!
//! Usage: `windlass-test-server [shared|private|durable]`: the server that the tests share (default), a private one, or a
//! private one that flushes each commit to the disk, for measurements.

use std::io::{self, Write};
use std::process::ExitCode;

use windlass_test_server::{PrivateServer, SharedServer};

fn main() -> io::Result<ExitCode> {
    let which = std::env::args().nth(1).unwrap_or_else(|| "shared".to_owned());
    match which.as_str() {
        "shared" => serve(SharedServer::get().url())?,
        "private" => serve(&PrivateServer::new(&[]).url())?,
        "durable" => serve(&PrivateServer::new(&[("fsync", "on"), ("full_page_writes", "on")]).url())?,
        _neither => {
            eprintln!("usage: windlass-test-server [shared|private|durable]");
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
