//! The next times of a schedule.

use windlass_engine::store::Schedule;
use windlass_workflow::schedule::{Occurrence, Timetable};

use crate::error::Failure;
use crate::text::style::{YELLOW, paint};
use crate::text::table::{self, Column, Table};
use crate::text::{schedules, time};

/// The next times from now on.
pub(super) fn from_now(schedule: &Schedule, count: usize) -> Result<Vec<Occurrence>, Failure> {
    after(schedule, time::now_ms().max(schedule.decided_until), count)
}

/// The next times after an instant.
pub(super) fn after(schedule: &Schedule, instant_ms: i64, count: usize) -> Result<Vec<Occurrence>, Failure> {
    let timetable = Timetable::of(&schedule.definition).map_err(|error| {
        Failure::usage(
            format!("the rule of schedule {} is invalid: {}", schedule.key(), error.reason),
            error.help,
        )
    })?;
    Ok(timetable.after(instant_ms).take(count).collect())
}

/// The times as a table.
pub(super) fn table(schedule: &Schedule, occurrences: &[Occurrence]) -> String {
    let now_ms = time::now_ms();
    let zone = schedule.definition.timezone.as_str();
    let mut table = match zone {
        "UTC" => Table::new(&[Column::Left("UTC"), Column::Left("IN"), Column::Shrinking("")]),
        _ => Table::new(&[
            Column::Left("LOCAL"),
            Column::Left("UTC"),
            Column::Left("IN"),
            Column::Shrinking(""),
        ]),
    };
    for occurrence in occurrences {
        let moved = occurrence.moved.map(|moved| paint(YELLOW, moved)).unwrap_or_default();
        let utc = time::utc(occurrence.at_ms);
        let distance = time::relative(occurrence.at_ms, now_ms);
        match zone {
            "UTC" => table.row([utc, distance, moved]),
            _ => table.row([
                schedules::local_time(occurrence.at_ms, &schedule.definition),
                utc,
                distance,
                moved,
            ]),
        }
    }
    table.render(table::stdout_width())
}
