//! A server to try things on: prints its address, and lets it go when standard input ends (Ctrl-D).
//!
//! Usage: `windlass-test-server [shared|private|durable]`: the one that the tests share (default), one of its
//! own, or one of its own that flushes each commit to the disk, for measuring.

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
