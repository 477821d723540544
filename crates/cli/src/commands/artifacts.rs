//! `windlass artifacts`: lists the files that jobs kept, and gets one of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use windlass_engine::store::KeptArtifact;
use windlass_views::{ArtifactView, WrittenFile};

use crate::arguments::{GlobalOptions, RunOrJob};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::{self, Output};
use crate::stderr;
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};

/// List the files that the jobs of a run kept, or get one of them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArtifactsArgs {
    /// A run (3, latest, nightly), or a job of a run (3/report)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job())]
    address: RunOrJob,

    /// Only the files of this job and of its items
    #[arg(value_name = "JOB", add = complete::job_of_run("address"))]
    job: Option<String>,

    /// Only the file with this path
    #[arg(value_name = "PATH", requires = "job")]
    path: Option<String>,

    /// Write the content of the file here; `-` is standard output
    #[arg(long, value_name = "FILE|-", requires = "path")]
    to: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  windlass artifacts 7                                  # of all jobs
  windlass artifacts 7 report -o json
  windlass artifacts 7 report out/report.html --to report.html
  windlass artifacts 7 report out/data.csv --to - | head";

/// Lists the files, or gets one.
pub(crate) fn execute(global: &GlobalOptions, args: &ArtifactsArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let (run_id, named) = match (find::run_or_job(&database, &args.address)?, &args.job) {
        (FoundRunOrJob::Run(run), None) => (run.id, None),
        (FoundRunOrJob::Run(run), Some(name)) => (run.id, Some(find::job_by_name(&database, run.id, name)?)),
        (FoundRunOrJob::Job(_), name) => {
            let job = find::job(&database, &args.address, name.as_deref())?;
            let no_run = || {
                Failure::usage(
                    format!("job j{} was enqueued alone, and only jobs of runs keep files", job.id),
                    "name a run, or a job of a run such as 3/report",
                )
            };
            (job.run_id.ok_or_else(no_run)?, Some(job))
        }
    };
    let job = named.as_ref().and_then(|job| job.name.as_deref());
    let mut kept = database.ask(|store| store.runs().artifacts(run_id, job))?;
    if let Some(path) = &args.path {
        kept.retain(|kept| kept.artifact.path == *path);
    }
    match &args.to {
        Some(target) => get(global, &database, run_id, args, &kept, target),
        None => list(global, &kept),
    }
}

fn list(global: &GlobalOptions, kept: &[KeptArtifact]) -> Result<(), Failure> {
    let views: Vec<ArtifactView> = kept.iter().map(ArtifactView::new).collect();
    Output { format: global.output }.list(&views, |_| {
        if kept.is_empty() {
            return "no artifacts".to_owned();
        }
        let mut table = Table::new(&[Column::Left("JOB"), Column::Left("PATH"), Column::Right("BYTES")]);
        for KeptArtifact { job, artifact, .. } in kept {
            let (job, path) = (printable(job).into_owned(), printable(&artifact.path).into_owned());
            table.row([job, path, artifact.bytes.to_string()]);
        }
        table.render(table::stdout_width())
    })
}

fn get(
    global: &GlobalOptions,
    database: &Database,
    run_id: i64,
    args: &ArtifactsArgs,
    kept: &[KeptArtifact],
    target: &Path,
) -> Result<(), Failure> {
    let path = args.path.as_deref().unwrap_or_default();
    let job = args.job.as_deref().unwrap_or_default();
    let list = global.hint(&format!("artifacts {run_id} {job}"));
    let kept = match kept {
        [only] => only,
        [] => {
            return Err(Failure::not_found(
                format!("job `{job}` of run {run_id} kept no file {path}"),
                format!("`{list}` lists its files"),
            ));
        }
        [first, ..] => {
            return Err(Failure::usage(
                format!("several items of `{job}` kept {path}"),
                format!(
                    "name one of them, as in `{}`",
                    global.hint(&format!("artifacts {run_id} {} {path}", first.job))
                ),
            ));
        }
    };
    let Some(files) = database.store().files() else {
        return Err(Failure::usage(
            "the folder for files of runs is not known here",
            "set `dir` under [files] in windlass.toml, or WINDLASS_FILES",
        ));
    };
    let mut content = files.open_content(&kept.artifact.hash).map_err(|error| Failure::File {
        message: format!("the content of {path} can't be read in {}: {error}", files.root().display()),
        help: format!("`{}` shows what else is missing", global.hint("db check")),
    })?;
    if target == Path::new("-") {
        output::refuse_json(global, "artifacts --to -", "the content of a file", "leave -o out")?;
        return match io::copy(&mut content, &mut io::stdout().lock()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ClosedPipe),
            copied => copied.map(|_bytes| ()).map_err(|error| cannot_write(target, &error)),
        };
    }
    write(&mut content, target).map_err(|error| cannot_write(target, &error))?;
    stderr::note(&format!("{path} is written to {}", target.display()));
    let view = WrittenFile { file: target.display().to_string() };
    Output { format: global.output }.object(&view, |_| String::new())
}

/// Writes a new file. An existing one is replaced.
fn write(content: &mut File, target: &Path) -> io::Result<()> {
    let mut file = File::create(target)?;
    io::copy(content, &mut file)?;
    file.flush()
}

fn cannot_write(target: &Path, error: &io::Error) -> Failure {
    Failure::File {
        message: format!("{} can't be written: {error}", target.display()),
        help: "choose another file with --to".to_owned(),
    }
}
