//! A whole run, as a page or a foreign format shows it.
//!
//! Owns: the shape of what is handed over. Must not: read it from anywhere, or infer it.

use std::collections::BTreeMap;

use hourglass_documents::document::{RunDocument, ThreadReport};
use hourglass_documents::kernel::KernelNames;
use hourglass_documents::sites::RecordedSpan;
use hourglass_trace::cause::{AttributedGap, GapBreakdown, GapOccupants, OccupantShare, Successor};
use hourglass_trace::wakeup::{LateWakeUp, TimedWakeUp};
use hourglass_trace::{Interval, JobRecord, KernelEvent};

use crate::clean::for_terminal;
use crate::occupants::OccupantNames;
use crate::units::rounded;

/// All that there is to show of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    pub document: &'a RunDocument,
    /// Its trace, in order of start.
    pub intervals: &'a [Interval],
    /// Why threads did not run, in order of thread and then of end; gaps without a cause are
    /// left out. Empty where no cause was inferred.
    pub causes: &'a [AttributedGap],
    /// Lateness of wake-ups, one for each thread that measured it.
    pub latencies: &'a [LatencyCounts],
    /// Wake-ups of latency tests on the run's time line, by thread and in order of time; where there were very
    /// many, the latest of them. Empty where their times are not known.
    pub wake_ups: &'a BTreeMap<u32, Vec<TimedWakeUp>>,
    /// The latest wake-ups of all threads, the latest first.
    pub latest: &'a [LateWakeUp],
    /// The kernel's trace events, in order of time. Empty without a kernel trace.
    pub events: &'a [KernelEvent],
    /// Names for what the kernel's events number.
    pub names: &'a KernelNames,
    /// Spans that a program recorded one by one, in order of start.
    pub spans: &'a [RecordedSpan],
    /// Jobs of periodic threads, by thread. Empty where they are not known one by one.
    pub jobs: &'a [JobRecord],
}

/// How late the wake-ups of a thread were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Number of the thread.
    pub thread: u32,
    /// Whole microseconds of lateness, ascending, and how many wake-ups were so late.
    pub counts: Vec<(u64, u64)>,
    /// The same in nanoseconds to three digits; empty where only whole microseconds are known.
    pub fine: Vec<(u64, u64)>,
}

impl LatencyCounts {
    /// Wake-ups that were `us` late or later.
    #[must_use]
    pub fn at_least(&self, us: u64) -> u64 {
        let late = self.counts.iter().filter(|(at, _)| *at >= us);
        late.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// What a thread is called in a picture: its name, or else its workload.
pub(crate) fn label(thread: &ThreadReport) -> &str {
    thread.name.as_deref().unwrap_or(&thread.workload)
}

/// The CPUs on which a thread was seen to run; without samples, those on which it might run.
pub(crate) fn cpus_of(thread: &ThreadReport) -> Vec<u32> {
    let seen = if thread.cpus_seen.is_empty() { &thread.cpus } else { &thread.cpus_seen };
    let mut cpus = seen.clone();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

impl<'a> RunView<'a> {
    /// The cause of the gap of `thread` that ended at `end_ns`, if it has one.
    pub(crate) fn cause_of(&self, thread: u32, end_ns: i64) -> Option<&'a AttributedGap> {
        let key = (thread, end_ns);
        let found = self.causes.binary_search_by_key(&key, |gap| (gap.thread, gap.end_ns));
        found.ok().and_then(|at| self.causes.get(at))
    }

    pub(crate) fn thread_names(&self) -> RunNames<'a> {
        RunNames { threads: &self.document.result.threads, kernel: self.names }
    }

    /// What those who had the CPUs are called.
    pub(crate) fn called(&self) -> OccupantNames<'a> {
        let threads = self.document.result.threads.iter();
        let measured =
            threads.filter_map(|thread| Some((thread.tid?, (thread.id, label(thread).to_owned()))));
        OccupantNames { measured: measured.collect(), names: self.names }
    }
}

/// What the threads of a run are called, and those of the machine.
#[derive(Clone, Copy)]
pub(crate) struct RunNames<'a> {
    threads: &'a [ThreadReport],
    kernel: &'a KernelNames,
}

/// What speaks for the cause of a gap, in words: who had the CPU, the signs, and where the time
/// went.
pub(crate) fn evidence(gap: &AttributedGap, names: RunNames<'_>) -> String {
    let mut parts = Vec::new();
    let ran = who_ran(&gap.occupants, names);
    if !ran.is_empty() {
        parts.push(ran);
    } else if let Some(to) = gap.to_thread {
        parts.push(format!("{} ran", called(to, names)));
    }
    if !gap.evidence.is_empty() {
        parts.push(gap.evidence.to_string());
    }
    parts.extend(gap.composition.as_ref().map(composition));
    parts.join("; ")
}

