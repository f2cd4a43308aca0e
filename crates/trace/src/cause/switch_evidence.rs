//! What records of the threads' own switches say about gaps, where the kernel was not traced.
//!
//! Such records tell of each thread when it took a CPU, when it left one, and whether it waited then; who had
//! the CPU meanwhile they tell only where that was another thread of the run. Owns: which switch belongs
//! to which gap. Must not: take silence for more than "was not switched".

use std::collections::BTreeMap;

use crate::{Interval, KernelEvent, KernelEventKind};

use super::facts::{RunFacts, SwitchFacts};
use super::kernel::Soundness;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchEvidence {
    Out {
        waited: bool,
        /// The thread of the run that took the CPU, by its number there.
        to: Option<u32>,
    },
    /// The thread did not leave its CPU, and no record is missing.
    Kept,
}

#[derive(Clone, Debug)]
pub(super) struct SwitchSide<'a> {
    facts: &'a RunFacts,
    switches: &'a SwitchFacts,
    numbers: BTreeMap<u32, u32>,
    threads: BTreeMap<u32, Thread>,
    pub(super) soundness: Soundness,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    since_ns: i64,
    /// Whether it is not known exactly when it was away, as in a program's own loop.
    vague: bool,
    first_switch_out: Option<SwitchOut>,
    /// How it left it again, and has not come back from.
    last_switch_out: Option<SwitchOut>,
}

#[derive(Clone, Copy, Debug)]
struct SwitchOut {
    ns: i64,
    cpu: u32,
    waited: bool,
    to: Option<u32>,
    returned: bool,
}

impl<'a> SwitchSide<'a> {
    /// `None` where there are no records, or none of a thread that is known.
    pub(super) fn new(facts: &'a RunFacts) -> Option<SwitchSide<'a>> {
        let numbers: BTreeMap<u32, u32> =
            facts.threads.iter().filter_map(|(id, thread)| Some((thread.number?, *id))).collect();
        let of_threads = !numbers.is_empty();
        let switches = facts.switches.as_ref().filter(|_| of_threads)?;
        let soundness = Soundness::default();
        Some(SwitchSide { facts, switches, numbers, threads: BTreeMap::new(), soundness })
    }

    /// How far records may be off, ns.
    pub(super) fn error_ns(&self) -> i64 {
        i64::try_from(self.switches.error_ns).unwrap_or(i64::MAX)
    }

    /// Takes the next record, in order of time.
    pub(super) fn event(&mut self, event: &KernelEvent) {
        if event.kind != KernelEventKind::Switch {
            return;
        }
        if let Some(thread) = self.numbers.get(&event.a).copied() {
            self.left(thread, event);
        }
        if let Some(thread) = self.numbers.get(&event.b).copied() {
            self.took(thread, event.cpu);
        }
    }

    fn left(&mut self, thread: u32, event: &KernelEvent) {
        let error_ns = self.error_ns();
        let Some(seen) = self.threads.get_mut(&thread) else { return };
        if event.ns < seen.since_ns.saturating_sub(error_ns) {
            self.soundness.inside = self.soundness.inside.saturating_add(1);
            return;
        }
        self.soundness.in_gaps = self.soundness.in_gaps.saturating_add(1);
        let waited = event.value != 0;
        let fresh = SwitchOut { ns: event.ns, cpu: event.cpu, waited, to: None, returned: false };
        match seen.first_switch_out {
            None => seen.first_switch_out = Some(fresh),
            Some(_) => seen.last_switch_out = Some(fresh),
        }
    }

    fn took(&mut self, thread: u32, cpu: u32) {
        for (other, seen) in &mut self.threads {
            if *other == thread {
                seen.come_back();
            }
            let away =
                [&mut seen.first_switch_out, &mut seen.last_switch_out].into_iter().flatten();
            for left in away.filter(|left| left.cpu == cpu && !left.returned) {
                left.to.get_or_insert(thread);
            }
        }
    }

    /// The thread of `interval` runs again: what happened since it was last seen. A new gap begins at
    /// the interval's end. `None` where nothing is known.
    pub(super) fn run(&mut self, interval: &Interval) -> Option<SwitchEvidence> {
        let known = self.numbers.values().any(|thread| *thread == interval.thread);
        let vague =
            self.facts.threads.get(&interval.thread).is_some_and(|thread| thread.waits_unseen);
        let since_ns = if vague { interval.start_ns } else { interval.end_ns };
        let earliest_ns = since_ns.saturating_sub(self.error_ns());
        let seen = self.threads.get_mut(&interval.thread);
        let next = seen.and_then(|seen| seen.take_unfinished(earliest_ns));
        let fresh = Thread { since_ns, vague, first_switch_out: next, last_switch_out: None };
        let before = self.threads.insert(interval.thread, fresh).filter(|_| known)?;
        match before.first_switch_out {
            Some(SwitchOut { waited, to, .. }) => Some(SwitchEvidence::Out { waited, to }),
            None => self.switches.complete.then_some(SwitchEvidence::Kept),
        }
    }
}

impl Thread {
    fn come_back(&mut self) {
        let Some(left) = &mut self.first_switch_out else { return };
        left.returned = true;
        if let Some(again) = self.last_switch_out.take() {
            // For switches whose order is not known the thread's own wait is the reason.
            left.waited |= again.waited && self.vague;
        }
    }

    /// The switch from which it has not come back although it runs: that one came later, and its record only
    /// seems to be earlier, as records may be off. None that lies before `earliest_ns`, which no error explains.
    fn take_unfinished(&mut self, earliest_ns: i64) -> Option<SwitchOut> {
        let last = match self.last_switch_out {
            Some(_) => &mut self.last_switch_out,
            None => &mut self.first_switch_out,
        };
        last.take_if(|left| !left.returned && left.ns >= earliest_ns)
    }
}
