//! The thread that reads for `windlass top`. It hears what has changed, and reads at most four times a second.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use windlass_db::{Error, ReadDeadline};
use windlass_engine::store::{
    Cursor, Fingerprints, JobFilter, LogLine, LogPosition, OutputState, Subject, Watched,
};
use windlass_engine::{JobStatus, Store};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

use super::data::{FailedRun, GroupName, Lists, News, Placement, Request};
use crate::database::Database;
use crate::error::Failure;

const THREAD_NAME: &str = "windlass-top-reader";
/// The shortest time from one read to the next.
const INTERVAL_MIN: Duration = Duration::from_millis(250);
/// From the beginning of a read to that of the next one: so many times as long as the read.
const INTERVAL_OF_READ: u32 = 5;
/// After this time it looks for changes also if it heard of none: one may have been lost.
const SLOW_POLL: Duration = Duration::from_secs(5);
/// After this time it reads the lists although nothing has changed: a failure is older than a day then.
const LISTS_MAX_AGE: Duration = Duration::from_secs(60);
/// How long the reads of one look, or of one request, may take together.
const READ_MAX: Duration = Duration::from_secs(2);
/// Requests, and answers, that wait to be heard.
const WAITING_MAX: usize = 64;
/// Failures of this time are shown.
const FAILURES_MS: i64 = 24 * 3_600 * 1_000;
/// The most running jobs that are shown.
const RUNNING_MAX: i64 = 200;
/// The most lines that are read when the output of a job is opened.
const FIRST_LINES_MAX: i64 = 500;
/// The most lines that are read at a time after that.
const NEXT_LINES_MAX: i64 = 1_000;
/// The most runs of a group that are shown.
const RUNS_OF_GROUP_MAX: usize = 100;

/// The end of the thread that draws.
pub(super) struct Reader {
    listener: WakeUpListener,
    requests: SyncSender<Request>,
    news: Receiver<News>,
}

/// The thread that reads has ended, which it does only after a panic.
pub(super) struct Gone;

impl Reader {
    /// Starts the thread. It ends when the reader is dropped.
    pub(super) fn start(database: &Database) -> Result<Reader, Failure> {
        let listener = database.store().listen(WakeUps::FOREIGN);
        let (requests, asked) = sync_channel(WAITING_MAX);
        let (told, news) = sync_channel(WAITING_MAX);
        let reading = Reading {
            database: database.clone(),
            listener: listener.clone(),
            asked,
            told,
            seen: None,
            lists_read_at_us: database.store().clock().monotonic_us(),
            output: None,
        };
        thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || reading.serve())
            .map_err(|error| Failure::no_resources(&format!("a thread cannot be started: {error}")))?;
        Ok(Reader { listener, requests, news })
    }

    /// Asks for something. A request beyond the bound is dropped: the reader is far behind.
    pub(super) fn ask(&self, request: Request) -> Result<(), Gone> {
        match self.requests.try_send(request) {
            Ok(()) | Err(TrySendError::Full(_)) => {
                self.listener.raise(WakeUps::EXECUTOR);
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(Gone),
        }
    }

    /// What was told since the last call, if anything.
    pub(super) fn news(&self) -> Result<Option<News>, Gone> {
        match self.news.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.listener.raise(WakeUps::STOP);
    }
}

/// The output that is followed.
struct Followed {
    /// Up to where it was read.
    position: LogPosition,
    is_over: bool,
}

/// The thread.
struct Reading {
    database: Database,
    listener: WakeUpListener,
    asked: Receiver<Request>,
    told: SyncSender<News>,
    /// What the lists were when they were read.
    seen: Option<Fingerprints>,
    /// By the clock that is never set.
    lists_read_at_us: i64,
    output: Option<Followed>,
}

/// Nobody hears the answers any more.
struct Over;

/// Why something was not read or changed.
enum Stop {
    Over,
    Problem(String),
}

