//! What the tests of the library share: a database for each test, and waiting for a condition.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, missing_docs)]

use std::time::{Duration, Instant};

use windlass::workflow::{Source, parse};
use windlass::{JobStatus, NewRun, Options, Random, Run, Windlass};
use windlass_test_database::TestDatabase;

/// Long enough for a loaded machine. A test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The fields are dropped in this order: the database is closed before it is removed.
pub struct Bench {
    pub windlass: Windlass,
    pub database: TestDatabase,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(Options { random: Random::from_seed(seed()), ..Options::default() })
    }

    pub fn with(options: Options) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let windlass = Windlass::open_with(database.address(), options).unwrap();
        Bench { windlass, database, folder }
    }

    pub fn submit(&self, toml: &str) -> i64 {
        let source = Source::new("test.toml", toml.as_bytes().to_vec()).unwrap();
        let workflow = parse(&source).unwrap_or_else(|report| panic!("{report:?}"));
        let dir = Some(self.folder.path().display().to_string());
        let run = NewRun { workflow, params: serde_json::Map::new(), dir, run_key: None, occasion: None };
        self.windlass.submit(run).unwrap().run_id
    }

    pub fn wait_for_run(&self, run_id: i64) -> Run {
        let ended = || {
            let run = self.windlass.runs().get(run_id).unwrap();
            run.status.is_terminal().then_some(run)
        };
        wait_for("the run to end", ended)
    }

    pub fn wait_for_job(&self, job_id: i64, status: JobStatus) {
        wait_for(status.as_str(), || {
            (self.windlass.jobs().get(job_id).unwrap().status == status).then_some(())
        });
    }

    pub fn assert_sound(&self) {
        assert_eq!(self.windlass.upkeep().check().unwrap(), [], "the invariants hold");
    }
}

pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn seed() -> u64 {
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("WINDLASS_SEED={seed}");
    seed
}
