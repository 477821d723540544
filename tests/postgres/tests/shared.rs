//! Many processes use the shared server. It runs as long as one of them lives, and then stops.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::fs::{self, File, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};
use support::{Holder, eventually};
use windlass_test_server::{Schema, SharedServer};

/// The start time of a server, which differs for two servers on the same port.
fn began(holder: &Holder) -> String {
    let mut client = Client::connect(&holder.url, NoTls).unwrap();
    client.query_one("SELECT pg_postmaster_start_time()::text", &[]).unwrap().get(0)
}

/// A folder for temporary files, for the servers of one test.
fn temporary_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    support::open_to_the_server(folder.path());
    folder
}

/// The folder with the lock files, in a folder for temporary files.
fn base(temporary: &Path) -> PathBuf {
    fs::read_dir(temporary).unwrap().flatten().next().unwrap().path()
}

fn is_locked(path: &Path) -> bool {
    matches!(File::open(path).unwrap().try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The id of the server's first process.
fn server_pid(temporary: &Path) -> i32 {
    let path = base(temporary).join("server/data/postmaster.pid");
    fs::read_to_string(path).unwrap().lines().next().unwrap().parse().unwrap()
}

/// The id of the guardian, which is found by its arguments: `guardian` and the folder.
fn guardian_pid(base: &Path) -> i32 {
    let arguments = format!("\0guardian\0{}\0", base.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let guardians = entries.filter(|entry| {
        fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&arguments))
    });
    let pids: Vec<i32> = guardians.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    assert_eq!(pids.len(), 1, "one guardian: {pids:?}");
    pids[0]
}

/// The names of a process's children.
fn children(parent: i32) -> Vec<String> {
    let parent = format!("PPid:\t{parent}\n");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let statuses = entries.filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
    let of_parent = statuses.filter(|status| status.contains(&parent));
    of_parent.filter_map(|status| Some(status.lines().next()?.strip_prefix("Name:\t")?.to_owned())).collect()
}

/// Whether a process waits for the lock of a file.
fn is_waited_for(path: &Path) -> bool {
    let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| line.contains("->") && line.contains(&inode))
}

fn signal(signal: &str, pid: i32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn kill_9(pid: i32) {
    signal("-KILL", pid);
    eventually("its end", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn the_first_process_starts_the_server_and_it_stops_after_the_last() {
    let temporary = temporary_folder();
    let starting: Vec<_> = (0..6).map(|_| Holder::spawn("shared", temporary.path())).collect();
    let mut holders: Vec<Holder> = starting.into_iter().map(support::Starting::wait).collect();
    let first = began(&holders[0]);
    for holder in &holders {
        assert_eq!((&holder.url, began(holder)), (&holders[0].url, first.clone()), "one server for all");
    }
    for mut holder in holders.drain(1..) {
        holder.kill_9();
    }
    assert_eq!(began(&holders[0]), first);
    let users = File::open(base(temporary.path()).join("users")).unwrap();
    assert!(matches!(users.try_lock(), Err(TryLockError::WouldBlock)), "it stays as long as one is there");
    holders.remove(0).end();
    // Well within the time that it stays without anybody.
    let late = Holder::start("shared", temporary.path());
    assert_eq!(began(&late), first, "and a little longer");
    let port = late.port();
    late.end();
    eventually("the end of the server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    eventually("the end of its data", || support::is_without_data(temporary.path()));
    eventually("the end of its guardian", || !is_locked(&base(temporary.path()).join("guardian")));
}

/// The guardian is held up while it removes the folder of the server that it has stopped.
#[test]
fn a_process_that_comes_while_the_server_stops_waits_and_gets_another_server() {
    let (temporary, programs) = (temporary_folder(), temporary_folder());
    let (rm, hold) = (programs.path().join("rm"), programs.path().join("hold"));
    let script =
        format!("#!/bin/sh\nwhile [ -e {} ]; do sleep 0.05; done\nexec /bin/rm \"$@\"\n", hold.display());
    fs::write(&hold, "").unwrap();
    fs::write(&rm, script).unwrap();
    fs::set_permissions(&rm, Permissions::from_mode(0o755)).unwrap();
    let first = Holder::spawn_with("shared", temporary.path(), &[programs.path()]).wait();
    let first_began = began(&first);
    let base = base(temporary.path());
    let guardian = guardian_pid(&base);
    first.end();
    eventually("the guardian removing the server", || children(guardian).iter().any(|name| name == "rm"));
    let next = Holder::spawn("shared", temporary.path());
    eventually("the newcomer waiting", || is_waited_for(&base.join("users")));
    fs::remove_file(&hold).unwrap();
    let next = next.wait();
    assert_ne!(began(&next), first_began);
    assert!(is_locked(&base.join("guardian")), "whoever has a server has a guardian of it");
    next.end();
    eventually("the end of the data", || support::is_without_data(temporary.path()));
}

#[test]
fn a_server_that_was_killed_is_replaced() {
    let temporary = temporary_folder();
    let first = Holder::start("shared", temporary.path());
    let first_began = began(&first);
    kill_9(server_pid(temporary.path()));
    let next = Holder::start("shared", temporary.path());
    assert_ne!(began(&next), first_began);
    first.end();
    assert!(!began(&next).is_empty(), "the end of those who had the first one changes nothing");
    next.end();
}

#[test]
fn a_guardian_that_was_killed_is_replaced() {
    let temporary = temporary_folder();
    let first = Holder::start("shared", temporary.path());
    let base = base(temporary.path());
    kill_9(guardian_pid(&base));
    assert!(!is_locked(&base.join("guardian")));
    let second = Holder::start("shared", temporary.path());
    assert_eq!(began(&first), began(&second));
    assert!(is_locked(&base.join("guardian")));
    first.end();
    second.end();
    eventually("the end of the data", || support::is_without_data(temporary.path()));
}

#[test]
fn a_schema_has_an_unused_name_and_is_removed_with_the_test() {
    let (schema, other) = (Schema::new(), Schema::new());
    assert_ne!(schema.name(), other.name());
    assert_eq!(schema.url(), format!("{}?schema={}", SharedServer::get().url(), schema.name()));
    let mut client = schema.client();
    let sql = format!("CREATE SCHEMA {}; CREATE TABLE t (id int)", schema.name());
    client.batch_execute(&sql).unwrap();
    assert_eq!(other.client().query("SELECT * FROM t", &[]).unwrap_err().code().unwrap().code(), "42P01");
    // An open transaction of another connection does not prevent that.
    client.batch_execute("BEGIN; LOCK TABLE t").unwrap();
    let name = schema.name().to_owned();
    drop(schema);
    let sql = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
    let left: i64 = other.client().query_one(sql, &[&name]).unwrap().get(0);
    assert_eq!(left, 0);
}
