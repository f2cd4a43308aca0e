//! The columns of a run's records.
//!
//! Owns: names and order of the columns, and -1 for an unknown value. Must not: read a folder.

use hourglass_documents::Cause;
use hourglass_trace::cause::{AttributedGap, CauseBasis, GapBreakdown, Successor};
use hourglass_trace::{
    CounterDeltas, Interval, IntervalStart, JobRecord, KernelEvent, KernelEventKind,
};
use pyo3::prelude::*;

use crate::tables::Cell::{Count, Real, Whole};
use crate::tables::Layout;

/// Stands for an unknown value in columns without negative values.
const NOT_KNOWN: i64 = -1;

fn or_not_known(value: Option<impl Into<i64>>) -> i64 {
    value.map_or(NOT_KNOWN, Into::into)
}

/// Nanoseconds as a column has them; none of a run is longer than 292 years.
fn ns(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The columns of an execution trace.
pub(crate) const INTERVALS: &Layout<Interval> = &[
    ("thread", Whole(|of| of.thread.into())),
    ("cpu", Whole(|of| of.cpu.into())),
    ("start_ns", Whole(|of| of.start_ns)),
    ("end_ns", Whole(|of| of.end_ns)),
    ("start_ticks", Count(|of| of.start_ticks)),
    ("end_ticks", Count(|of| of.end_ticks)),
    ("onset", Whole(|of| of.onset.code().into())),
    ("cleared", Whole(|of| or_not_known(of.evidence.cleared))),
    ("involuntary", Whole(|of| counted(of, |counted| counted.involuntary))),
    ("voluntary", Whole(|of| counted(of, |counted| counted.voluntary))),
    ("faults", Whole(|of| counted(of, |counted| counted.faults))),
];

fn counted(of: &Interval, which: fn(CounterDeltas) -> u8) -> i64 {
    or_not_known(of.evidence.counted.map(which))
}

/// The columns of gaps with their causes.
pub(crate) const GAPS: &Layout<AttributedGap> = &[
    ("thread", Whole(|of| of.thread.into())),
    ("cpu_before", Whole(|of| of.cpu_before.into())),
    ("cpu_after", Whole(|of| of.cpu_after.into())),
    ("start_ns", Whole(|of| of.start_ns)),
    ("end_ns", Whole(|of| of.end_ns)),
    ("length_ns", Whole(|of| ns(of.length_ns()))),
    ("cause", Whole(|of| code_of(of.cause))),
    ("seen", Whole(|of| i64::from(of.basis == CauseBasis::Seen))),
    ("confidence", Real(AttributedGap::confidence)),
    ("to_thread", Whole(|of| successor(of, false))),
    ("to_tid", Whole(|of| successor(of, true))),
    ("switched_ns", Whole(|of| part(of, |parts| parts.switched_ns))),
    ("tick_ns", Whole(|of| part(of, |parts| parts.tick_ns))),
    ("irq_ns", Whole(|of| part(of, |parts| parts.irq_ns))),
    ("softirq_ns", Whole(|of| part(of, |parts| parts.softirq_ns))),
    ("fault_ns", Whole(|of| part(of, |parts| parts.fault_ns))),
    ("signal_ns", Whole(|of| part(of, |parts| parts.signal_ns))),
    ("silent_ns", Whole(|of| part(of, |parts| parts.silent_ns))),
];

fn code_of(cause: Cause) -> i64 {
    (0..).zip(Cause::ALL).find(|(_, of)| *of == cause).map_or(NOT_KNOWN, |(code, _)| code)
}

/// The occupant of the CPU: a thread of the run, or another one by the kernel's number.
fn successor(of: &AttributedGap, by_kernel: bool) -> i64 {
    match of.to_thread {
        Some(Successor::OfRun(thread)) if !by_kernel => thread.into(),
        Some(Successor::Kernel(tid)) if by_kernel => tid.into(),
        _ => NOT_KNOWN,
    }
}

fn part(of: &AttributedGap, which: fn(&GapBreakdown) -> u64) -> i64 {
    of.composition.as_ref().map_or(NOT_KNOWN, |parts| ns(which(parts)))
}

/// The columns of the kernel's events.
pub(crate) const KERNEL_EVENTS: &Layout<KernelEvent> = &[
    ("ns", Whole(|of| of.ns)),
    ("ticks", Count(|of| of.ticks)),
    ("cpu", Whole(|of| of.cpu.into())),
    ("kind", Whole(|of| of.kind.code().into())),
    ("a", Whole(|of| of.a.into())),
    ("b", Whole(|of| of.b.into())),
    ("value", Count(|of| of.value)),
];

/// A wake-up of a latency test.
pub(crate) struct WakeUp {
    pub(crate) thread: u32,
    pub(crate) woke_ns: Option<i64>,
    pub(crate) late_ps: u64,
}

/// The columns of wake-ups.
pub(crate) const WAKE_UPS: &Layout<WakeUp> = &[
    ("thread", Whole(|of| of.thread.into())),
    ("late_ns", Whole(|of| ns(of.late_ps / PS_PER_NS))),
    ("late_ps", Whole(|of| ns(of.late_ps))),
    ("woke_ns", Whole(|of| of.woke_ns.unwrap_or(NOT_KNOWN))),
];

/// The columns of jobs.
pub(crate) const JOBS: &Layout<JobRecord> = &[
    ("thread", Whole(|of| of.thread.into())),
    ("release_ns", Whole(|of| of.release_ns)),
    ("deadline_ns", Whole(|of| of.deadline_ns)),
    ("started_ns", Whole(|of| of.started_ns.unwrap_or(NOT_KNOWN))),
    ("finished_ns", Whole(|of| of.finished_ns.unwrap_or(NOT_KNOWN))),
    ("lost", Whole(|of| of.lost.into())),
];

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1_000;

/// The words behind the codes in columns.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CAUSES", Cause::ALL.map(Cause::name).to_vec())?;
    module.add(
        "ONSETS",
        IntervalStart::ALL.map(|onset| format!("{onset:?}").to_lowercase()).to_vec(),
    )?;
    module.add(
        "KERNEL_EVENT_KINDS",
        KernelEventKind::ALL.map(|kind| word(&format!("{kind:?}"))).to_vec(),
    )
}

/// `IrqEntry` as columns have it: `irq_entry`.
fn word(name: &str) -> String {
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(letter.to_lowercase());
    }
    word
}
