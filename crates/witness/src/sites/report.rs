//! What all threads counted, added up and in the user's terms.

use std::fmt;

use hourglass_documents::Cause;
use hourglass_time::{Bounded, Span};
use hourglass_trace::cause::IndicationSet;

use crate::loss::between;
use crate::machine::CounterRate;
use crate::sites::entries::DisturbedSpan;
use crate::sites::histogram::Distribution;
use crate::sites::table::{LossRecord, SpanRecord};
use crate::{Switches, sites::Names};

/// What was counted at one call site, by all threads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SiteReport {
    /// Its name; [`OTHER_SITES`] for those that found no room.
    pub name: String,
    /// Where it was named first: file and line.
    pub place: String,
    /// Spans that ended.
    pub spans: u64,
    /// Of those, how many were disturbed.
    pub disturbed: u64,
    /// Of those, how many are unknown: see [`crate::SpanError`]. They are not among the disturbed ones.
    pub unknown: u64,
    /// How long they were.
    pub length: Distribution,
    /// For how long their threads were off the CPU, summed over them: at least, at most.
    pub lost: Bounded<Span>,
    /// Lost time by cause, the greatest loss first.
    pub causes: Vec<CauseLost>,
    /// The span that lost most.
    pub greatest: Option<SpanLost>,
}

/// What a cause took from the spans of a site.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CauseLost {
    /// Why the spans lost time.
    pub cause: Cause,
    /// Number of spans.
    pub count: u64,
    /// Time off the CPU, summed over these spans: at least, at most.
    pub lost: Bounded<Span>,
    /// Upper bounds of the time that each span lost, of the spans for which a histogram was free.
    pub distribution: Distribution,
}

/// A disturbed span, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpanLost {
    /// The call site.
    pub site: String,
    /// The thread in which it ended, by the kernel's number.
    pub tid: u32,
    /// What that thread was called when it counted first.
    pub thread: String,
    /// When it began, ns of `CLOCK_MONOTONIC`, to about a microsecond. For a detached span: its end less its length.
    pub begun_ns: u64,
    /// How long it was.
    pub length: Span,
    /// For how long its thread was off the CPU: at least, at most.
    pub off_cpu: Bounded<Span>,
    /// Number of context switches.
    pub switches: Switches,
    /// For how long it waited for a CPU, by the kernel's count.
    pub waited: Span,
    /// Page faults, at most.
    pub faults: u64,
    /// The CPUs on which it began and ended.
    pub cpus: (u32, u32),
    /// Why it was off the CPU.
    pub cause: Cause,
    /// Confidence in the cause, from 0 to 1.
    pub confidence: f64,
    /// Indications of the cause.
    pub evidence: IndicationSet,
    /// The thread that had the CPU, where that is known: see [`crate::Loss::who`].
    pub who: Option<u32>,
}

/// A span that was kept one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSpan {
    /// Its site's place in [`crate::sites::Sites::report`].
    pub site: usize,
    /// Its thread's place in [`crate::sites::Sites::threads`].
    pub thread: usize,
    /// When it began, ns of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Start and end on the counter.
    pub ticks: (u64, u64),
    /// The CPUs on which it began and ended.
    pub cpus: (u32, u32),
    /// What it lost; `None` if nothing disturbed it.
    pub lost: Option<SpanLoss>,
}

/// What a span that was kept lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanLoss {
    /// At least, at most.
    pub off_cpu: Bounded<Span>,
    /// Context switches; 65,535 stands for more, too.
    pub switches: Switches,
    /// Page faults, at most; likewise.
    pub faults: u64,
    /// Why it was off the CPU.
    pub cause: Cause,
    /// Whether nothing is known: see [`crate::SpanError`].
    pub unknown: bool,
}

/// What was counted, but could not be kept in full. All zero where there was room for everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedCounts {
    /// Spans that a signal handler ended while its thread was counting another one: they are in no other number.
    pub left_out: u64,
    /// Spans of sites that found no room: they are counted under [`OTHER_SITES`].
    pub other_sites: u64,
    /// Losses for which no histogram was left: they are in the counts and sums of their causes.
    pub without_histogram: u64,
    /// Spans that were to be kept one by one and found the memory full: they are in all sums.
    pub spans_dropped: u64,
}

/// The name under which spans are counted whose site found no room.
pub const OTHER_SITES: &str = "(other sites)";

impl DisturbedSpan {
    pub(crate) fn report(&self, names: &Names, rate: &CounterRate) -> SpanLost {
        let (tid, thread) = names.thread(self.thread);
        SpanLost {
            site: names.site(self.site).0,
            tid,
            thread,
            begun_ns: rate.at_ns(self.begun),
            length: Span::saturating_from_nanos(
                rate.length_ns(self.ended.saturating_sub(self.begun)),
            ),
            off_cpu: between(self.least_ns, self.most_ns),
            switches: Switches { voluntary: self.voluntary, involuntary: self.involuntary },
            waited: Span::saturating_from_nanos(self.waited_ns),
            faults: self.faults,
            cpus: (self.cpus.0.into(), self.cpus.1.into()),
            cause: self.cause,
            confidence: f64::from(self.confidence_ppm) / 1e6,
            evidence: self.evidence,
            who: (self.who != 0).then_some(self.who),
        }
    }
}

impl SpanRecord {
    pub(crate) fn report(&self, rate: &CounterRate) -> StoredSpan {
        let lost = |lost: LossRecord| SpanLoss {
            off_cpu: between(lost.min_ns, lost.max_ns),
            switches: Switches {
                voluntary: lost.voluntary.into(),
                involuntary: lost.involuntary.into(),
            },
            faults: lost.faults.into(),
            cause: lost.cause,
            unknown: lost.unknown,
        };
        StoredSpan {
            site: self.site.into(),
            thread: self.thread.into(),
            start_ns: rate.at_ns(self.start),
            ended_ns: rate.at_ns(self.end),
            ticks: (self.start, self.end),
            cpus: (self.cpus.0.into(), self.cpus.1.into()),
            lost: self.lost.map(lost),
        }
    }
}

/// One line, as a dump of the worst spans has it.
impl fmt::Display for SpanLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.off_cpu.earliest(), self.off_cpu.latest());
        write!(
            f,
            "{}: {least} to {most} off the CPU in a span of {}: {} ({:.2}); {} voluntary and {} involuntary \
             switches, waited {}, at most {} page faults",
            self.site,
            self.length,
            self.cause,
            self.confidence,
            self.switches.voluntary,
            self.switches.involuntary,
            self.waited,
            self.faults,
        )?;
        match self.cpus {
            (before, after) if before == after => write!(f, "; CPU {before}")?,
            (before, after) => write!(f, "; CPU {before}, then {after}")?,
        }
        if let Some(who) = self.who {
            write!(f, ", which thread {who} had meanwhile")?;
        }
        write!(f, "; thread {} ({}), begun at {} ns", self.tid, self.thread, self.begun_ns)?;
        if !self.evidence.is_empty() {
            write!(f, "; {}", self.evidence)?;
        }
        Ok(())
    }
}
