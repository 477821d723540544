//! Expressions: conditions that stand bare in a key of the file, and the parts of templates between braces.
//!
//! The language is that of minijinja, restricted so that nothing can run for long or fill the memory: look-ups,
//! comparisons, sums and a few filters. There are no statements, loops, functions or repetition. `allowed` has the list of
//! what is allowed. It is applied when a file is read, and again when an expression is evaluated.

mod allowed;
mod bare;
mod choices;
mod date;
mod evaluate;
mod fault;
mod filters;
mod foreign;
mod hints;
mod lookup;
mod missing;
mod names;
mod place;
mod reads;
mod scope;
mod text;
mod types;

pub(crate) use allowed::lookups;
pub use bare::{Expression, ExpressionError};
pub(crate) use bare::{TOO_LONG_HELP, parse, shorten};
pub(crate) use fault::Fault;
pub(crate) use filters::environment;
pub(crate) use lookup::{IfAbsent, Lookup, Segment};
pub(crate) use missing::explain;
pub(crate) use names::{Form, Site, check};
pub use place::Place;
pub use reads::{JobField, JobRead};
pub(crate) use scope::{HasItems, HasWorkspace, Reader, Scope};
pub(crate) use text::to_text;
pub(crate) use types::{check_arithmetic, check_condition, check_list};
