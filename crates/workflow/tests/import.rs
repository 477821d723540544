//! A workflow made from a crontab runs at the times of cron.
#![allow(clippy::unwrap_used)]

use windlass_workflow::import::{CrontabOptions, UserColumn, crontab};
use windlass_workflow::schedule::Timetable;
use windlass_workflow::{Source, parse};

const MINUTE_MS: i64 = 60_000;
/// The beginning of 2027 and of 2028.
const YEAR: [i64; 2] = [1_798_761_600_000, 1_830_297_600_000];
/// 2027 begins with a Friday.
const FIRST_WEEKDAY: u16 = 5;
const MONTHS: [u16; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A field of cron: whether a number is in it, and whether it begins with a star.
struct CronField {
    numbers: Vec<u16>,
    is_star: bool,
}

impl CronField {
    fn parse(text: &str, least: u16, most: u16) -> CronField {
        let mut numbers = Vec::new();
        for item in text.split(',') {
            let (range, step) =
                item.split_once('/').map_or((item, 1), |(range, step)| (range, step.parse().unwrap()));
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
                None if range == "*" => (least, most),
                None => (range.parse().unwrap(), range.parse().unwrap()),
            };
            numbers.extend((first..=last).step_by(step));
        }
        CronField { numbers, is_star: text.starts_with('*') }
    }

    fn has(&self, number: u16) -> bool {
        self.numbers.contains(&number)
    }
}

/// All times of an entry in 2027, UTC, found as cron finds them: by a look at each minute.
fn times_of_cron(rule: &str) -> Vec<i64> {
    let fields: Vec<&str> = rule.split(' ').collect();
    let minute = CronField::parse(fields[0], 0, 59);
    let hour = CronField::parse(fields[1], 0, 23);
    let day = CronField::parse(fields[2], 1, 31);
    let month = CronField::parse(fields[3], 1, 12);
    let weekday = CronField::parse(fields[4], 0, 7);
    let (mut times, mut at_ms, mut day_of_week) = (Vec::new(), YEAR[0], FIRST_WEEKDAY);
    for (index, days) in MONTHS.iter().enumerate() {
        for day_of_month in 1..=*days {
            let in_day = day.has(day_of_month);
            let in_week = weekday.has(day_of_week) || (day_of_week == 0 && weekday.has(7));
            let is_day = if day.is_star || weekday.is_star { in_day && in_week } else { in_day || in_week };
            for minute_of_day in 0..24 * 60 {
                let is_time = hour.has(minute_of_day / 60) && minute.has(minute_of_day % 60);
                if month.has(u16::try_from(index).unwrap() + 1) && is_day && is_time {
                    times.push(at_ms);
                }
                at_ms += MINUTE_MS;
            }
            day_of_week = (day_of_week + 1) % 7;
        }
    }
    times
}

fn times_of_workflow(file: &str) -> Vec<i64> {
    let workflow = parse(&Source::new("imported.toml", file.as_bytes().to_vec()).unwrap()).unwrap();
    let timetable = Timetable::of(&workflow.schedules[0]).unwrap();
    let times = timetable.after(YEAR[0] - 1).map(|occurrence| occurrence.at_ms);
    times.take_while(|at_ms| *at_ms < YEAR[1]).collect()
}

#[test]
fn entries_run_at_the_times_of_cron_for_a_year() {
    let options = CrontabOptions { timezone: "UTC".to_owned(), home: None, users: UserColumn::Absent };
    let (mut compared, mut left_out) = (0, 0);
    for minute in ["0", "10-14/2"] {
        for hour in ["3", "*/7"] {
            for day in ["*", "1", "*/2", "10-12,31", "*/1"] {
                for month in ["*", "2,12"] {
                    for weekday in ["*", "1-5", "7", "*/3", "0,6"] {
                        let rule = format!("{minute} {hour} {day} {month} {weekday}");
                        let imported = crontab(&format!("{rule} true\n"), &options);
                        match &imported.workflows[..] {
                            [] => left_out += 1,
                            [workflow] => {
                                assert_eq!(times_of_workflow(&workflow.text), times_of_cron(&rule), "{rule}");
                                compared += 1;
                            }
                            more => panic!("{more:?}"),
                        }
                    }
                }
            }
        }
    }
    // Left out: a step of days beside a restricted day of the week, and the reverse.
    assert!(compared > 150 && left_out > 0, "{compared} compared, {left_out} left out");
}
