//! Events of a clock: typed and counted; the latest ones are stored.

use std::fmt;

use super::inline_string::InlineString;
use super::timebase::SourceId;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was found, ns on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The kind of the event, with its details.
    pub what: ClockEventKind,
}

/// The kinds of events, with what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockEventKind {
    /// A counter was calibrated and serves.
    Adopted(SourceId),
    /// The source was changed by hand.
    ByHand {
        /// The source that served before.
        from: SourceId,
        /// The requested source.
        to: SourceId,
    },
    /// The kernel's clock source is another one than when the counter was adopted. Failed over.
    KernelChangedSource {
        /// The former name.
        from: InlineString<48>,
        /// The present name.
        to: InlineString<48>,
    },
    /// Counter and reference are further apart than the bound allows, over the latest interval or
    /// over the samples of the last half minute. Failed over.
    Residual {
        /// Counter minus reference, ns.
        error_ns: i64,
        /// The allowed difference, ns.
        bound_ns: u64,
    },
    /// The counter went backwards. Failed over.
    NegativeStep {
        /// Size of the step, ticks.
        ticks: u64,
    },
    /// The counter does not advance. Failed over.
    Stuck(SourceId),
    /// The requested counter cannot be read on this host. The OS clock serves.
    Unsupported(SourceId),
    /// The measured frequency contradicts what was stated. Failed over.
    PriorContradicted {
        /// Stated, Hz.
        stated_hz: u64,
        /// Measured, Hz.
        measured_hz: u64,
    },
    /// The whole evidence of policy `strict` speaks against the counter. Failed over.
    Untrusted {
        /// The evidence against it.
        reason: InlineString<48>,
    },
    /// The machine was suspended. Failed over; the counter is tried again.
    Suspended {
        /// Duration, ns.
        ns: u64,
    },
    /// Other CPUs are online than before. Failed over; the counter is tried again.
    CpusChanged {
        /// Online before, as the kernel lists them.
        from: InlineString<48>,
        /// Online now.
        to: InlineString<48>,
    },
    /// The virtual machine was restored or migrated. Failed over; the counter is tried again.
    VmChanged,
    /// `CLOCK_MONOTONIC` left the bound while `CLOCK_MONOTONIC_RAW` did not: it is being slewed.
    /// The counter stays, calibrated anew.
    ReferenceSlewed {
        /// Prediction minus reference, ns.
        error_ns: i64,
    },
    /// The kernel changed the rate of `CLOCK_MONOTONIC`. The counter stays, calibrated anew.
    RateCorrected {
        /// The difference, parts per billion.
        ppb: i64,
    },
    /// `CLOCK_REALTIME` was set.
    WallSet {
        /// Forward, ns.
        ns: i64,
    },
}

/// [`ClockEventKind`] without what was found; what events are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// [`ClockEventKind::Adopted`].
    Adopted,
    /// [`ClockEventKind::ByHand`].
    ByHand,
    /// [`ClockEventKind::KernelChangedSource`].
    KernelChangedSource,
    /// [`ClockEventKind::Residual`].
    Residual,
    /// [`ClockEventKind::NegativeStep`].
    NegativeStep,
    /// [`ClockEventKind::Stuck`].
    Stuck,
    /// [`ClockEventKind::Unsupported`].
    Unsupported,
    /// [`ClockEventKind::PriorContradicted`].
    PriorContradicted,
    /// [`ClockEventKind::Untrusted`].
    Untrusted,
    /// [`ClockEventKind::Suspended`].
    Suspended,
    /// [`ClockEventKind::CpusChanged`].
    CpusChanged,
    /// [`ClockEventKind::VmChanged`].
    VmChanged,
    /// [`ClockEventKind::ReferenceSlewed`].
    ReferenceSlewed,
    /// [`ClockEventKind::RateCorrected`].
    RateCorrected,
    /// [`ClockEventKind::WallSet`].
    WallSet,
}

/// How many kinds there are.
const KINDS: usize = 15;

impl EventKind {
    /// Every kind, in the order in which they are counted.
    pub const ALL: [EventKind; KINDS] = [
        EventKind::Adopted,
        EventKind::ByHand,
        EventKind::KernelChangedSource,
        EventKind::Residual,
        EventKind::NegativeStep,
        EventKind::Stuck,
        EventKind::Unsupported,
        EventKind::PriorContradicted,
        EventKind::Untrusted,
        EventKind::Suspended,
        EventKind::CpusChanged,
        EventKind::VmChanged,
        EventKind::ReferenceSlewed,
        EventKind::RateCorrected,
        EventKind::WallSet,
    ];

    /// Whether the clock fails over to the OS clock when it happens.
    #[must_use]
    pub const fn fails_over(self) -> bool {
        !matches!(
            self,
            EventKind::Adopted
                | EventKind::ByHand
                | EventKind::ReferenceSlewed
                | EventKind::RateCorrected
                | EventKind::WallSet
        )
    }
}

