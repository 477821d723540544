//! Which lines of jobs are shown while a run executes, and how.

use crate::arguments::Show;

/// What is shown of the output of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputPlan {
    pub(crate) streamed: Streamed,
    pub(crate) names: LineNames,
    pub(crate) of_failed: Shown,
    /// The last lines of running jobs, below the progress.
    pub(crate) tails: Shown,
}

/// The jobs whose lines are shown as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streamed {
    Every,
    /// Jobs that no other job of the run can run beside.
    Alone,
    None,
}

/// What stands before each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineNames {
    Nothing,
    /// The name of its job.
    Job,
}

/// Whether something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// How the jobs of the runs can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    OneAfterTheOther,
    SideBySide,
}

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A terminal with a live view.
    LiveTerminal,
    /// A pipe, a file, or a terminal without a view.
    Elsewhere,
}

impl OutputPlan {
    /// Decides by the option of the user, or else by the order of the jobs and the place.
    pub(crate) fn of(option: Option<Show>, order: Order, place: Place) -> OutputPlan {
        let nothing = OutputPlan {
            streamed: Streamed::None,
            names: LineNames::Nothing,
            of_failed: Shown::No,
            tails: Shown::No,
        };
        let names = match order {
            Order::OneAfterTheOther => LineNames::Nothing,
            Order::SideBySide => LineNames::Job,
        };
        let everything = OutputPlan { streamed: Streamed::Every, names, ..nothing };
        match (option, order, place) {
            (Some(Show::None), _, _) => nothing,
            (Some(Show::Failed), _, _) => OutputPlan { of_failed: Shown::Yes, ..nothing },
            (Some(Show::All), _, _)
            | (None, Order::OneAfterTheOther, _)
            | (None, Order::SideBySide, Place::Elsewhere) => everything,
            (None, Order::SideBySide, Place::LiveTerminal) => OutputPlan {
                streamed: Streamed::Alone,
                names: LineNames::Nothing,
                of_failed: Shown::Yes,
                tails: Shown::Yes,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_only_where_jobs_run_side_by_side() {
        use LineNames::{Job, Nothing};
        use Order::{OneAfterTheOther, SideBySide};
        use Place::{Elsewhere, LiveTerminal};
        let cases = [
            (None, OneAfterTheOther, LiveTerminal, Streamed::Every, Nothing),
            (None, OneAfterTheOther, Elsewhere, Streamed::Every, Nothing),
            (None, SideBySide, LiveTerminal, Streamed::Alone, Nothing),
            (None, SideBySide, Elsewhere, Streamed::Every, Job),
            (Some(Show::All), SideBySide, LiveTerminal, Streamed::Every, Job),
            (Some(Show::All), OneAfterTheOther, LiveTerminal, Streamed::Every, Nothing),
            (Some(Show::Failed), OneAfterTheOther, LiveTerminal, Streamed::None, Nothing),
            (Some(Show::None), SideBySide, Elsewhere, Streamed::None, Nothing),
        ];
        for (option, order, place, streamed, names) in cases {
            let plan = OutputPlan::of(option, order, place);
            assert_eq!((plan.streamed, plan.names), (streamed, names), "{option:?} {order:?} {place:?}");
        }
    }

    #[test]
    fn the_output_of_a_failed_job_is_shown_once() {
        for option in [None, Some(Show::All), Some(Show::Failed), Some(Show::None)] {
            for order in [Order::OneAfterTheOther, Order::SideBySide] {
                for place in [Place::LiveTerminal, Place::Elsewhere] {
                    let plan = OutputPlan::of(option, order, place);
                    let twice = plan.streamed == Streamed::Every && plan.of_failed == Shown::Yes;
                    let never = plan.streamed == Streamed::None && plan.of_failed == Shown::No;
                    assert!(!twice, "{plan:?}");
                    assert_eq!(never, option == Some(Show::None), "{plan:?}");
                }
            }
        }
    }
}
