//! A loop that is not ours: it does not poll the counter, it marks where its periods begin and end.
//!
//! Between two marks the recorder sees nothing, so what it says of that stretch is what the thread's
//! source says: whether the kernel took the CPU, and by the thread's CPU clock for how long. Owns: the
//! intervals of marked periods. Must not: know periods or deadlines.

use hourglass_clock::CounterReading;
use hourglass_trace::{Evidence, IntervalStart};

use super::Recorder;
use crate::measuring_counter::MeasuringCounter;

impl<C: MeasuringCounter> Recorder<'_, C> {
    /// From here on the thread's time counts, though no interval has begun.
    pub(crate) fn await_marks(&mut self) {
        self.witness.begin();
        let now = self.counter.read();
        self.last = now.ticks;
        self.last_cpu = now.cpu;
    }

    /// An interval begins, unless one is open: after the thread's own wait, however that was done.
    pub(crate) fn resume(&mut self) {
        if self.open.is_some() {
            return;
        }
        let now = self.counter.read();
        let evidence = self.witness.collect();
        self.last = now.ticks.max(self.last);
        let onset = if self.intervals == 0 { IntervalStart::Start } else { IntervalStart::Wait };
        self.open_at(now.cpu, onset, evidence);
        self.witness.begin_stretch(self.last);
    }

    /// The thread still runs, or runs again: what was taken from it since the last mark is a gap.
    ///
    /// Where the last mark is more than GAP away, all of that is the gap, as in the loop of Figure
    /// 2. Else the gap is as long as the thread's CPU clock says, and lies at the end of the
    /// stretch, since its place in it is unknown.
    #[inline]
    pub(crate) fn mark(&mut self) {
        if self.open.is_none() {
            return;
        }
        let now = self.counter.read();
        let passed = now.ticks.saturating_sub(self.last);
        if passed <= self.settings.gap && now.cpu == self.last_cpu && self.witness.saw_nothing() {
            self.last = now.ticks.max(self.last);
        } else {
            self.mark_gap(now, passed);
        }
    }

    /// The interval ends, if one is open: the thread goes to wait.
    pub(crate) fn pause(&mut self) {
        self.mark();
        self.close();
    }

    #[cold]
    #[inline(never)]
    fn mark_gap(&mut self, now: CounterReading, passed: u64) {
        let evidence = self.witness.collect();
        let lost = if passed > self.settings.gap {
            passed
        } else if was_switched(&evidence) || now.cpu != self.last_cpu {
            // A switch takes some time, even where the CPU clock is too coarse to tell.
            self.lost_in_stretch(now).clamp(1, passed.max(1))
        } else {
            self.last = now.ticks.max(self.last);
            return;
        };
        self.last = now.ticks.saturating_sub(lost).max(self.last);
        self.note_gap_with(now, IntervalStart::Gap, evidence);
        self.witness.begin_stretch(self.last);
    }

    /// What the CPU clock misses since the stretch began, in ticks.
    fn lost_in_stretch(&self, now: CounterReading) -> u64 {
        let Some((begun, received_ns)) = self.witness.stretch() else { return 0 };
        let received = self.settings.timeline.calibration.rate.ticks_ceil(received_ns);
        now.ticks.saturating_sub(begun).saturating_sub(received)
    }
}

fn was_switched(evidence: &Evidence) -> bool {
    evidence.counted.is_some_and(|counted| counted.involuntary > 0 || counted.voluntary > 0)
}