impl ClockEventKind {
    /// The kind without details, for counts.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            ClockEventKind::Adopted(_) => EventKind::Adopted,
            ClockEventKind::ByHand { .. } => EventKind::ByHand,
            ClockEventKind::KernelChangedSource { .. } => EventKind::KernelChangedSource,
            ClockEventKind::Residual { .. } => EventKind::Residual,
            ClockEventKind::NegativeStep { .. } => EventKind::NegativeStep,
            ClockEventKind::Stuck(_) => EventKind::Stuck,
            ClockEventKind::Unsupported(_) => EventKind::Unsupported,
            ClockEventKind::PriorContradicted { .. } => EventKind::PriorContradicted,
            ClockEventKind::Untrusted { .. } => EventKind::Untrusted,
            ClockEventKind::Suspended { .. } => EventKind::Suspended,
            ClockEventKind::CpusChanged { .. } => EventKind::CpusChanged,
            ClockEventKind::VmChanged => EventKind::VmChanged,
            ClockEventKind::ReferenceSlewed { .. } => EventKind::ReferenceSlewed,
            ClockEventKind::RateCorrected { .. } => EventKind::RateCorrected,
            ClockEventKind::WallSet { .. } => EventKind::WallSet,
        }
    }

    /// Whether the counter may be fit again once things have settled.
    pub(super) const fn passes(&self) -> bool {
        matches!(
            self,
            ClockEventKind::Suspended { .. }
                | ClockEventKind::CpusChanged { .. }
                | ClockEventKind::VmChanged
        )
    }
}

/// One clause for people, in the past tense.
impl fmt::Display for ClockEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockEventKind::Adopted(source) => write!(f, "{source} was calibrated and serves"),
            ClockEventKind::ByHand { from, to } => {
                write!(f, "changed on request from {from} to {to}")
            }
            ClockEventKind::KernelChangedSource { from, to } => {
                write!(f, "the kernel changed its clock source from {from} to {to}")
            }
            ClockEventKind::Residual { error_ns, bound_ns } => {
                write!(f, "the counter was {error_ns} ns off, {bound_ns} were allowed")
            }
            ClockEventKind::NegativeStep { ticks: 0 } => f.write_str("the counter went backwards"),
            ClockEventKind::NegativeStep { ticks } => {
                write!(f, "the counter went backwards by {ticks} ticks")
            }
            ClockEventKind::Stuck(source) => write!(f, "{source} did not advance"),
            ClockEventKind::Unsupported(source) => write!(f, "{source} cannot be read here"),
            ClockEventKind::PriorContradicted { stated_hz, measured_hz } => {
                write!(f, "the counter ran at {measured_hz} Hz, {stated_hz} were stated")
            }
            ClockEventKind::Untrusted { reason } => {
                write!(f, "the evidence spoke against the counter: {reason}")
            }
            ClockEventKind::Suspended { ns } => write!(f, "the machine was suspended for {ns} ns"),
            ClockEventKind::CpusChanged { from, to } => {
                write!(f, "the online CPUs changed from {from} to {to}")
            }
            ClockEventKind::VmChanged => {
                f.write_str("the virtual machine was restored or migrated")
            }
            ClockEventKind::ReferenceSlewed { error_ns } => {
                write!(f, "CLOCK_MONOTONIC was slewed away by {error_ns} ns")
            }
            ClockEventKind::RateCorrected { ppb } => {
                write!(f, "the kernel changed the rate of CLOCK_MONOTONIC by {ppb} ppb")
            }
            ClockEventKind::WallSet { ns } => {
                write!(f, "CLOCK_REALTIME was set forward by {ns} ns")
            }
        }
    }
}

/// How many events are kept; older ones are only counted.
const KEPT: usize = 32;

/// The events of a clock.
#[derive(Debug)]
pub(super) struct Log {
    /// A ring, so that noting one never allocates.
    ring: [Option<Event>; KEPT],
    counts: [u64; KINDS],
}

impl Log {
    pub(super) const EMPTY: Log = Log { ring: [None; KEPT], counts: [0; KINDS] };

    pub(super) fn note(&mut self, at_ns: u64, what: ClockEventKind) {
        let place = (self.total() % KEPT as u64) as usize;
        self.counts[what.kind() as usize] += 1;
        self.ring[place] = Some(Event { at_ns, what });
    }

    /// The events kept, oldest first.
    fn in_order(&self) -> impl Iterator<Item = &Event> {
        let oldest = (self.total() % KEPT as u64) as usize;
        let (newer, older) = self.ring.split_at(oldest);
        older.iter().chain(newer).flatten()
    }

    pub(super) fn latest(&self) -> Vec<Event> {
        self.in_order().copied().collect()
    }

    pub(super) fn count(&self, kind: EventKind) -> u64 {
        self.counts[kind as usize]
    }

    /// The latest event for which a counter was left, if there was one.
    pub(super) fn latest_failover(&self) -> Option<&Event> {
        self.in_order().filter(|event| event.what.kind().fails_over()).last()
    }

    /// Whether a choice by hand was the last thing that happened.
    pub(super) fn ends_with_choice(&self) -> bool {
        self.in_order().last().is_some_and(|event| event.what.kind() == EventKind::ByHand)
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_when_they_are_no_longer_kept() {
        let mut log = Log::EMPTY;
        for at_ns in 0..100 {
            log.note(at_ns, ClockEventKind::VmChanged);
        }
        assert_eq!((log.count(EventKind::VmChanged), log.total()), (100, 100));
        assert_eq!(log.latest().len(), KEPT);
        assert_eq!(log.latest()[KEPT - 1].at_ns, 99);
        assert!(log.latest_failover().is_some_and(|event| event.at_ns == 99));
        let order: Vec<usize> = EventKind::ALL.iter().map(|kind| *kind as usize).collect();
        assert_eq!(order, (0..KINDS).collect::<Vec<_>>());
    }
}
