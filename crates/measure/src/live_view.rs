//! How a run goes, for a view that is drawn while it does.
//!
//! Owns: looks at what threads count, and the cause of the worst so far. Must not: draw, or run on a measured CPU but
//! where the user says so.

use std::path::Path;

use hourglass_documents::Cause;
use hourglass_documents::host::HostTick;
use hourglass_documents::live::{LiveReport, LiveThread, LiveWorst};
use hourglass_machine::facts::HostReader;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;
use hourglass_trace::cause::{TickClock, at_first_sight};
use hourglass_workload::{LiveSnapshot, LiveThreads, WorstEvent};

use crate::tick;

#[derive(Debug)]
pub struct LiveView {
    wake_ups: bool,
    reader: HostReader,
    tick: Option<TickClock>,
    threads: Option<LiveThreads>,
    looked: Vec<LastSample>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastSample {
    wait_ns: Option<u64>,
    max_ns: u64,
    waited_ns: Option<u64>,
}

impl LiveView {
    /// Of a run whose threads count wake-ups, or else gaps.
    pub fn of(wake_ups: bool) -> LiveView {
        let reader = HostReader::new(Path::new("/"));
        let tick = tick::from_host(&reader.read()).and_then(on_monotonic);
        LiveView { wake_ups, reader, tick, threads: None, looked: Vec::new() }
    }

    pub fn know(&mut self, threads: &LiveThreads) {
        self.threads = Some(threads.clone());
    }

    /// What they counted until now, `elapsed` after the start.
    pub fn sample(&mut self, elapsed: Span) -> LiveReport {
        let now_ns = now_ns(ClockId::Monotonic);
        let begun_ns = now_ns.saturating_sub(elapsed.nanos_or_zero());
        let glances: Vec<LiveSnapshot> = self.threads.iter().flat_map(LiveThreads::read).collect();
        self.looked.resize(glances.len(), LastSample::default());
        for (looked, glance) in self.looked.iter_mut().zip(&glances) {
            let times = self.reader.thread_times(std::process::id(), glance.tid);
            looked.see(glance.max_ns, times.map(|times| times.wait_ns));
        }
        let thread = |((id, glance), looked): ((u32, &LiveSnapshot), &LastSample)| LiveThread {
            id,
            count: glance.count,
            lost: glance.lost,
            min_ns: glance.min_ns,
            mean_ns: glance.total_ns.checked_div(glance.count).unwrap_or(0),
            last_ns: glance.last_ns,
            max_ns: glance.max_ns,
            worst: glance.worst.map(|worst| self.explained(worst, looked.waited_ns, begun_ns)),
        };
        let mut counts = Vec::new();
        for glance in &glances {
            counts.resize(glance.counts.len(), 0_u64);
            let sums = counts.iter_mut().zip(glance.counts);
            sums.for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        LiveReport {
            elapsed_ns: elapsed.nanos_or_zero(),
            wake_ups: self.wake_ups,
            threads: (0..).zip(&glances).zip(&self.looked).map(thread).collect(),
            counts,
        }
    }

    fn explained(&self, worst: WorstEvent, waited_ns: Option<u64>, begun_ns: u64) -> LiveWorst {
        let cause = match (self.wake_ups, waited_ns) {
            (true, waited_ns) => of_wake_up(worst.ns, waited_ns),
            (false, _) => {
                let over_ns = i64::try_from(worst.end_ns).unwrap_or(i64::MAX);
                let start_ns = over_ns.saturating_sub_unsigned(worst.ns);
                at_first_sight(worst.evidence, (start_ns, over_ns), worst.cpu, self.tick)
            }
        };
        LiveWorst {
            ns: worst.ns,
            at_ns: worst.end_ns.saturating_sub(begun_ns),
            cpu: worst.cpu,
            cause,
            waited_ns: waited_ns.filter(|_| self.wake_ups),
        }
    }
}

impl LastSample {
    /// `wait_ns`: for how long the kernel let the thread wait for a CPU since it began.
    fn see(&mut self, max_ns: u64, wait_ns: Option<u64>) {
        if max_ns > self.max_ns {
            // Before the first look there was nothing.
            let before_ns = self.wait_ns.unwrap_or(0);
            self.waited_ns = wait_ns.map(|ns| ns.saturating_sub(before_ns));
            self.max_ns = max_ns;
        }
        self.wait_ns = wait_ns;
    }
}

/// Why a thread woke late that waited at most `waited_ns` for a CPU.
fn of_wake_up(late_ns: u64, waited_ns: Option<u64>) -> Cause {
    match waited_ns {
        None => Cause::Unknown,
        Some(ns) if ns >= late_ns / 2 => Cause::ContextSwitch,
        Some(_) => Cause::IrqOrBelow,
    }
}

/// The tick on the time line of `CLOCK_MONOTONIC` itself.
fn on_monotonic(tick: HostTick) -> Option<TickClock> {
    let at_ns = i64::try_from(tick.phase_ns?).ok()?;
    Some(TickClock { period_ns: tick.period_ns, at_ns, skew_ns: tick.skew_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's sum at each look; only the look with a new maximum tells of it.
    #[test]
    fn the_wait_of_the_worst_is_kept() {
        let mut looked = LastSample::default();
        looked.see(9_000, Some(40_000));
        assert_eq!(looked.waited_ns, Some(40_000));
        looked.see(9_000, Some(90_000));
        looked.see(700_000, Some(790_000));
        looked.see(700_000, Some(800_000));
        assert_eq!(looked.waited_ns, Some(700_000));
        assert_eq!(of_wake_up(700_000, looked.waited_ns), Cause::ContextSwitch);
        assert_eq!(of_wake_up(1_500_000, looked.waited_ns), Cause::IrqOrBelow);
        assert_eq!(of_wake_up(1_500_000, None), Cause::Unknown);
    }

    #[test]
    fn a_run_that_has_not_begun_shows_nothing() {
        let mut view = LiveView::of(true);
        assert_eq!(view.sample(Span::ZERO).threads, []);
        view.know(&LiveThreads::new(2));
        let report = view.sample(Span::from_millis(1));
        assert_eq!(report.threads.len(), 2);
        assert!(report.threads.iter().all(|thread| thread.worst.is_none()));
        assert!(!report.counts.is_empty() && report.counts.iter().all(|count| *count == 0));
    }
}
