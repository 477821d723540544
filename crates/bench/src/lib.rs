//! Measures Windlass on a machine, and compares it with minimal programs on the same database library.
//!
//! Each part is a file in `parts`. It measures Windlass and a reference alternately, in rounds, so that the ratios are correct
//! even if the speed of the machine changes. `raw` has the references, and all SQL of this crate.

mod children;
mod error;
mod idle;
mod interruption;
mod machine;
mod noop;
mod parts;
mod plan;
mod raw;
mod record;
mod report;
mod scratch;
mod statistics;
mod workflows;

pub use children::{ChildTask, execute_child};
pub use error::BenchError;
pub use interruption::Interruption;
pub use machine::Machine;
pub use plan::{Part, Plan, Sizes};
pub use report::{Figure, Kind, Ratio, Report, Unit};
pub use scratch::DatabaseLocation;
pub use statistics::Spread;

use record::Record;
use scratch::Scratch;

/// The version of the JSON form of a [`Report`].
pub const REPORT_VERSION: u32 = 1;

/// Measures the parts of a plan. Calls `tell` with a description of each part. All temporary data is removed, even after an
/// interruption.
///
/// # Errors
/// [`BenchError::Interrupted`] when the plan's flag is set; errors of the database and of the operating system.
pub fn measure(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    let scratch = Scratch::new(plan)?;
    let machine = Machine::detect(&scratch)?;
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