/// `ran meanwhile: stress (812) 3.20 ms`; empty if no occupant is known.
pub(crate) fn who_ran(ran: &GapOccupants, names: RunNames<'_>) -> String {
    let ran: Vec<String> = ran.iter().map(|share| share_of(share, names)).collect();
    if ran.is_empty() { String::new() } else { format!("ran meanwhile: {}", ran.join(", ")) }
}

/// Why a wake-up was late: `timer interrupt late by 1.89 ms: host or interrupts off (loop (812) was current)`, where that
/// took most of it; else who ran.
pub(crate) fn late_because(one: &LateWakeUp, names: RunNames<'_>) -> String {
    let Some(stages) = one.stages.map(|up| up.stages_ns()) else {
        return who_ran(&one.occupants, names);
    };
    let late_ns = stages[0].max(0).unsigned_abs();
    if late_ns <= one.latency_ns / 2 {
        return who_ran(&one.occupants, names);
    }
    let current =
        one.occupants.longest().map(|share| format!(" ({} was current)", called(share.who, names)));
    let late = rounded(late_ns);
    format!("timer interrupt late by {late}: host or interrupts off{}", current.unwrap_or_default())
}

/// `stress (812) 3.20 ms`.
fn share_of(share: OccupantShare, names: RunNames<'_>) -> String {
    format!("{} {}", called(share.who, names), rounded(share.ns))
}

/// What a thread that had the CPU is called.
fn called(who: Successor, names: RunNames<'_>) -> String {
    match who {
        Successor::OfRun(thread) => {
            let name = names.threads.iter().find(|report| report.id == thread);
            match name.and_then(|report| report.name.as_ref()) {
                Some(name) => format!("{} (thread {thread})", for_terminal(name)),
                None => format!("thread {thread} of the run"),
            }
        }
        Successor::Kernel(0) => "idle".to_owned(),
        Successor::Kernel(number) => match names.kernel.threads.get(&number) {
            Some(name) => format!("{name} ({number})"),
            None => format!("thread {number} of the machine"),
        },
    }
}

/// The parts of a gap's time that are not nothing.
fn composition(parts: &GapBreakdown) -> String {
    let parts = [
        ("other threads", parts.switched_ns),
        ("timer interrupt", parts.tick_ns),
        ("other interrupts", parts.irq_ns),
        ("softirqs", parts.softirq_ns),
        ("page faults", parts.fault_ns),
        ("signals", parts.signal_ns),
        ("not recorded", parts.silent_ns),
    ];
    let some = parts.into_iter().filter(|(_, ns)| *ns > 0);
    some.map(|(name, ns)| format!("{name} {}", rounded(ns))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use hourglass_trace::wakeup::WakeUp;

    use super::*;

    /// `latency --trace`: 1.92 ms late, of that 1,888 us to the interrupt, beside a loop; and one that was kept waiting.
    #[test]
    fn a_late_interrupt_is_not_laid_to_the_current_thread() {
        let names = KernelNames {
            threads: BTreeMap::from([(28_818, "loop".to_owned())]),
            ..KernelNames::default()
        };
        let share = OccupantShare { who: Successor::Kernel(28_818), ns: 1_890_000 };
        let names = RunNames { threads: &[], kernel: &names };
        for (interrupt_ns, expected) in [
            (
                1_888_000,
                "timer interrupt late by 1.89 ms: host or interrupts off (loop (28818) was current)",
            ),
            (5_000, "ran meanwhile: loop (28818) 1.89 ms"),
        ] {
            let up = WakeUp {
                tid: 7,
                expiry_ns: 0,
                interrupt_ns,
                handler_ns: interrupt_ns + 500,
                waking_ns: interrupt_ns + 1_000,
                switch_ns: 1_910_000,
                cpu: 1,
                user_ns: 1_920_000,
            };
            let ran = GapOccupants::from_shares([share]);
            let one = LateWakeUp {
                thread: 0,
                woke_ns: 0,
                latency_ns: 1_920_000,
                stages: Some(up),
                occupants: ran,
            };
            assert_eq!(late_because(&one, names), expected);
            let unjoined = LateWakeUp { stages: None, ..one };
            assert!(late_because(&unjoined, names).starts_with("ran meanwhile"));
        }
    }
}
