//! What Windlass does on a machine, beside what the machine can do at all through the same library.
//!
//! Each part is a file in `parts`: it measures Windlass and the raw reference in turns, round by round, so that
//! a machine whose speed drifts does not decide a ratio. `raw` has the references, and all SQL of this crate.

mod children;
mod error;
mod idle;
mod interruption;
mod machine;
mod noop;
mod parts;
mod place;
mod plan;
mod raw;
mod record;
mod report;
mod statistics;
mod workflows;

pub use children::{ChildTask, execute_child};
pub use error::BenchError;
pub use interruption::Interruption;
pub use machine::Machine;
pub use place::Underneath;
pub use plan::{Part, Plan, Sizes};
pub use report::{Figure, Kind, Ratio, Report, Unit};
pub use statistics::Spread;

use place::Scratch;
use record::Record;

/// Version of the form of a [`Report`] as JSON.
pub const REPORT_VERSION: u32 = 1;

/// Measures the parts of a plan. `tell` hears what is being measured. Nothing is left behind, also when it is
/// interrupted.
///
/// # Errors
/// [`BenchError::Interrupted`] when the plan's flag is raised, and whatever the database or the machine refuses.
pub fn measure(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    let scratch = Scratch::new(plan)?;
    let machine = Machine::look(&scratch)?;
    let mut figures = Vec::new();
    for part in &plan.parts {
        tell(part.about());
        let mut record = Record::new(*part);
        match part {
            Part::Drain => parts::drain::measure(&scratch, &mut record)?,
            Part::Enqueue => parts::enqueue::measure(&scratch, &mut record)?,
            Part::Chain => parts::chain::measure(&scratch, &mut record)?,
            Part::Fan => parts::fan::measure(&scratch, &mut record)?,
            Part::Process => parts::process::measure(&scratch, &mut record)?,
            Part::Latency => parts::latency::measure(&scratch, &mut record)?,
            Part::Scale => parts::scale::measure(&scratch, &mut record)?,
            Part::Memory => parts::memory::measure(&scratch, &mut record)?,
        }
        figures.extend(record.into_figures());
    }
    Ok(Report {
        report_version: REPORT_VERSION,
        windlass_version: env!("CARGO_PKG_VERSION"),
        rounds: plan.rounds,
        jobs: plan.jobs,
        machine,
        figures,
    })
}