impl From<Over> for Stop {
    fn from(_over: Over) -> Stop {
        Stop::Over
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Problem(format!("the database cannot be read: {error}"))
    }
}

impl Reading {
    fn serve(mut self) {
        let store = self.database.store().clone();
        let clock = store.clock().clone();
        store.watch();
        let (mut must_read, mut next_at_us) = (true, clock.monotonic_us());
        loop {
            let pause = if must_read { between(clock.monotonic_us(), next_at_us) } else { SLOW_POLL };
            let woken = self.listener.wait(pause);
            if woken.intersects(WakeUps::STOP) || self.answer_all().is_err() {
                return;
            }
            must_read |= woken.is_empty() || woken.intersects(WakeUps::FOREIGN);
            let began_us = clock.monotonic_us();
            if !must_read || began_us < next_at_us {
                continue;
            }
            ReadDeadline::set_for_this_thread(&clock, READ_MAX);
            // After a problem it is read again, so that the lists come back when it is over.
            match self.look() {
                Ok(()) => must_read = false,
                Err(Stop::Over) => return,
                Err(Stop::Problem(problem)) => {
                    self.seen = None;
                    if self.tell(News::Problem(problem)).is_err() {
                        return;
                    }
                }
            }
            let took = between(began_us, clock.monotonic_us());
            next_at_us = began_us + microseconds(INTERVAL_MIN.max(took * INTERVAL_OF_READ));
        }
    }

    fn tell(&self, news: News) -> Result<(), Over> {
        self.told.send(news).map_err(|_closed| Over)
    }

