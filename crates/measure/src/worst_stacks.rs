//! The kernel's stacks at the worst of a run: its longest gaps and its latest wake-ups.
//!
//! Owns: which switches belong to them. Must not: have stacks walked (`kernel_trace` does).

use std::collections::BTreeMap;

use hourglass_documents::stack::{StackReport, SwitchStack};
use hourglass_trace::{KernelEvent, KernelEventKind as Kind};

use crate::kernel_trace::StackAt;
use crate::worst_intervals::WorstInterval;

/// A stack is written behind its switch, ns.
const BEHIND_NS: i64 = 100_000;

/// A switch away from a thread: when, where, whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SwitchOut {
    ns: i64,
    cpu: u32,
    tid: u32,
}

/// Those of `spans` with stacks at their switches. `tids`: the kernel's numbers of the run's threads; `events` and
/// `stacks` in order of time.
pub(crate) fn reports<'a>(
    spans: &[WorstInterval],
    tids: &BTreeMap<u32, u32>,
    events: impl Iterator<Item = KernelEvent>,
    stacks: impl Iterator<Item = StackAt<'a>>,
    names: &BTreeMap<u32, String>,
) -> Vec<StackReport> {
    let found = switches(spans, tids, events);
    let mut reports: Vec<StackReport> = spans.iter().map(report_of).collect();
    for stack in stacks {
        for (report, [taken, given]) in reports.iter_mut().zip(&found) {
            for (moment, left) in [("taken", taken), ("given", given)] {
                let fits = |left: &SwitchOut| {
                    (left.cpu, left.tid) == (stack.cpu, stack.tid)
                        && (left.ns..=left.ns.saturating_add(BEHIND_NS)).contains(&stack.ns)
                };
                if left.as_ref().is_some_and(fits) {
                    note(report, moment, &stack, names);
                }
            }
        }
    }
    reports.retain(|report| !report.stacks.is_empty());
    reports
}

fn report_of(span: &WorstInterval) -> StackReport {
    StackReport {
        of: span.kind.to_owned(),
        thread: span.thread,
        at_ns: span.to_ns,
        length_ns: span.length_ns(),
        stacks: Vec::new(),
    }
}

/// The first behind a switch is its own.
fn note(
    report: &mut StackReport,
    moment: &str,
    stack: &StackAt<'_>,
    names: &BTreeMap<u32, String>,
) {
    if report.stacks.iter().all(|known| known.moment != moment) {
        report.stacks.push(SwitchStack {
            moment: moment.to_owned(),
            at_ns: stack.ns,
            cpu: stack.cpu,
            tid: stack.tid,
            name: names.get(&stack.tid).cloned(),
            frames: stack.frames.to_vec(),
        });
    }
}

/// Of each span the first switch away from its thread, and the last switch to it, by who left the CPU.
fn switches(
    spans: &[WorstInterval],
    tids: &BTreeMap<u32, u32>,
    events: impl Iterator<Item = KernelEvent>,
) -> Vec<[Option<SwitchOut>; 2]> {
    let mut found = vec![[None, None]; spans.len()];
    for event in events.filter(|event| event.kind == Kind::Switch) {
        let left = SwitchOut { ns: event.ns, cpu: event.cpu, tid: event.a };
        for ([taken, given], span) in found.iter_mut().zip(spans) {
            let Some(own) = tids.get(&span.thread) else { continue };
            if !(span.from_ns..=span.to_ns).contains(&event.ns) {
                continue;
            }
            if event.a == *own && taken.is_none() {
                *taken = Some(left);
            }
            if event.b == *own {
                *given = Some(left);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(ns: i64, cpu: u32, a: u32, b: u32) -> KernelEvent {
        KernelEvent { ns, ticks: 0, value: 0, cpu, a, b, kind: Kind::Switch }
    }

    /// Thread 3, the kernel's 70, loses CPU 1 to 812, which loses it to 9, which gives it back.
    #[test]
    fn stacks_belong_to_the_switches_of_the_gap() {
        let gap = |from_ns, to_ns| WorstInterval {
            kind: WorstInterval::GAP,
            thread: 3,
            from_ns,
            to_ns,
            cpu: Some(1),
        };
        let (gap, before) = (gap(1_000, 900_000), gap(0, 900));
        let events = [
            switch(2_000, 1, 70, 812),
            switch(400_000, 1, 812, 9),
            switch(500_000, 0, 5, 6),
            switch(890_000, 1, 9, 70),
            switch(950_000, 1, 70, 9),
        ];
        let frames = ["schedule".to_owned(), "do_work".to_owned()];
        let stack = |ns, cpu, tid| StackAt { ns, cpu, tid, frames: &frames };
        let stacks = [
            stack(2_100, 1, 70),
            stack(400_100, 1, 812),
            stack(890_100, 0, 9),
            stack(890_200, 1, 9),
            stack(950_100, 1, 70),
        ];
        let names = BTreeMap::from([(9, "stress".to_owned())]);
        let tids = BTreeMap::from([(3, 70)]);
        let found = reports(&[gap, before], &tids, events.into_iter(), stacks.into_iter(), &names);
        assert_eq!(found.len(), 1, "{found:?}");
        let seen: Vec<_> =
            found[0].stacks.iter().map(|s| (s.moment.as_str(), s.at_ns, s.tid)).collect();
        assert_eq!(seen, [("taken", 2_100, 70), ("given", 890_200, 9)]);
        assert_eq!(found[0].stacks[1].name.as_deref(), Some("stress"));
        assert_eq!((found[0].length_ns, found[0].at_ns), (899_000, 900_000));
    }
}
