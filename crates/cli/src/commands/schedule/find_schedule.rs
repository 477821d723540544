//! Finds the schedule that a person named.

use std::path::Path;

use windlass_engine::store::Schedule;

use crate::database::Database;
use crate::error::Failure;
use crate::find::nearest_name;
use crate::shell_words::quoted;

/// Why a name does not identify a schedule.
#[derive(Debug, PartialEq, Eq)]
enum Unclear {
    /// No schedule has the name. Holds the most similar name.
    Unknown(Option<String>),
    /// Several schedules have the name. Holds their keys.
    Several(Vec<String>),
}

/// The schedule with this name.
pub(super) fn find_schedule(database: &Database, name: &str) -> Result<Schedule, Failure> {
    let schedules = database.ask(|store| store.schedules().list())?;
    let address = database.address();
    match schedule_of_name(&schedules, name) {
        Ok(schedule) => Ok(schedule.clone()),
        Err(Unclear::Several(keys)) => Err(Failure::usage(
            format!("`{name}` can mean {}", keys.join(" or ")),
            format!("write the full name, for example {}", keys.first().map_or("", String::as_str)),
        )),
        Err(Unclear::Unknown(_)) if Path::new(name).is_file() => Err(Failure::usage(
            format!("`{name}` is a file, but the name of a schedule is needed"),
            format!(
                "`{}` registers its schedules; `{}` lists those that are registered",
                database.hint(&format!("apply {}", quoted(name))),
                database.hint("schedule list")
            ),
        )),
        Err(Unclear::Unknown(_)) if schedules.is_empty() => Err(Failure::not_found(
            format!("there is no schedule in {address}"),
            format!(
                "add [[schedules]] to a workflow file, then register it with `{}`",
                database.hint("apply FILE")
            ),
        )),
        Err(Unclear::Unknown(near)) => {
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Err(Failure::not_found(
                format!("there is no schedule `{name}` in {address}{hint}"),
                format!("`{}` lists the schedules", database.hint("schedule list")),
            ))
        }
    }
}

/// The name is `WORKFLOW/NAME`, a workflow with one schedule, or the name of only one schedule.
fn schedule_of_name<'a>(schedules: &'a [Schedule], name: &str) -> Result<&'a Schedule, Unclear> {
    if let Some(schedule) = schedules.iter().find(|schedule| schedule.key() == name) {
        return Ok(schedule);
    }
    let of_workflow: Vec<&Schedule> = schedules.iter().filter(|schedule| schedule.workflow == name).collect();
    let named: Vec<&Schedule> = schedules.iter().filter(|schedule| schedule.name == name).collect();
    match (of_workflow.as_slice(), named.as_slice()) {
        ([only], _) | ([], [only]) => Ok(only),
        ([], []) => {
            let keys: Vec<String> = schedules.iter().map(Schedule::key).collect();
            let names = schedules
                .iter()
                .flat_map(|schedule| [schedule.workflow.as_str(), schedule.name.as_str()])
                .chain(keys.iter().map(String::as_str));
            Err(Unclear::Unknown(nearest_name(name, names).map(str::to_owned)))
        }
        ([], several) | (several, _) => {
            Err(Unclear::Several(several.iter().map(|schedule| schedule.key()).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::schedules::examples::schedule;

    #[test]
    fn a_name_must_identify_one_schedule() {
        let schedules = [
            schedule("report", "default"),
            schedule("billing", "daily"),
            schedule("billing", "monthly"),
            schedule("cleanup", "daily"),
            schedule("monthly", "monthly"),
        ];
        let means = |name| schedule_of_name(&schedules, name).map(Schedule::key);
        let key = |key: &str| Ok(key.to_owned());
        assert_eq!(means("billing/daily"), key("billing/daily"));
        assert_eq!(means("report"), key("report/default"));
        assert_eq!(means("default"), key("report/default"));
        assert_eq!(means("monthly"), key("monthly/monthly"), "the workflow comes first");
        let several = |keys: [&str; 2]| Err(Unclear::Several(keys.map(str::to_owned).to_vec()));
        assert_eq!(means("billing"), several(["billing/daily", "billing/monthly"]));
        assert_eq!(means("daily"), several(["billing/daily", "cleanup/daily"]));
        assert_eq!(means("bilings"), Err(Unclear::Unknown(Some("billing".to_owned()))));
        assert_eq!(means("xyz"), Err(Unclear::Unknown(None)));
    }
}
