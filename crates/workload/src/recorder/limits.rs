//! Wake-ups and gaps as they are counted, and the limits that end a run.
//!
//! Owns: what one wake-up or gap changes. Must not: decide whether a run passed.

use std::sync::atomic::Ordering;

use hourglass_trace::Evidence;

use super::Recorder;
use crate::guard::{HitKind, LimitHit};
use crate::live::WorstEvent;
use crate::long_gaps::LongGap;
use crate::measuring_counter::MeasuringCounter;
use crate::notifier;

impl<C: MeasuringCounter> Recorder<'_, C> {
    /// Records that the thread woke `late` ticks after the time it had asked for.
    pub fn record_lateness(&mut self, late: u64) {
        let ns = self.settings.timeline.ns_in(late);
        let Some(lateness) = &mut self.memory.lateness else { return };
        lateness.record(late, ns);
        if let Some(wakes) = &mut self.memory.wakes {
            wakes.record(self.last);
        }
        if let Some(live) = &self.settings.live {
            live.record(ns, || WorstEvent {
                ns,
                end_ns: self.settings.timeline.monotonic_at(self.last),
                cpu: self.last_cpu,
                evidence: Evidence::NONE,
            });
        }
        if let Some(marker) = &mut self.memory.marker {
            marker.mark_if_later(ns);
        }
        if late > self.settings.stop_late {
            self.hit(HitKind::Latency, late);
        }
    }

    /// Counts wake-ups that never took place because the one before them was too late.
    pub fn lose_wake_ups(&mut self, count: u64) {
        if count > 0 {
            self.tally.lost_wake_ups = self.tally.lost_wake_ups.saturating_add(count);
            if let Some(live) = &self.settings.live {
                live.lose(count);
            }
        }
    }

    /// Counts a gap of `lost` ticks, from the last moment seen on, and what was found out about it.
    pub(super) fn count_gap(&mut self, lost: u64, evidence: Evidence) {
        let ns = self.settings.timeline.ns_in(lost);
        self.memory.gaps.record(lost, ns);
        if self.memory.lateness.is_none()
            && let Some(live) = &self.settings.live
        {
            let over = self.last.saturating_add(lost);
            live.record(ns, || WorstEvent {
                ns,
                end_ns: self.settings.timeline.monotonic_at(over),
                cpu: self.last_cpu,
                evidence,
            });
        }
    }

    /// Keeps a gap that is over beside the trace, if that has no room for it.
    pub(super) fn keep_gap(&mut self, gap: LongGap) {
        if self.memory.trace.is_passing() {
            let ns = self.settings.timeline.ns_in(gap.end.saturating_sub(gap.start));
            self.memory.long_gaps.keep(gap, ns);
        }
    }

    /// Ends the run if a gap of `lost` ticks, which is over and noted, is longer than allowed.
    pub(super) fn heed_gap(&mut self, lost: u64) {
        if lost > self.settings.stop_gap {
            self.hit(HitKind::Gap, lost);
        }
    }

    pub fn end_run(&self) {
        self.stop.store(true, Ordering::Relaxed);
        notifier::notify();
    }

    fn hit(&mut self, kind: HitKind, ticks: u64) {
        if self.hit.is_none() {
            self.hit = Some(LimitHit { kind, cpu: self.last_cpu, end: self.last, ticks });
            self.end_run();
        }
    }
}
