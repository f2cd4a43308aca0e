//! What a thread does beside receiving time: it has jobs, polls, lets time pass, blocks for others.
//!
//! Owns: keeping the intervals right meanwhile. Must not: know what it is done for.

use hourglass_clock::CounterReading;
use hourglass_time::Span;
use hourglass_trace::IntervalStart;

use super::{GapAnswer, MOST_GAPS_IN_A_ROW, Recorder, RecordingEnd, Work};
use crate::jobs::JobTiming;
use crate::measuring_counter::MeasuringCounter;

/// How often [`Recorder::pass`] looks at the time: it may be late by this after an interruption.
const PASS_SLICE: Span = Span::from_micros(2);

impl<C: MeasuringCounter> Recorder<'_, C> {
    /// A job that arrived at `arrival` (on the counter) begins to run, now.
    pub fn begin_job(&mut self, arrival: u64) {
        let received = self.received();
        self.job = Some(JobTiming { arrival, started: self.last, finished: 0, received });
        self.lost_below = 0;
    }

    /// The job that has begun is done, now. Its response time in ticks; `None` if none has begun.
    pub fn end_job(&mut self) -> Option<u64> {
        let begun = self.job.take()?;
        let received = self.received() - begun.received;
        let job = JobTiming { finished: self.last, received, ..begun };
        if let Some(jobs) = &mut self.memory.jobs {
            jobs.record(job);
        }
        Some(job.response())
    }

    pub fn forget_job(&mut self) {
        self.job = None;
    }

    pub fn job_arrival(&self) -> Option<u64> {
        self.job.map(|job| job.arrival)
    }

    /// Looks at the counter after the thread did something of its own, and notes a gap if it took
    /// too long for that.
    pub fn touch(&mut self) -> RecordingEnd {
        if !self.ensure_open() {
            return RecordingEnd::TimeOver;
        }
        self.catch_up();
        if self.is_over() { RecordingEnd::TimeOver } else { RecordingEnd::Done }
    }

    /// Polls until `ready`, keeping the CPU.
    pub fn poll(&mut self, mut ready: impl FnMut() -> bool) -> RecordingEnd {
        while !ready() {
            if self.touch() == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
            std::hint::spin_loop();
        }
        self.touch()
    }

    /// What the thread finds out about the gap or the wait that lasted until `now`. What interrupts it while it
    /// asks belongs to the same one: an answer cannot be assigned to one of the two.
    pub(super) fn ask_about(&mut self, mut now: CounterReading) -> GapAnswer {
        let mut evidence = self.witness.collect();
        let mut asked = evidence.counted.is_some();
        for _ in 0..MOST_GAPS_IN_A_ROW {
            if evidence.is_none() {
                return GapAnswer { evidence, ..GapAnswer::nothing(now) };
            }
            match self.asked_since(now, asked) {
                Ok(asked_until) => return GapAnswer { now, asked_until, evidence },
                Err(then) => now = then,
            }
            let more = self.witness.collect();
            asked = more.counted.is_some();
            evidence = evidence.and(more);
        }
        GapAnswer { evidence, ..GapAnswer::nothing(self.counter.read()) }
    }

    /// Until when the question took that began at `now`; or else, if something may have come between its parts, of which one
    /// would tell this gap and the other the next one, what time it is.
    pub(super) fn asked_since(
        &mut self,
        now: CounterReading,
        counted: bool,
    ) -> Result<u64, CounterReading> {
        let disturbed = self.witness.was_disturbed();
        let then = self.counter.read();
        let took = then.ticks.saturating_sub(now.ticks);
        if disturbed || took > self.usual_question(took, counted) || then.cpu != now.cpu {
            return Err(then);
        }
        self.witness.was_not_switched();
        Ok(then.ticks)
    }

    /// How long a question may take in which nothing happened, in ticks, before one that took `took`; twice as long as the
    /// quickest, where system calls are slow.
    fn usual_question(&mut self, took: u64, asked: bool) -> u64 {
        let usual = self.question.map_or(0, |question| question.saturating_mul(2));
        if asked {
            self.question = Some(self.question.map_or(took, |question| question.min(took)));
        }
        self.noting.saturating_add(self.settings.gap.min(self.noting)).max(usual)
    }

    /// Yields the processor once. If anything ran meanwhile, the interval ends.
    pub fn yield_now(&mut self) -> RecordingEnd {
        if !self.ensure_open() {
            return RecordingEnd::TimeOver;
        }
        self.witness.makes_system_calls();
        hourglass_sys::thread::yield_now();
        let now = self.counter.read();
        if now.ticks.saturating_sub(self.last) > self.settings.gap || now.cpu != self.last_cpu {
            self.interrupted(now, IntervalStart::Yield);
        } else {
            self.last = now.ticks.max(self.last);
            if self.witness.overlooks() {
                let evidence = self.witness.collect();
                self.catch_up_from(evidence);
            }
        }
        if self.is_over() { RecordingEnd::TimeOver } else { RecordingEnd::Done }
    }

    /// Runs `work` until `amount` has passed, however much of it the thread received.
    pub fn pass(&mut self, amount: Span, work: &mut impl Work) -> RecordingEnd {
        let slice = self.settings.timeline.ticks_at_least(PASS_SLICE);
        let mut end = self.last.saturating_add(self.settings.timeline.ticks_at_least(amount));
        if !self.ensure_open() {
            return RecordingEnd::TimeOver;
        }
        end = end.max(self.last);
        while self.last < end {
            if self.watch(slice.min(end - self.last), work) == RecordingEnd::TimeOver {
                return RecordingEnd::TimeOver;
            }
        }
        RecordingEnd::Done
    }

    /// Ends the interval and calls `wait` again and again until it says that what the thread
    /// waits for has come, or the thread's time is over.
    ///
    /// `wait` gets the `CLOCK_MONOTONIC` time by which it MUST return. It MAY return earlier, and
    /// SHOULD when a signal comes.
    pub fn block(&mut self, mut wait: impl FnMut(u64) -> bool) -> RecordingEnd {
        if self.open.is_some() {
            self.catch_up();
        }
        self.close();
        self.witness.makes_system_calls();
        let latest = self.settings.timeline.monotonic_at(self.settings.finish);
        loop {
            let has_come = wait(latest);
            let now = self.counter.read();
            self.last = now.ticks.min(self.settings.finish).max(self.last);
            if self.is_over() {
                return RecordingEnd::TimeOver;
            }
            if has_come {
                self.open_behind_wait(now);
                return RecordingEnd::Done;
            }
        }
    }
}
