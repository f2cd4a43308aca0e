//! What a picture of a trace shows, and how large.

use std::collections::BTreeMap;

use hourglass_documents::kernel::KernelNames;
use hourglass_time::Span;

use crate::occupants::OccupantNames;

/// Default width of a picture, pixels: fits a page and a screen.
const USUAL_WIDTH: u32 = 960;

/// What the rows of a picture are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// One row for each thread, as in the paper's Figures 3 and 6.
    #[default]
    Threads,
    /// One row for each CPU, the threads in colours of their own.
    Cpus,
}

/// What a picture of an execution trace shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Left edge, from the run's start.
    pub from: Span,
    /// Right edge, from the run's start. Must lie behind `from`.
    pub to: Span,
    /// Width of the whole picture in pixels, held between 320 and 8192.
    pub width: u32,
    /// What stands above the picture; nothing if empty.
    pub title: String,
    pub rows: Rows,
    /// Number and workload of each thread, for the labels. A thread named here has its row even
    /// if it never ran in the range shown.
    pub threads: Vec<(u32, String)>,
    /// The kernel's numbers of those threads that were traced, and theirs in the run.
    pub tids: BTreeMap<u32, u32>,
    /// What the kernel calls other threads.
    pub names: KernelNames,
}

impl TraceOptions {
    /// A picture of the time between `from` and `to`: one row for each thread, 960 pixels wide,
    /// without a title.
    #[must_use]
    pub fn new(from: Span, to: Span) -> TraceOptions {
        TraceOptions {
            from,
            to,
            width: USUAL_WIDTH,
            title: String::new(),
            rows: Rows::default(),
            threads: Vec::new(),
            tids: BTreeMap::new(),
            names: KernelNames::default(),
        }
    }

    /// What those who had the CPUs are called.
    pub(super) fn called(&self) -> OccupantNames<'_> {
        let label = |(tid, id): (&u32, &u32)| (*tid, (*id, self.label_of(*id).to_owned()));
        OccupantNames { measured: self.tids.iter().map(label).collect(), names: &self.names }
    }

    /// What `threads` says about a thread; nothing if it does not name it.
    pub(super) fn label_of(&self, thread: u32) -> &str {
        let mut labels = self.threads.iter();
        let label = labels.find(|(id, _)| *id == thread);
        label.map_or("", |(_, label)| label)
    }
}
