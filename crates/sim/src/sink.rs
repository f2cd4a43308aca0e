//! Receivers of the slices and events of a simulation.
//!
//! Owns: [`Sink`], its choice of reports, [`Slice`] and [`Event`]. Must not: store anything itself.

/// A thread ran on a CPU without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub cpu: u32,
    pub thread: usize,
    pub job: u64,
    /// The start of the slice, ns.
    pub start: u64,
    /// Until when, ns; later than `start`.
    pub end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job may run.
    Release {
        thread: usize,
        job: u64,
        /// When it arrived, ns.
        arrival: u64,
    },
    Completion {
        thread: usize,
        job: u64,
        /// Since its arrival, ns.
        response: u64,
    },
    /// A job missed its deadline. Reported when it is done, or at the horizon if it is not done then.
    Miss {
        thread: usize,
        job: u64,
        /// When it was due, ns.
        due: u64,
    },
    /// A job is never to start, because an earlier one was still running.
    Lost {
        thread: usize,
        job: u64,
        /// When it arrived, ns.
        arrival: u64,
    },
    /// A thread has nothing to run, or waits: for a lock, a time, or another thread.
    Waits { thread: usize },
    /// A server has spent its budget.
    Exhausted { server: usize },
    /// A server has its budget back, or has a new deadline.
    Replenished {
        server: usize,
        /// The absolute deadline, ns; for servers without one, the end of the period.
        deadline: u64,
    },
    /// Fixed priorities may not run on a CPU until their next period.
    Throttled { cpu: u32 },
    /// Threads of fixed priorities may run again.
    Unthrottled { cpu: u32 },
}

/// What a sink wants to hear, besides how far the simulation is. The less it is, the faster the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SinkDetail {
    /// Nothing: the statistics of the outcome are enough.
    Nothing,
    Slices,
    /// Events, too.
    Everything,
}

/// Takes in what happens, in order of time; slices when they end.
///
/// An implementation MUST NOT assume that slices of different CPUs are sorted by their start: a slice
/// that began earlier may end later.
pub trait Sink {
    /// The reports that the sink wants; asked once, at the beginning.
    fn interest(&self) -> SinkDetail {
        SinkDetail::Everything
    }

    fn ran(&mut self, slice: Slice);

    fn event(&mut self, at: u64, event: Event);

    /// Receives the progress of the simulation from time to time, ns. Returns whether to go on; if
    /// not, it ends at this instant as at its horizon.
    fn reached(&mut self, _: u64) -> bool {
        true
    }
}

/// Drops the first slices, which the inner sink received already.
pub(super) struct SkippingSink<'a> {
    sink: &'a mut dyn Sink,
    skipped: u64,
    /// How far it knows that the simulation is, ns.
    reached: u64,
}

impl<'a> SkippingSink<'a> {
    /// Drops the first `skipped` slices.
    pub(super) fn of(sink: &'a mut dyn Sink, skipped: u64) -> SkippingSink<'a> {
        SkippingSink { sink, skipped, reached: 0 }
    }
}

impl Sink for SkippingSink<'_> {
    fn interest(&self) -> SinkDetail {
        self.sink.interest()
    }

    fn ran(&mut self, slice: Slice) {
        match self.skipped.checked_sub(1) {
            Some(left) => self.skipped = left,
            None => {
                self.reached = slice.end;
                self.sink.ran(slice);
            }
        }
    }

    fn event(&mut self, at: u64, event: Event) {
        self.sink.event(at, event);
    }

    fn reached(&mut self, now: u64) -> bool {
        self.reached == 0 || self.sink.reached(now)
    }
}

/// A sink that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn interest(&self) -> SinkDetail {
        SinkDetail::Nothing
    }

    fn ran(&mut self, _: Slice) {}

    fn event(&mut self, _: u64, _: Event) {}
}
