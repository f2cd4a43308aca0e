//! Results as text: the paper's lines for scripts, and the summary for people.

mod cache_cost;
mod check;
mod clock_watch;
mod clocks;
mod confidence;
mod cyclic;
mod diff;
mod doctor;
mod fleet;
mod inferences;
mod late_jobs;
mod model;
mod noise;
mod occupants;
mod paper;
mod paper_grid;
mod predict;
mod records;
mod reservations;
mod reserve;
mod reserve_clean;
mod simulation;
mod sites;
mod stacks;
mod summary;
mod sweep;
mod table;
mod top;
mod utc;
mod verdict;
mod wakeups;
mod watched_threads;

use hourglass_documents::document::{Deadlines, ThreadReport};

pub use cache_cost::cache_cost;
pub use check::{analyses, check, examples};
pub use clock_watch::{WATCH_SHOWN, watch_header, watch_line, watch_picture};
pub use clocks::{clock_devices, clocks};
pub use confidence::confidence;
pub use cyclic::{
    CyclicSteps, CyclicThread, CyclicUnit, cyclic_histogram, cyclic_row, cyclic_sample,
    cyclic_status,
};
pub use diff::diff;
pub use doctor::doctor;
pub use fleet::fleet;
pub use model::{NO_TASK_BY_COUNTS, task_model, unmodelled};
pub use noise::{NoiseCpu, noise};
pub use occupants::{BY_COUNTS, meanwhile};
pub(crate) use occupants::{all as ran, heading as worst_heading, reason};
pub use paper::{paper, papers};
pub use predict::predict;
pub use records::RecordWriter;
pub use reservations::reservations;
pub use reserve::{reserve, reserve_check, reserve_moment, reserve_proposals};
pub use reserve_clean::reserve_clean;
pub use simulation::simulation;
pub(crate) use sites::{between, sentence as lost_span};
pub use stacks::stacks;
pub(crate) use stacks::{frames as stack_frames, heading as stack_heading, moment as stack_moment};
pub(crate) use summary::after as interrupted_after;
pub(crate) use summary::gate_outcome;
pub use summary::{gate_word, limit, summary};
pub use sweep::{sweep, sweep_summary};
pub(crate) use table::TextStyle;
pub use table::{NARROW, wrapped_within};
pub use top::top;
pub use utc::{utc, utc_header, utc_line};
pub use verdict::broken;
pub(crate) use verdict::verdict;
pub use watched_threads::{watched, watched_live};

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences at all.
    #[default]
    Plain,
    /// ANSI colours.
    Colour,
}

/// How often a thread got its amount, if that says more than its deadlines do: a thread that
/// need not wait for its next period (`CPU_PERIODIC`, section 3.2) may get it more than once in
/// each.
fn completed(thread: &ThreadReport) -> Option<u64> {
    let Deadlines { hit, completed, .. } = thread.deadlines?;
    let need_not_wait = thread.workload.starts_with("CPU_PERIODIC");
    (need_not_wait && completed > hit).then_some(completed)
}
