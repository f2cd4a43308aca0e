//! A gap with its cause.

use hourglass_documents::Cause;

use super::indications::IndicationSet;

/// How a cause is known (section 4 keeps these apart).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CauseBasis {
    /// The cause follows from the evidence: non-statistical inference.
    Seen,
    /// The cause is the best explanation of what was seen many times: statistical inference.
    Inferred {
        /// From 0 to 1.
        confidence: f64,
    },
}

impl CauseBasis {
    /// From 0 to 1; a cause that was seen has 1.
    pub fn confidence(self) -> f64 {
        match self {
            CauseBasis::Seen => 1.0,
            CauseBasis::Inferred { confidence } => confidence,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Successor {
    /// A thread of the run, by its number in the run.
    OfRun(u32),
    /// Another thread, by the kernel's number.
    Kernel(u32),
}

/// Threads that are kept of those that had the CPU in a gap.
const MOST_RAN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupantShare {
    /// The occupant; the kernel's number 0 means that the CPU was idle.
    pub who: Successor,
    /// The time that it had, ns, with interrupts that came meanwhile.
    pub ns: u64,
}

/// Who had the CPU for which a thread waited, as the kernel's events tell it: those that had the most of
/// it, at most three, the longest first. Empty where the events do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapOccupants {
    shares: [Option<OccupantShare>; MOST_RAN],
}

impl GapOccupants {
    /// Of all that had it, each once, those that had the most. Of equals the first stays.
    pub fn from_shares(all: impl IntoIterator<Item = OccupantShare>) -> GapOccupants {
        let mut ran = GapOccupants::default();
        for share in all {
            let before =
                |kept: &Option<OccupantShare>| kept.is_some_and(|kept| kept.ns >= share.ns);
            let place = ran.shares.partition_point(before);
            if let Some(rest) = ran.shares.get_mut(place..).filter(|rest| !rest.is_empty()) {
                rest.rotate_right(1);
                rest[0] = Some(share);
            }
        }
        ran
    }

    pub fn iter(&self) -> impl Iterator<Item = OccupantShare> + '_ {
        self.shares.iter().flatten().copied()
    }

    pub fn longest(&self) -> Option<OccupantShare> {
        self.shares[0]
    }
}

/// Where the time of a gap went, as the kernel's events tell it. Nanoseconds; nested work counts
/// for the innermost. The sum is the length of the gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapBreakdown {
    /// Other threads had the CPU, or the thread waited for one.
    pub switched_ns: u64,
    pub tick_ns: u64,
    pub irq_ns: u64,
    pub softirq_ns: u64,
    /// Page faults: from each to the next event.
    pub fault_ns: u64,
    /// Signals: from each to the next event.
    pub signal_ns: u64,
    /// Outside of everything that the kernel recorded: its way in and out, and what is below it.
    pub silent_ns: u64,
}

/// A gap, and why it was there.
///
/// Its length is `end_ns - start_ns`, nanoseconds from the run's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttributedGap {
    pub thread: u32,
    pub cpu_before: u32,
    pub cpu_after: u32,
    /// Last moment at which it was seen to run.
    pub start_ns: i64,
    /// First moment at which it was seen to run again.
    pub end_ns: i64,
    pub cause: Cause,
    pub basis: CauseBasis,
    pub evidence: IndicationSet,
    /// Who had the CPU, where another thread had it and is known: for the longest time where the kernel's
    /// events tell how long, else first.
    pub to_thread: Option<Successor>,
    /// Who had the CPU for how long, where the kernel's events cover all of the gap.
    pub occupants: GapOccupants,
    /// The parts of the gap, where the kernel's events cover all of it.
    pub composition: Option<GapBreakdown>,
}

impl AttributedGap {
    /// Length in nanoseconds; 0 for a gap that ends before it starts.
    pub fn length_ns(&self) -> u64 {
        length_ns(self.start_ns, self.end_ns)
    }

    /// How sure the cause is, from 0 to 1.
    pub fn confidence(&self) -> f64 {
        self.basis.confidence()
    }

    /// Whether another thread had the CPU in the gap, whatever made it so: a context switch, and
    /// also throttling, a budget, a quota, a stop or a migration that was proven to be one.
    pub fn was_switched(&self) -> bool {
        self.cause.is_switch() || self.evidence.prove_a_switch()
    }
}

/// `end - start`, never negative.
pub(super) fn length_ns(start: i64, end: i64) -> u64 {
    u64::try_from(i128::from(end) - i128::from(start)).unwrap_or(0)
}
