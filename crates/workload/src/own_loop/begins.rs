//! How late the periods of a loop begin, and under which policy and on which CPUs its thread runs then.
//!
//! Owns: room for both, made before the start. Must not: allocate between two marks; say why a begin is late.

use hourglass_documents::Policy;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::{self as os, CpuWords};
use hourglass_time::Span;

use super::LoopSpec;
use crate::memory::LatencyRecorder;
use crate::timeline::Timeline;
use crate::wake_times::WakeTimes;

/// Policy and CPUs are looked at when the first period begins, and then no more often than this.
const LOOK: Span = Span::from_millis(1_000);

/// What the kernel says of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopConditions {
    attributes: Option<Attributes>,
    pub(super) cpus: CpuWords,
}

impl LoopConditions {
    pub(super) fn now() -> LoopConditions {
        LoopConditions {
            attributes: sched::read(0).ok().flatten(),
            cpus: os::affinity_words_of(0).unwrap_or_default(),
        }
    }

    /// Empty where it is not known.
    pub(super) fn policy(&self) -> String {
        let policy = match self.attributes {
            Some(Attributes::Other(nice)) => Policy::Other(nice),
            Some(Attributes::Batch(_)) => Policy::Batch,
            Some(Attributes::Idle) => Policy::Idle,
            Some(Attributes::Fifo(priority)) => Policy::Fifo(priority),
            Some(Attributes::RoundRobin(priority)) => Policy::RoundRobin(priority),
            Some(Attributes::Deadline { .. }) => Policy::Deadline,
            None => return String::new(),
        };
        policy.to_string()
    }
}

#[derive(Debug)]
pub(super) struct LoopBegins {
    timeline: Timeline,
    lateness: LatencyRecorder,
    times: WakeTimes,
    any: bool,
    pub(super) first: Option<LoopConditions>,
    /// Other ones, found later; the newest.
    last: Option<LoopConditions>,
    look_at: u64,
    look_every: u64,
}

impl LoopBegins {
    pub(super) fn new(spec: &LoopSpec, timeline: Timeline) -> LoopBegins {
        let room = usize::try_from(spec.records).unwrap_or(usize::MAX);
        LoopBegins {
            timeline,
            lateness: LatencyRecorder::new(room, spec.ring),
            times: WakeTimes::new(room, spec.ring),
            any: false,
            first: None,
            last: None,
            look_at: 0,
            look_every: timeline.ticks_at_least(LOOK),
        }
    }

    /// A period begins at `now`, on the counter. What is to hold from here on, if it is the first or was changed.
    #[inline]
    pub(super) fn look(&mut self, now: u64) -> Option<LoopConditions> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now.saturating_add(self.look_every);
        let found = LoopConditions::now();
        let known = self.last.or(self.first);
        if known == Some(found) {
            return None;
        }
        match self.first {
            None => self.first = Some(found),
            Some(_) => self.last = Some(found),
        }
        Some(found)
    }

    /// A period began at `now`, `late` ticks after it was due.
    #[inline]
    pub(super) fn record(&mut self, late: u64, now: u64) {
        self.any = true;
        self.lateness.record(late, self.timeline.ns_in(late));
        self.times.record(now);
    }

    /// Under what it ran in the end, if that is something else than in the beginning.
    pub(super) fn changed(&self) -> Option<LoopConditions> {
        self.last.filter(|last| self.first.is_some_and(|first| first != *last))
    }

    /// What was recorded, if any period said when it was due.
    pub(super) fn into_latencies(self) -> (Option<LatencyRecorder>, Option<WakeTimes>) {
        if self.any { (Some(self.lateness), Some(self.times)) } else { (None, None) }
    }
}
