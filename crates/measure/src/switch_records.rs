//! Records of the threads' context switches, in runs that do not trace the kernel: no privilege is
//! needed, where the kernel lets users have them.
//!
//! Owns: a ring a thread, made before the run and read after it; the records on the run's counter.
//! Must not: warn of a refusal, which many machines have: the manifest tells it. Infer anything;
//! `trace::cause` does, from the records.

use hourglass_documents::manifest::EvidenceFacts;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::perf::{PerfUnavailable, Switch, SwitchDirection, SwitchRecords};
use hourglass_time::Span;
use hourglass_trace::{KernelEvent, KernelEventKind};
use hourglass_workload::spec::RunSpec;
use hourglass_workload::{LiveThreads, Timeline};

use crate::time_namespace::Offset;

/// Room for each second of the run, bytes: a thousand switches, each recorded twice.
const BYTES_PER_SECOND: u64 = 64 << 10;

/// Room for a run of unknown length, bytes: some minutes of a thread that waits a thousand times a second.
const BYTES_WITHOUT_END: u64 = 16 << 20;

/// All rings together take no more.
const MOST_BYTES: u64 = 64 << 20;

/// `CLOCK_MONOTONIC` and `CLOCK_MONOTONIC_RAW` at one moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moment {
    monotonic_ns: u64,
    raw_ns: u64,
}

impl Moment {
    /// The narrowest of some pairs, so that an interruption does not spoil it; the raw clock as records have it.
    fn now() -> Moment {
        const PAIRS: u32 = 64;
        let pair = || {
            let before = now_ns(ClockId::Monotonic);
            let raw_ns = now_ns(ClockId::MonotonicRaw);
            let width = now_ns(ClockId::Monotonic).saturating_sub(before);
            (width, Moment { monotonic_ns: before + width / 2, raw_ns })
        };
        let narrowest = (0..PAIRS).map(|_| pair()).min_by_key(|(width, _)| *width);
        let moment = narrowest.map(|(_, moment)| moment).unwrap_or_default();
        // Where the offset is not known, records and trace do not fit, which is noticed.
        let offset = Offset::of_this_process().unwrap_or_default();
        Moment { raw_ns: offset.kernel_ns(moment.raw_ns), ..moment }
    }

    /// The raw counter at that moment.
    fn ticks(self, timeline: &Timeline) -> i128 {
        let (zero, rate) = (timeline.epoch, timeline.calibration.rate);
        let ahead = self.monotonic_ns.checked_sub(zero.monotonic_ns);
        i128::from(zero.ticks)
            + match ahead {
                Some(ns) => i128::from(rate.ticks_ceil(ns)),
                None => -i128::from(rate.ticks_ceil(zero.monotonic_ns - self.monotonic_ns)),
            }
    }
}

#[derive(Debug)]
pub(crate) struct SwitchSession {
    /// Threads that write a trace, by their numbers: the others have nothing to explain.
    wanted: Vec<u32>,
    bytes: usize,
    live_threads: Option<LiveThreads>,
    open: Result<Vec<SwitchRecords>, PerfUnavailable>,
    first: Moment,
    last: Moment,
}

impl SwitchSession {
    pub(crate) fn new(spec: &RunSpec) -> SwitchSession {
        let of_trace = |(id, thread): (u32, &hourglass_workload::ThreadSpec)| {
            (!thread.model.demand().latency).then_some(id)
        };
        let wanted: Vec<u32> = (0..).zip(&spec.threads).filter_map(of_trace).collect();
        SwitchSession::with_duration(wanted, spec.duration)
    }

    fn with_duration(wanted: Vec<u32>, duration: Span) -> SwitchSession {
        let seconds = duration.nanos_or_zero().div_ceil(1_000_000_000);
        let most = MOST_BYTES / (wanted.len().max(1) as u64);
        let bytes = seconds.saturating_mul(BYTES_PER_SECOND).min(most);
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let (first, last) = (Moment::default(), Moment::default());
        SwitchSession { wanted, bytes, live_threads: None, open: Ok(Vec::new()), first, last }
    }

    /// For the calling thread, which is a run's only one, however long that takes.
    pub(crate) fn of_this_thread() -> SwitchSession {
        let (first, last) = (Moment::default(), Moment::default());
        let bytes = usize::try_from(BYTES_WITHOUT_END).unwrap_or(0);
        let mut session = SwitchSession {
            wanted: vec![0],
            bytes,
            live_threads: None,
            open: Ok(Vec::new()),
            first,
            last,
        };
        session.begin_for(&[hourglass_sys::thread::id()]);
        session
    }

