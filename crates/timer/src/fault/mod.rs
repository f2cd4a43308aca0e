//! Timing faults: what happens when a thread passes its deadline.
//!
//! Owns: a thread's own watch over its deadlines ([`Watch`]), handlers for those that it passes
//! ([`deadline_handler`]), regions that put a stop off ([`defer`]), safepoints ([`safepoint`]).
//! Must not: end a thread anywhere else, ask for privileges, print.

mod deadlines;
mod error;
mod handler;
mod jobs;
mod region;
pub mod sim;
mod verdict;
mod watch;

pub use error::{Ended, FaultError};
pub use handler::{Attributes, DeadlineHandler, deadline_handler};
pub use hourglass_sys::sched::Attributes as Scheduling;
pub use jobs::{Deadline, Ending, Jobs, Periodic};
pub use region::{Region, defer, safepoint};
pub use verdict::{Change, Fault, Handled, Strength, Verdict};
pub use watch::{Settings, Watch, Watched};
