//! `windlass bench`: measures Windlass on this machine, beside the limits of the machine.

mod text;

use std::path::Path;

use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use windlass_bench::{BenchError, ChildTask, DatabaseLocation, Interruption, Part, Plan};

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::{engine_errors, stderr};

/// Measure the speed here, beside the limits of the machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// What to measure [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<PartName>,

    /// How often each figure is measured; the median, the lowest and the highest are shown
    /// [default: 5, on a server 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROUNDS_MAX))]
    rounds: Option<u64>,

    /// The number of jobs of `drain`; the other parts use sizes in proportion [default: 20000, on a server 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    jobs: Option<u64>,

    /// Runs a task in a child process, which is measured
    #[arg(long, value_name = "TASK", hide = true)]
    child: Option<ChildTask>,
}

const EXAMPLES: &str = "\
Examples:
  windlass bench
  windlass bench drain chain --rounds 9
  windlass bench --db /var/lib/windlass/windlass.db -o json > here.json
  windlass bench --db postgres://bench@db.example/bench

The measurement uses a temporary folder beside the database of --db, on the
same disk, or a schema of its own on the server. It does not touch the
database and leaves nothing behind. It takes about two minutes. Run nothing
else on the machine meanwhile.";

/// The largest number of rounds.
const ROUNDS_MAX: u64 = 1_000;
/// The largest number of jobs. A graph of this size is within the limits of a workflow.
const JOBS_MAX: u64 = 1_000_000;
/// The default number of rounds and jobs. They take about two minutes.
const ON_FILE: (u64, u64) = (5, 20_000);
/// The defaults on a server, where each job takes longer.
#[cfg(feature = "postgres")]
const ON_SERVER: (u64, u64) = (3, 10_000);

/// The parts of [`Part`]. The comments are the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartName {
    /// Execute waiting jobs
    Drain,
    /// Accept jobs
    Enqueue,
    /// Execute jobs one after the other
    Chain,
    /// Execute one job, then many, then one; and layers of jobs
    Fan,
    /// Execute jobs that are processes
    Process,
    /// Measure how soon a job starts
    Latency,
    /// Execute jobs among many rows that are not due
    Scale,
    /// Measure memory, and an idle service
    Memory,
}

impl From<PartName> for Part {
    fn from(name: PartName) -> Part {
        match name {
            PartName::Drain => Part::Drain,
            PartName::Enqueue => Part::Enqueue,
            PartName::Chain => Part::Chain,
            PartName::Fan => Part::Fan,
            PartName::Process => Part::Process,
            PartName::Latency => Part::Latency,
            PartName::Scale => Part::Scale,
            PartName::Memory => Part::Memory,
        }
    }
}

/// Measures and prints the figures.
pub(crate) fn execute(global: &GlobalOptions, args: &BenchArgs) -> Result<(), Failure> {
    if let Some(task) = args.child {
        let database = Database::existing_or_new(global)?;
        return windlass_bench::execute_child(task, database.windlass())
            .map_err(|error| failure(error, database.address(), global));
    }
    let address = global.database().address()?;
    let plan = plan(global, args, &address)?;
    let report = windlass_bench::measure(&plan, &mut |part| stderr::note(part))
        .map_err(|error| failure(error, &address, global))?;
    if let Some(warning) = &report.machine.warning {
        stderr::warn(&format!("warning: {warning}"));
    }
    Output { format: global.output }.object(&report, text::report)
}

fn plan(global: &GlobalOptions, args: &BenchArgs, address: &DatabaseAddress) -> Result<Plan, Failure> {
    let (location, (rounds, jobs)) = match address {
        DatabaseAddress::File(path) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            (DatabaseLocation::Folder(folder.unwrap_or(Path::new(".")).to_owned()), ON_FILE)
        }
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { .. } => {
            (DatabaseLocation::Server(global.database().with_password()), ON_SERVER)
        }
    };
    let mut parts: Vec<Part> = Vec::new();
    for part in args.parts.iter().map(|name| Part::from(*name)) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        parts.extend(Part::ALL);
    }
    let interruption = Interruption::default();
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interruption.flag())
            .map_err(|error| internal(format!("signals cannot be handled: {error}")))?;
    }
    Ok(Plan {
        parts,
        location,
        durability: global.durability().into(),
        rounds: usize::try_from(args.rounds.unwrap_or(rounds)).unwrap_or(1),
        jobs: usize::try_from(args.jobs.unwrap_or(jobs)).unwrap_or(1),
        program: std::env::current_exe()
            .map_err(|error| internal(format!("this program cannot be found: {error}")))?,
        interruption,
    })
}

fn failure(error: BenchError, address: &DatabaseAddress, global: &GlobalOptions) -> Failure {
    let message = format!("the measurement failed: {error}");
    match error {
        BenchError::Interrupted => Failure::Interrupted {
            message: "the measurement was interrupted; its files are removed".to_owned(),
            resume: global.hint("bench"),
        },
        BenchError::Engine(error) => engine_errors::failure(error, address, |verb| global.hint(verb)),
        BenchError::Sqlite(_) => database_failure(message),
        #[cfg(feature = "postgres")]
        BenchError::Postgres(_) => database_failure(message),
        BenchError::Machine { .. } => Failure::File {
            message,
            help: "check the disk and the permissions of the folder of the database".to_owned(),
        },
        BenchError::Child(_) | BenchError::TooLong { .. } => internal(message),
    }
}

fn database_failure(message: String) -> Failure {
    let help = "check the disk or the server; the role must be allowed to create a schema".to_owned();
    Failure::Database { message, help }
}

fn internal(message: String) -> Failure {
    Failure::Internal { message, help: "measure again, with a smaller --jobs".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_name_on_the_command_line() {
        let named: Vec<Part> = PartName::value_variants().iter().map(|name| Part::from(*name)).collect();
        assert_eq!(named, Part::ALL);
        for name in PartName::value_variants() {
            let typed = name.to_possible_value().expect("a name");
            assert_eq!(typed.get_name(), Part::from(*name).name());
        }
    }
}