    /// Where the kernel's numbers of the threads will stand.
    pub(crate) fn know(&mut self, live_threads: &LiveThreads) {
        self.live_threads = Some(live_threads.clone());
    }

    /// Makes the rings and begins to record. All threads or none.
    pub(crate) fn begin(&mut self) {
        let tids: Vec<u32> =
            self.live_threads.iter().flat_map(LiveThreads::read).map(|live| live.tid).collect();
        self.begin_for(&tids);
    }

    fn begin_for(&mut self, tids: &[u32]) {
        let of_run = self.wanted.iter().filter_map(|id| tids.get(*id as usize));
        let open = |tid: &u32| {
            let records = SwitchRecords::open(*tid, self.bytes)?;
            let enabled = records.enable();
            enabled.map_err(|error| PerfUnavailable::Other(error.raw_os_error().unwrap_or(0)))?;
            Ok(records)
        };
        self.open = of_run.map(open).collect();
        self.first = Moment::now();
    }

    pub(crate) fn end(&mut self) {
        for records in self.open.iter().flatten() {
            // Does not fail for an open event; what came later would lie outside all gaps.
            let _ = records.disable();
        }
        self.last = Moment::now();
    }

    pub(crate) fn finish(self) -> SwitchRecording {
        let (first, last) = (self.first, self.last);
        let mut all =
            SwitchRecording { switches: Vec::new(), lost: Some(0), refused: None, first, last };
        match self.open {
            Ok(open) => {
                for found in open.into_iter().map(SwitchRecords::finish) {
                    all.switches.extend(found.switches);
                    all.lost = all.lost.zip(found.lost).map(|(a, b)| a.saturating_add(b));
                    if found.damaged {
                        all.lost = None;
                    }
                }
                all.switches.sort_by_key(|switch| switch.raw_ns);
            }
            Err(refused) => all.refused = Some(refused),
        }
        all
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SwitchRecording {
    switches: Vec<Switch>,
    /// `None` where some were not recorded and their number is unknown.
    lost: Option<u64>,
    refused: Option<PerfUnavailable>,
    first: Moment,
    last: Moment,
}

impl SwitchRecording {
    pub(crate) fn is_there(&self) -> bool {
        self.refused.is_none()
    }

    /// The switches in order of time, on the run's time line: the raw clock runs evenly beside the
    /// counter between the two moments at which both were read.
    pub(crate) fn events(
        &self,
        timeline: &Timeline,
    ) -> impl Iterator<Item = KernelEvent> + use<'_> {
        let timeline = *timeline;
        let begun = self.first.ticks(&timeline);
        let passed = self.last.ticks(&timeline) - begun;
        let raw_passed = i128::from(self.last.raw_ns) - i128::from(self.first.raw_ns);
        self.switches.iter().map(move |switch| {
            let since = i128::from(switch.raw_ns) - i128::from(self.first.raw_ns);
            let ticks = begun + since.saturating_mul(passed).checked_div(raw_passed).unwrap_or(0);
            let ticks = u64::try_from(ticks.max(0)).unwrap_or(u64::MAX);
            event(switch, ticks, timeline.ns_at(ticks))
        })
    }

    pub(crate) fn facts(&self) -> EvidenceFacts {
        let found = match (&self.refused, self.lost) {
            (Some(refused), _) => refused.to_string(),
            (None, Some(0)) => format!("{} records of context switches", self.switches.len()),
            (None, Some(lost)) => format!(
                "{} records of context switches; {lost} more found no room",
                self.switches.len()
            ),
            (None, None) => format!(
                "{} records of context switches; there were more, and this kernel does not count them",
                self.switches.len()
            ),
        };
        EvidenceFacts {
            source: EvidenceFacts::PERF.to_owned(),
            used: self.is_there(),
            found,
            remedy: self.refused.as_ref().and_then(remedy),
            complete: self.is_there().then_some(self.lost == Some(0)),
        }
    }
}

fn remedy(refused: &PerfUnavailable) -> Option<String> {
    let line = match refused {
        PerfUnavailable::Paranoid(_) => "sudo sysctl kernel.perf_event_paranoid=2",
        PerfUnavailable::Forbidden => {
            "run outside the container, or let its filter of system calls pass perf_event_open"
        }
        PerfUnavailable::Missing => "use a kernel with CONFIG_PERF_EVENTS",
        PerfUnavailable::NoRoom => "sudo sysctl kernel.perf_event_mlock_kb=65536",
        PerfUnavailable::Other(_) => return None,
    };
    Some(line.to_owned())
}

/// A record as an event of the kernel. It says nothing of the other thread.
fn event(switch: &Switch, ticks: u64, ns: i64) -> KernelEvent {
    /// `TASK_INTERRUPTIBLE`: which way it waits the record does not say.
    const WAITING: u64 = 1;
    let (a, b, value) = match switch.way {
        SwitchDirection::In => (KernelEvent::UNTOLD, switch.tid, 0),
        SwitchDirection::Waited => (switch.tid, KernelEvent::UNTOLD, WAITING),
        SwitchDirection::Preempted => (switch.tid, KernelEvent::UNTOLD, 0),
    };
    KernelEvent { ns, ticks, value, cpu: switch.cpu, a, b, kind: KernelEventKind::Switch }
}

#[cfg(test)]
mod tests {
    use hourglass_clock::{Calibration, Rate};
    use hourglass_workload::Epoch;

