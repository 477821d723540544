//! `windlass bench`: what Windlass does on this machine, beside what the machine can do at all.

mod text;

use std::path::Path;

use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use windlass::Durability;
use windlass_bench::{BenchError, ChildTask, Interruption, Part, Plan, Underneath};

use crate::cli::{self, GlobalOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::place::Place;

/// Measure what it does here, beside what the machine can do at all
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// What to measure [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<PartName>,

    /// How often each figure is taken; the median is shown, with the lowest and the highest
    /// [default: 5, on a server 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROUNDS_MAX))]
    rounds: Option<u64>,

    /// How large: jobs of a drain, from which all other sizes follow [default: 20000, on a server 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    jobs: Option<u64>,

    /// A process of its own that is measured
    #[arg(long, value_name = "TASK", hide = true)]
    child: Option<ChildTask>,
}

const EXAMPLES: &str = "\
Examples:
  windlass bench
  windlass bench drain chain --rounds 9
  windlass bench --db /var/lib/windlass/windlass.db -o json > here.json
  windlass bench --db postgres://bench@db.example/bench

It works in a temporary folder beside the database that --db names, so on the same disk, or in a
schema of its own on the server; the database itself is not touched, and nothing is left behind.
Let the machine do nothing else meanwhile. It takes some two minutes.";

/// Rounds of each figure at most.
const ROUNDS_MAX: u64 = 1_000;
/// The largest size that can be asked for: a graph of it stays below the limits of a workflow.
const JOBS_MAX: u64 = 1_000_000;
/// Rounds and jobs of a default run, which takes about two minutes.
const ON_FILE: (u64, u64) = (5, 20_000);
/// The same on a server, where each job takes longer.
#[cfg(feature = "postgres")]
const ON_SERVER: (u64, u64) = (3, 10_000);

/// The parts by the names of [`Part`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartName {
    /// Jobs that wait are executed
    Drain,
    /// Jobs are accepted
    Enqueue,
    /// Jobs one after the other
    Chain,
    /// One job, many, one; and layers
    Fan,
    /// Jobs that are processes
    Process,
    /// How soon a job starts
    Latency,
    /// Many rows that are not for now
    Scale,
    /// Memory, and an idle service
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

/// Measures, and prints what came of it.
pub(crate) fn execute(global: &GlobalOptions, args: &BenchArgs) -> Result<(), Failure> {
    if let Some(task) = args.child {
        let database = Database::existing_or_new(global)?;
        return windlass_bench::execute_child(task, database.windlass())
            .map_err(|error| failure(error, database.place(), global));
    }
    let place = global.database().place()?;
    let plan = plan(global, args, &place)?;
    let report = windlass_bench::measure(&plan, &mut |part| output::note(part))
        .map_err(|error| failure(error, &place, global))?;
    if let Some(warning) = &report.machine.warning {
        output::note(&format!("warning: {warning}"));
    }
    Output { format: global.output }.object(&report, text::report)
}

fn plan(global: &GlobalOptions, args: &BenchArgs, place: &Place) -> Result<Plan, Failure> {
    let (underneath, (rounds, jobs)) = match place {
        Place::File(path) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            (Underneath::Folder(folder.unwrap_or(Path::new(".")).to_owned()), ON_FILE)
        }
        #[cfg(feature = "postgres")]
        Place::Server { .. } => (Underneath::Server(global.database().with_password()), ON_SERVER),
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
        underneath,
        durability: match global.durability() {
            cli::Durability::Full => Durability::Full,
            cli::Durability::Normal => Durability::Normal,
        },
        rounds: usize::try_from(args.rounds.unwrap_or(rounds)).unwrap_or(1),
        jobs: usize::try_from(args.jobs.unwrap_or(jobs)).unwrap_or(1),
        program: std::env::current_exe()
            .map_err(|error| internal(format!("this program cannot be found: {error}")))?,
        interruption,
    })
}

fn failure(error: BenchError, place: &Place, global: &GlobalOptions) -> Failure {
    let message = format!("the measurement cannot go on: {error}");
    match error {
        BenchError::Interrupted => Failure::Interrupted {
            message: "the measurement was interrupted; nothing of it is left".to_owned(),
            resume: global.hint("bench"),
        },
        BenchError::Engine(error) => Failure::from_engine(error, place, |verb| global.hint(verb)),
        BenchError::Sqlite(_) => database_failure(message),
        #[cfg(feature = "postgres")]
        BenchError::Postgres(_) => database_failure(message),
        BenchError::Machine { .. } => Failure::File {
            message,
            help: "check the disk, and who may write to the folder of the database".to_owned(),
        },
        BenchError::Child(_) | BenchError::TooLong { .. } => internal(message),
    }
}

fn database_failure(message: String) -> Failure {
    let help = "check the disk or the server; the role must be allowed to make a schema".to_owned();
    Failure::Database { message, help }
}

fn internal(message: String) -> Failure {
    Failure::Internal { message, help: "measure again, with smaller sizes by --jobs".to_owned() }
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
