//! A loop that is not ours: it does not poll the counter, it marks where its periods begin and end.
//!
//! Between two marks the recorder sees nothing, so what it says of that stretch is what the thread's
//! source says: whether the kernel took the CPU, and by the thread's CPU clock for how long. Owns: the
//! intervals of marked periods. Must not: know periods or deadlines.

use hourglass_clock::CounterReading;
use hourglass_time::Span;
use hourglass_trace::{CounterDeltas, Evidence, IntervalStart};

use super::{GapAnswer, Recorder};
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
        let GapAnswer { now, evidence, .. } = self.ask_about(now);
        self.last = now.ticks.max(self.last);
        self.open_at(now.cpu, self.first_or(IntervalStart::Wait), evidence);
        self.witness.begin_stretch(self.last);
    }

    /// [`Recorder::resume`] of a thread that was due to run at `due`. What others took of the time from then on is a
    /// gap ([`IntervalStart::Late`]), if it is longer than [`LATE`] or GAP. Returns how late the thread is.
    pub(crate) fn resume_due(&mut self, due: u64) -> u64 {
        if self.open.is_none() {
            let now = self.counter.read();
            let GapAnswer { now, evidence, .. } = self.ask_about(now);
            let waited_ns = self.witness.waited_since();
            // What it still did of its own when it was due was not taken from it.
            let from = due.max(self.last);
            let passed = now.ticks.saturating_sub(from);
            let least = self.settings.timeline.ticks_at_least(LATE).min(self.settings.gap);
            let taken = self.taken_of(passed, now.ticks, waited_ns);
            if self.intervals > 0 && taken > least {
                self.begin_late(
                    from,
                    CounterReading { ticks: from + taken, ..now },
                    waited_ns,
                    evidence,
                );
                self.last = now.ticks.max(self.last);
            } else {
                self.last = now.ticks.max(self.last);
                self.open_at(now.cpu, self.first_or(IntervalStart::Wait), evidence);
            }
            self.witness.begin_stretch(self.last);
        }
        self.last.saturating_sub(due)
    }

    /// How much of the last `passed` ticks others took, where the thread itself may have run before it came to its mark.
    fn taken_of(&self, passed: u64, now: u64, waited_ns: Option<u64>) -> u64 {
        let ticks = |ns: u64| self.settings.timeline.calibration.rate.ticks_ceil(ns);
        let ran = self.witness.stretch().map_or(0, |(begun, received_ns)| {
            let away = now.saturating_sub(self.last);
            ticks(received_ns).saturating_sub(self.last.saturating_sub(begun)).min(away)
        });
        // It may have run before it was due; that it waited for a CPU is sure.
        passed.saturating_sub(ran).max(waited_ns.map_or(0, ticks).min(passed))
    }

    /// Divides the wait before `now` into one until `due` and a gap behind it.
    #[cold]
    #[inline(never)]
    fn begin_late(
        &mut self,
        due: u64,
        now: CounterReading,
        waited_ns: Option<u64>,
        evidence: Evidence,
    ) {
        let taken_ns = self.settings.timeline.ns_in(now.ticks.saturating_sub(due));
        self.last = due;
        self.open_at(self.last_cpu, IntervalStart::Wait, evidence);
        self.note_gap_with(now, IntervalStart::Late, wait_for_cpu(taken_ns, waited_ns, evidence));
    }

    fn first_or(&self, onset: IntervalStart) -> IntervalStart {
        if self.intervals == 0 { IntervalStart::Start } else { onset }
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
            self.mark_gap(now);
        }
    }

    /// The interval ends, if one is open: the thread goes to wait.
    pub(crate) fn pause(&mut self) {
        self.mark();
        self.close();
    }

    #[cold]
    #[inline(never)]
    fn mark_gap(&mut self, now: CounterReading) {
        let GapAnswer { now, evidence, .. } = self.ask_about(now);
        let passed = now.ticks.saturating_sub(self.last);
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
        // What it waited within a period is none of the wait for the next one.
        let _ = self.witness.waited_since();
    }

    /// What the CPU clock misses since the stretch began, in ticks.
    fn lost_in_stretch(&self, now: CounterReading) -> u64 {
        let Some((begun, received_ns)) = self.witness.stretch() else { return 0 };
        let received = self.settings.timeline.calibration.rate.ticks_ceil(received_ns);
        now.ticks.saturating_sub(begun).saturating_sub(received)
    }
}

/// A begin that is later is a gap: wake-ups of virtual machines under load take most of that.
const LATE: Span = Span::from_micros(100);

/// The evidence of a late begin: an involuntary switch where the thread waited for a CPU for most of the time, none
/// where it was made ready late; nothing between the two, where neither is the cause. Its own wait is not counted.
fn wait_for_cpu(taken_ns: u64, waited_ns: Option<u64>, seen: Evidence) -> Evidence {
    let counted = seen.counted.unwrap_or_default();
    let involuntary = match waited_ns {
        Some(waited_ns) if waited_ns >= taken_ns - taken_ns / 4 => counted.involuntary.max(1),
        Some(waited_ns) if waited_ns <= taken_ns / 4 => 0,
        Some(_) | None => return Evidence::NONE,
    };
    Evidence {
        cleared: None,
        counted: Some(CounterDeltas { involuntary, voluntary: 0, ..counted }),
    }
}

fn was_switched(evidence: &Evidence) -> bool {
    evidence.counted.is_some_and(|counted| counted.involuntary > 0 || counted.voluntary > 0)
}