    use super::*;

    fn timeline() -> Timeline {
        let calibration =
            Calibration { rate: Rate::NANOSECONDS, window_ns: 0, rate_error_ppb: 0, bracket_ns: 0 };
        let epoch = Epoch { ticks: 5_000_000, monotonic_ns: 2_000_000, realtime_ns: 0 };
        Timeline { epoch, calibration }
    }

    fn switch(raw_ns: u64, way: SwitchDirection) -> Switch {
        Switch { raw_ns, tid: 70, cpu: 1, way }
    }

    /// The raw clock runs 100 ppm slower than the counter, and the rings were made before the start.
    #[test]
    fn records_are_put_on_the_runs_time_line() {
        let first = Moment { monotonic_ns: 1_000_000, raw_ns: 90_000_000 };
        let last = Moment { monotonic_ns: 1_001_000_000, raw_ns: 1_089_900_000 };
        let switches = vec![
            switch(90_000_000, SwitchDirection::Preempted),
            switch(589_950_000, SwitchDirection::In),
            switch(1_089_900_000, SwitchDirection::Waited),
        ];
        let found = SwitchRecording { switches, lost: Some(0), refused: None, first, last };
        let events: Vec<KernelEvent> = found.events(&timeline()).collect();
        let times: Vec<i64> = events.iter().map(|event| event.ns).collect();
        assert_eq!(times, [-1_000_000, 499_000_000, 999_000_000]);
        assert_eq!(events[1].ticks, 504_000_000);
        let switches: Vec<(u32, u32, u64)> = events.iter().map(|e| (e.a, e.b, e.value)).collect();
        let other = KernelEvent::UNTOLD;
        assert_eq!(switches, [(70, other, 0), (other, 70, 0), (70, other, 1)]);
    }

    #[test]
    fn what_is_missing_is_reported_with_a_remedy() {
        let moment = Moment::default();
        let of = |lost, refused| {
            SwitchRecording { switches: Vec::new(), lost, refused, first: moment, last: moment }
                .facts()
        };
        let lost = of(Some(7), None);
        assert!(lost.used && lost.found.contains("7 more") && lost.remedy.is_none(), "{lost:?}");
        assert_eq!(lost.complete, Some(false));
        assert_eq!(of(Some(0), None).complete, Some(true));
        assert!(of(None, None).found.contains("does not count"));
        let refused = of(Some(0), Some(PerfUnavailable::Paranoid(3)));
        assert!(!refused.used && refused.found.contains("perf_event_paranoid is 3"));
        assert_eq!(refused.remedy.as_deref(), Some("sudo sysctl kernel.perf_event_paranoid=2"));
    }

    #[test]
    fn a_session_without_threads_records_nothing() {
        let mut session = SwitchSession::with_duration(Vec::new(), Span::from_secs(1));
        session.know(&LiveThreads::new(0));
        session.begin();
        session.end();
        let found = session.finish();
        assert!(found.is_there() && found.events(&timeline()).next().is_none());
    }
}
