//! The execution trace: intervals of continuous processor time.

use crate::Evidence;

hourglass_documents::named_enum! {
    /// What stands before an interval: why the one before it ended.
    ///
    /// This is what the recorder itself knows, without inference.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum IntervalStart {
        /// The thread's first interval.
        Start = 0,
        /// A gap: the counter jumped by more than GAP between two reads.
        Gap = 1,
        /// The thread waited for its next period by its own will.
        Wait = 2,
        /// The thread had just yielded the processor.
        Yield = 3,
        /// Two reads in a row came from different CPUs.
        Migration = 4,
        /// The thread was due to run after a wait of its own, and ran later. Its evidence counts an involuntary
        /// switch if the thread was ready for most of that and waited for a CPU, and none if it was made ready late;
        /// there is none where the two share it.
        Late = 5,
    }
}

impl IntervalStart {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The value with this code; `None` for a code of a later version.
    pub fn from_code(code: u8) -> Option<IntervalStart> {
        IntervalStart::ALL.get(usize::from(code)).copied()
    }

    /// Whether the time before the interval was taken from the thread, rather than given up by
    /// its own wait or not yet begun.
    pub fn is_gap(self) -> bool {
        !matches!(self, IntervalStart::Start | IntervalStart::Wait)
    }
}

/// One record of an execution trace: a thread ran on `cpu` from `start_ns` to `end_ns` without a
/// gap (Hourglass paper, section 3.1).
///
/// Nanoseconds count from the run's start; ticks are the raw counter.
/// `start_ns <= end_ns` and `start_ticks <= end_ticks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Number of the thread in the run, from 0.
    pub thread: u32,
    pub cpu: u32,
    /// First moment at which the thread was seen to run, ns from the run's start.
    pub start_ns: i64,
    /// Last moment at which it was seen to run, ns from the run's start.
    pub end_ns: i64,
    /// `start_ns` on the raw counter.
    pub start_ticks: u64,
    /// `end_ns` on the raw counter.
    pub end_ticks: u64,
    pub onset: IntervalStart,
    /// What else was seen about what stands before this interval.
    pub evidence: Evidence,
}

impl Interval {
    /// An interval with no evidence, of which the raw counter was not read.
    pub fn new(
        thread: u32,
        cpu: u32,
        start_ns: i64,
        end_ns: i64,
        onset: IntervalStart,
    ) -> Interval {
        let evidence = Evidence::default();
        Interval { thread, cpu, start_ns, end_ns, start_ticks: 0, end_ticks: 0, onset, evidence }
    }

    pub fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
