//! Gaps as they are noted: an interval ends, what passed is counted and kept, the next one begins.
//!
//! Owns: what belongs to an interval and what to a gap. Must not: run on the loop's fast path.

use hourglass_clock::CounterReading;
use hourglass_trace::{CounterDeltas, Evidence, IntervalStart};

use super::{GapAnswer, MOST_GAPS_IN_A_ROW, Recorder};
use crate::long_gaps::LongGap;
use crate::measuring_counter::MeasuringCounter;

impl<C: MeasuringCounter> Recorder<'_, C> {
    /// A gap or a migration was seen between `self.last` and `now`. Returns its length in ticks.
    #[cold]
    #[inline(never)]
    pub(super) fn interrupted(&mut self, now: CounterReading, onset: IntervalStart) -> u64 {
        let lost = self.note_gap(now, onset, Evidence::NONE);
        lost + self.catch_up()
    }

    /// Reads the counter after the thread did something of its own between two turns of the loop:
    /// noted a gap, counted a deadline, drew an amount. That takes time, the more the longer the
    /// thread was away from its caches. It belongs to the interval, unless it is too long for
    /// that; then it is a gap, and its length in ticks comes back.
    #[inline(never)]
    pub(super) fn catch_up(&mut self) -> u64 {
        self.catch_up_from(Evidence::NONE)
    }

    /// The same where a question was asked already, whose answer is a gap's if there is one.
    pub(super) fn catch_up_from(&mut self, mut passed_over: Evidence) -> u64 {
        let mut lost = 0;
        for _ in 0..MOST_GAPS_IN_A_ROW {
            if self.open.is_none() {
                break;
            }
            // Looked at before the time, so that what comes between the two belongs to a gap.
            let disturbed = self.witness.was_disturbed();
            let now = self.counter.read();
            if now.ticks.saturating_sub(self.last) <= self.settling() && now.cpu == self.last_cpu {
                self.last = now.ticks.max(self.last);
                if !disturbed {
                    break;
                }
                // Too short for a gap, and not to be taken for the next one's, unless that is in the question itself.
                passed_over = self.witness.collect();
                continue;
            }
            lost += self.note_gap(now, IntervalStart::Gap, passed_over);
            passed_over = Evidence::NONE;
        }
        lost
    }

    /// Ends the interval, counts what passed until `now`, and begins the next interval there. A
    /// gap that outlasts the thread's time ends with it, and the interval behind it has no length.
    ///
    /// The question about it is of that interval, however long it usually takes: by itself it would be a gap of which nothing
    /// is known, since what happened in it is in the answer.
    fn note_gap(&mut self, now: CounterReading, onset: IntervalStart, before: Evidence) -> u64 {
        let GapAnswer { now, asked_until, evidence } = self.ask_about(now);
        let lost = self.note_gap_with(now, onset, before.and(evidence));
        if self.open.is_some() {
            self.last = self.last.max(asked_until);
        }
        lost
    }

    /// Begins the interval behind a wait that ended at `now`. What takes the CPU while the thread asks what became of its wait is
    /// a gap behind an interval of no length ([`behind`]).
    pub(super) fn open_behind_wait(&mut self, now: CounterReading) {
        let of_wait = self.witness.collect();
        let asked = self.asked_since(now, of_wait.counted.is_some());
        let GapAnswer { now: then, asked_until, evidence } = match asked {
            _ if of_wait.is_none() => GapAnswer::nothing(now),
            Ok(asked_until) => GapAnswer { asked_until, ..GapAnswer::nothing(now) },
            Err(then) => self.ask_about(then),
        };
        self.last = now.ticks.min(self.settings.finish).max(self.last);
        let took = then.ticks.saturating_sub(now.ticks);
        if took <= self.settling() && then.cpu == now.cpu {
            self.open_at(now.cpu, IntervalStart::Wait, of_wait.and(evidence));
        } else {
            self.open_at(now.cpu, IntervalStart::Wait, of_wait);
            self.note_gap_with(then, IntervalStart::Gap, behind(of_wait, evidence));
        }
        if self.open.is_some() && asked_until.saturating_sub(self.last) > self.settling() {
            self.last = asked_until;
        }
    }

    pub(super) fn note_gap_with(
        &mut self,
        now: CounterReading,
        onset: IntervalStart,
        evidence: Evidence,
    ) -> u64 {
        let migrated = self.last_cpu != now.cpu;
        if now.ticks < self.last {
            self.backwards += 1;
        }
        self.close();
        let over = now.ticks >= self.settings.finish;
        // Counters of two CPUs may disagree; a step backwards is taken as no time at all.
        let resumed = now.ticks.min(self.settings.finish).max(self.last);
        let lost = resumed - self.last;
        self.count_gap(lost, evidence);
        if lost >= self.paused && was_held(evidence) {
            self.lost_below = self.lost_below.saturating_add(lost);
        }
        let (start, cpu_before) = (self.last, self.last_cpu);
        self.last = resumed;
        let onset =
            if migrated && onset == IntervalStart::Gap { IntervalStart::Migration } else { onset };
        let (end, cpu_after) = (resumed, now.cpu);
        self.keep_gap(LongGap { start, end, cpu_before, cpu_after, onset, evidence });
        self.open_at(now.cpu, onset, evidence);
        if over {
            self.close();
        }
        self.heed_gap(lost);
        lost
    }
}

/// Whether the kernel did not take the CPU from the thread in a gap, as far as that is proven.
fn was_held(evidence: Evidence) -> bool {
    let unmoved = |counted: CounterDeltas| {
        (counted.involuntary, counted.voluntary, counted.faults) == (0, 0, 0)
    };
    evidence.cleared == Some(false) || evidence.counted.is_some_and(unmoved)
}

/// The evidence of a gap in which it was first asked what became of the wait before it. A switch that was counted then may be of
/// either, unless the thread waited alone; a section that was kept since says nothing of all of the gap.
fn behind(wait: Evidence, more: Evidence) -> Evidence {
    let cleared = more.cleared.filter(|cleared| *cleared);
    let is_waits = wait.counted.is_some_and(|of| (of.involuntary, of.faults) == (0, 0));
    let counted = match more.counted {
        Some(of) if is_waits || of.involuntary > 0 || of.voluntary > 0 => Some(of),
        None if is_waits => Some(CounterDeltas::default()),
        _ => None,
    };
    Evidence { cleared, counted }
}
