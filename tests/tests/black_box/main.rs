//! Black-box tests of the `windlass` binary: exit codes, messages, tables, and the processes it starts. They are one
//! program, because each program would link SQLite again.

mod cancel;
mod contention;
mod contract;
mod crash;
mod docs;
mod examples;
mod faults_files;
mod faults_jobs;
mod fencing;
mod killed_while_starting;
mod limits;
mod logs;
mod order;
mod postgres_chaos;
mod postgres_guide;
mod postgres_network;
mod postgres_serve;
mod processes;
mod recovery;
mod resources;
mod schedules;
mod scripts;
mod serve_folder;
mod serve_manager;
mod serve_signals;
mod signals;
mod sql;
mod sql_guide;
mod sqlite_damage;
mod sqlite_disk;
mod sqlite_files;
mod sqlite_python;
mod support;
mod terminal;
mod threads;
