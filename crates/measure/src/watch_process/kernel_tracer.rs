//! The kernel's events of the watched threads, while they come.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use hourglass_documents::Cause;
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_documents::kernel::KernelFacts;
use hourglass_documents::watched::{BudgetEndReport, DelayReport, WatchedThread, WorstDelay};
use hourglass_machine::facts::ThreadCounts;
use hourglass_machine::refusal::Refusal;
use hourglass_machine::usual_cpus;
use hourglass_trace::delay::{DelayEvent, DelayTally, Delays, InitialState, named};
use hourglass_trace::model::Budget;
use hourglass_trace::{Interval, KernelEvent};

use crate::kernel_trace::SWITCHES_MISSING;
use crate::kernel_trace::live::LiveRecording;

/// Events stored for a folder take at most one part in `KEPT_SHARE` of the memory.
const KEPT_SHARE: u64 = 8;
/// Bytes of what is kept for a switch: the event and the interval that it ends.
const KEPT_BYTES: u64 = 104;
/// Kept at most.
const MOST_KEPT: u64 = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct StoredTrace {
    /// Events, in order of time.
    pub(super) events: Vec<KernelEvent>,
    /// Times on a CPU by the kernel's numbers of threads, in order of their ends.
    pub(super) intervals: Vec<Interval>,
    /// Delays after the threads' own waits, ns.
    pub(super) delays: BTreeMap<u32, DelayHistogram>,
    room: u64,
    pub(super) dropped: u64,
}

#[derive(Debug)]
pub(super) struct DelayHistogram {
    pub(super) histogram: Histogram<u64>,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) total_ns: u64,
}

const DIGITS: u8 = 3;

impl StoredTrace {
    fn record(&mut self, tid: u32, ns: u64) {
        let lateness = match self.delays.entry(tid) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(room) => {
                // Refused only for an invalid number of digits.
                let Ok(histogram) = Histogram::new(DIGITS) else { return };
                room.insert(DelayHistogram { histogram, min_ns: ns, max_ns: ns, total_ns: 0 })
            }
        };
        // Only `record` makes room for longer ones.
        if lateness.histogram.record(ns).is_err() {
            lateness.histogram.saturating_record(ns);
        }
        lateness.min_ns = lateness.min_ns.min(ns);
        lateness.max_ns = lateness.max_ns.max(ns);
        lateness.total_ns = lateness.total_ns.saturating_add(ns);
    }
}

#[derive(Debug)]
pub(super) struct KernelTracer {
    live: Option<LiveRecording>,
    facts: KernelFacts,
    delays: Delays,
    tallies: BTreeMap<u32, DelayTally>,
    kept: Option<StoredTrace>,
    followed: BTreeSet<u32>,
    /// Whether the kernel knows them all.
    is_told: bool,
    troubles: Vec<String>,
}

impl KernelTracer {
    pub(super) fn begin(host: &Host, keeps: bool) -> Result<KernelTracer, Refusal> {
        let cpus = host.cpu.online.clone().unwrap_or_else(|| usual_cpus(host));
        let memory = host.memory.total_bytes;
        let room = memory.map_or(MOST_KEPT, |bytes| MOST_KEPT.min(bytes / KEPT_SHARE / KEPT_BYTES));
        Ok(KernelTracer {
            live: Some(LiveRecording::begin(&cpus, memory, keeps)?),
            facts: KernelFacts::default(),
            delays: Delays::default(),
            tallies: BTreeMap::new(),
            kept: keeps.then(|| StoredTrace { room, ..StoredTrace::default() }),
            followed: BTreeSet::new(),
            is_told: true,
            troubles: Vec::new(),
        })
    }

    /// From here on a thread is followed, of which the counts were read right after `at_ns`.
    pub(super) fn follow(&mut self, tid: u32, at_ns: u64, counts: &ThreadCounts) {
        let first = match counts.cpu {
            _ if counts.is_stopped() => InitialState::Stopped,
            Some(cpu) if counts.state == 'R' => InitialState::Runnable(cpu),
            _ => InitialState::Other,
        };
        self.is_told &= !self.followed.insert(tid);
        self.delays.follow(tid, i64::try_from(at_ns).unwrap_or(i64::MAX), first);
    }

    /// The budget of the deadline class that a thread was found to have.
    pub(super) fn reserve(&mut self, tid: u32, budget: Budget) {
        self.tallies.entry(tid).or_default().reserve(budget);
    }

    /// Takes what came since the last time.
    pub(super) fn take(&mut self, epoch_ns: u64) {
        let KernelTracer { live, delays, tallies, kept, followed, is_told, troubles, .. } = self;
        if let Some(live) = live {
            if !std::mem::replace(is_told, true) {
                troubles.extend(live.follow(followed).err());
            }
            let now_ns = super::monotonic_ns();
            live.take(now_ns, epoch_ns, |event| {
                handle_event(&event, delays, tallies, kept.as_mut(), epoch_ns);
            });
        }
    }