    /// Answers what was asked, at most as much as can wait.
    fn answer_all(&mut self) -> Result<(), Over> {
        for _request in 0..WAITING_MAX {
            let answered = match self.asked.try_recv() {
                Ok(request) => {
                    ReadDeadline::set_for_this_thread(self.database.store().clock(), READ_MAX);
                    self.answer(request)
                }
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(Over),
            };
            match answered {
                Ok(()) => {}
                Err(Stop::Problem(problem)) => self.tell(News::Problem(problem))?,
                Err(Stop::Over) => return Err(Over),
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Result<(), Stop> {
        match request {
            Request::Follow(job_id) => self.begin_to_follow(job_id),
            Request::Open { name, run_ids, job_ids } => {
                let runs = self.runs_of_group(&name, run_ids, job_ids)?;
                Ok(self.tell(News::Runs { name, runs })?)
            }
            Request::Pause(queue) => {
                self.change(&queue, |store| store.queues().pause(&queue))?;
                Ok(self.tell(News::Done(format!("the queue `{queue}` is paused")))?)
            }
            Request::Resume(queue) => {
                self.change(&queue, |store| store.queues().resume(&queue).map(|_was_paused| ()))?;
                Ok(self.tell(News::Done(format!("the queue `{queue}` is not paused any more")))?)
            }
        }
    }

    /// Changes a queue, and records who did it.
    fn change(
        &self,
        queue: &str,
        change: impl FnOnce(&Store) -> windlass_db::Result<()>,
    ) -> Result<(), Stop> {
        let recorded = self.database.recorded(Subject::Queue(queue.to_owned()));
        change(&recorded)
            .map_err(|error| Stop::Problem(format!("the queue `{queue}` was not changed: {error}")))
    }

    /// Reads what has changed since the last time.
    fn look(&mut self) -> Result<(), Stop> {
        let job_ids = self.output.iter().map(|output| output.position.job_id).collect();
        let watched = Watched { job_ids, ..Watched::default() };
        let now = self.database.store().upkeep().fingerprints(&watched)?;
        let is_same =
            self.seen.as_ref().is_some_and(|seen| (seen.runs, seen.queues) == (now.runs, now.queues));
        let now_us = self.database.store().clock().monotonic_us();
        if !is_same || between(self.lists_read_at_us, now_us) >= LISTS_MAX_AGE {
            self.lists_read_at_us = now_us;
            self.tell(News::Lists(Box::new(self.lists()?)))?;
        }
        let followed = self.output.as_ref().map(|output| output.position.job_id);
        let state = followed.and_then(|job_id| now.outputs.get(&job_id).copied());
        self.seen = Some(now);
        state.map_or(Ok(()), |state| self.follow(state))
    }

    fn lists(&self) -> windlass_db::Result<Lists> {
        let store = self.database.store();
        let filter = JobFilter {
            statuses: vec![JobStatus::Running],
            cursor: Cursor::newest(RUNNING_MAX),
            ..JobFilter::default()
        };
        let page = store.jobs().list(&filter)?;
        let mut running = page.rows;
        running.sort_by_key(|job| (job.started_at, job.id));
        Ok(Lists {
            queues: store.queues().list()?,
            oldest: store.queues().oldest_jobs()?,
            running,
            has_more_running: page.next.is_some(),
            failures: store.runs().failures_since(store.clock().now_ms() - FAILURES_MS)?,
        })
    }

    /// The runs of a group, each with the job that failed first in it.
    fn runs_of_group(
        &self,
        name: &GroupName,
        mut run_ids: Vec<i64>,
        mut job_ids: Vec<i64>,
    ) -> Result<Vec<FailedRun>, Stop> {
        run_ids.truncate(RUNS_OF_GROUP_MAX);
        job_ids.truncate(RUNS_OF_GROUP_MAX);
        let focused = self.database.store().runs().focused_jobs(&run_ids)?;
        let runs = run_ids.iter().filter_map(|run_id| focused.get(run_id)).map(|job| FailedRun {
            run_id: Some(job.run_id),
            job_id: job.id,
            job: job.name.clone(),
            error: job.error.clone().unwrap_or_else(|| name.error.clone()),
        });
        let alone = job_ids.iter().map(|job_id| FailedRun {
            run_id: None,
            job_id: *job_id,
            job: name.job.clone(),
            error: name.error.clone(),
        });
        Ok(runs.chain(alone).collect())
    }

    /// Reads the last lines of a job.
    fn begin_to_follow(&mut self, job_id: i64) -> Result<(), Stop> {
        let store = self.database.store();
        let is_over = store.jobs().get(job_id)?.finished_at.is_some();
        let end = LogPosition { job_id, attempt: i64::MAX, line: i64::MAX };
        let lines = store.logs().before(end, FIRST_LINES_MAX)?;
        let position = position_after(&lines, LogPosition { job_id, attempt: 0, line: 0 });
        self.output = Some(Followed { position, is_over });
        Ok(self.tell(News::Output { job_id, lines, placement: Placement::InPlaceOfAll, is_over })?)
    }

    /// Reads the lines that the job has written since the last time.
    fn follow(&mut self, now: OutputState) -> Result<(), Stop> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let job_id = output.position.job_id;
        // An attempt that has begun has no line yet.
        let is_longer =
            now.line > 0 && (now.attempt, now.line) > (output.position.attempt, output.position.line);
        let is_over = now.is_over;
        if !is_longer && is_over == output.is_over {
            return Ok(());
        }
        let mut lines = Vec::new();
        if is_longer {
            lines = self.database.store().logs().after(output.position, NEXT_LINES_MAX)?;
        }
        output.position = position_after(&lines, output.position);
        output.is_over = is_over;
        if lines.len() as i64 == NEXT_LINES_MAX {
            // More lines than are kept are not read one by one.
            return self.begin_to_follow(job_id);
        }
        Ok(self.tell(News::Output { job_id, lines, placement: Placement::AtTheEnd, is_over })?)
    }
}

/// From one instant to another, in microseconds; nothing if it is before.
fn between(from_us: i64, until_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(until_us - from_us).unwrap_or(0))
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The position of the last of these lines.
fn position_after(lines: &[LogLine], before: LogPosition) -> LogPosition {
    lines.last().map_or(before, |last| LogPosition {
        job_id: before.job_id,
        attempt: last.attempt,
        line: last.line,
    })
}