    /// The end, `now_ns` after the first look: what was not whole.
    pub(super) fn end(&mut self, epoch_ns: u64, now_ns: u64) -> Vec<Warning> {
        let KernelTracer { live, delays, tallies, kept, facts, troubles, .. } = self;
        let Some(live) = live.take() else { return Vec::new() };
        let end_ns = super::monotonic_ns().saturating_sub(epoch_ns).max(now_ns);
        let (found, more) = live.finish(epoch_ns, |event| {
            handle_event(&event, delays, tallies, kept.as_mut(), epoch_ns);
        });
        *facts = found;
        troubles.extend(more);
        let end_ns = i64::try_from(end_ns).unwrap_or(i64::MAX);
        delays.end(end_ns, |seen| sort(seen, tallies, kept.as_mut(), epoch_ns));
        let mut warnings = crate::kernel_trace::live_warnings(facts, troubles);
        let missing = delays.missing();
        if missing > 0 {
            let all: u64 = facts.cpus.iter().map(|cpu| cpu.missing_switches).sum();
            warnings.retain(|warning| warning.id != SWITCHES_MISSING);
            warnings.push(Warning {
                id: SWITCHES_MISSING.to_owned(),
                text: format!(
                    "--trace: the kernel's record lacks {all} switches, although the kernel counted none as lost; \
                     {missing} of them concern watched threads: the delays around these are not in the table, all \
                     others are"
                ),
                remedy: "measure again".to_owned(),
            });
        }
        warnings
    }

    pub(super) fn lost(&self) -> u64 {
        self.facts.lost().max(self.delays.lost())
    }

    /// Adds what the events say about a thread to its report.
    pub(super) fn fill(&self, thread: &mut WatchedThread, at_ns: i64, epoch_ns: u64) {
        let names = self.live.as_ref().map_or(&self.facts.names.threads, LiveRecording::names);
        thread.stopped_ns = Some(self.delays.stopped_ns(thread.tid, at_ns));
        let Some(tally) = self.tallies.get(&thread.tid) else {
            thread.delays = Some(DelayReport::default());
            return;
        };
        let lengths = tally.lengths();
        thread.ran = named(&tally.occupants(), names);
        thread.delays = Some(DelayReport {
            count: lengths.count,
            after_wait: tally.after_wait,
            total_ns: lengths.total_ns,
            p50_ns: lengths.p50_ns,
            p99_ns: lengths.p99_ns,
            p999_ns: lengths.p999_ns,
            max_ns: lengths.max_ns,
            worst: tally.worst.as_ref().map(|worst| WorstDelay {
                at_ns: worst.from_ns,
                monotonic_ns: epoch_ns.saturating_add_signed(worst.from_ns),
                delay_ns: worst.length_ns(),
                cpu: worst.cpu,
                after_wait: worst.after_wait,
                cause: tally.worst_by_budget.then_some(Cause::DeadlineBudget),
                ran: named(&worst.occupants, names),
            }),
            deadline_budget: tally.budget_ends.as_ref().map(|ends| {
                let found = ends.lengths();
                let (count, total_ns, max_ns) = (found.count, found.total_ns, found.max_ns);
                BudgetEndReport { count, total_ns, max_ns }
            }),
        });
    }

    pub(super) fn into_parts(self) -> (KernelFacts, StoredTrace) {
        (self.facts, self.kept.unwrap_or_default())
    }
}

fn handle_event(
    event: &KernelEvent,
    delays: &mut Delays,
    tallies: &mut BTreeMap<u32, DelayTally>,
    mut kept: Option<&mut StoredTrace>,
    epoch_ns: u64,
) {
    delays.event(event, |seen| sort(seen, tallies, kept.as_deref_mut(), epoch_ns));
    // What came before the first look is not of the run.
    if let Some(kept) = kept.filter(|_| event.ns >= 0) {
        match kept.room.checked_sub(1) {
            Some(room) => {
                kept.room = room;
                kept.events.push(*event);
            }
            None => kept.dropped = kept.dropped.saturating_add(1),
        }
    }
}

fn sort(
    seen: DelayEvent,
    tallies: &mut BTreeMap<u32, DelayTally>,
    kept: Option<&mut StoredTrace>,
    epoch_ns: u64,
) {
    match seen {
        DelayEvent::Delayed(tid, delay) => {
            if let Some(kept) = kept.filter(|_| delay.after_wait) {
                kept.record(tid, delay.length_ns());
            }
            tallies.entry(tid).or_default().push(delay);
        }
        DelayEvent::Ran(thread, stretch) => {
            if let Some(tally) = tallies.get_mut(&thread) {
                tally.ran(&stretch);
            }
            let Some(kept) = kept.filter(|kept| stretch.from_ns >= 0 && kept.room > 0) else {
                return;
            };
            let ticks = |ns: i64| epoch_ns.saturating_add_signed(ns);
            kept.intervals.push(Interval {
                start_ticks: ticks(stretch.from_ns),
                end_ticks: ticks(stretch.to_ns.max(stretch.from_ns)),
                ..Interval::new(
                    thread,
                    stretch.cpu,
                    stretch.from_ns,
                    stretch.to_ns.max(stretch.from_ns),
                    stretch.onset,
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram that did not grow had 2 ns for every delay.
    #[test]
    fn delays_are_kept_to_three_digits() {
        let mut kept = StoredTrace::default();
        (1..=1_000).for_each(|us| kept.record(7, us * 1_000));
        let lateness = &kept.delays[&7];
        assert_eq!(
            (lateness.min_ns, lateness.max_ns, lateness.total_ns),
            (1_000, 1_000_000, 500_500_000)
        );
        let median = lateness.histogram.value_at_quantile(0.5);
        assert!(median.abs_diff(500_000) <= 1_000, "{median}");
    }
}
