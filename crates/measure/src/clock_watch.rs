//! A clock watched while it runs: its bound, its drift, what happens to it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use hourglass_clock::timekeeping::{
    Bounds, ClockSettings, ExtendedTimebase, Native, ReferenceClock, SourceId, Start, Status,
    Timebase,
};
use hourglass_clock::{Calibration, Clock, Pair, SelectionPolicy, SourceName, source};
use hourglass_documents::clocks::{WatchEvent, WatchFacts, WatchSample};
use hourglass_sys::signal;
use hourglass_time::Span;

/// The clock that is watched: on this machine's counters and one more, if that was chosen.
type WatchedClock = Clock<Arc<dyn Timebase>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockWatchOptions {
    /// Between two looks; taken as at least 10 ms.
    pub every: Span,
    /// From the first look to the last one; `None` until a signal asks to stop.
    pub length: Option<Span>,
}

/// A shorter pause would leave no time to sleep.
const SHORTEST: Span = Span::from_millis(10);
/// Time between two checks for signals.
const ATTENTION_NS: u64 = 50_000_000;

/// Lets a clock run over `selected`, chosen by `policy`, and tells `each` what was seen so far
/// whenever it looked, until that breaks off. Returns everything, and the signal that ended it, if one did.
///
/// A counter selected by the policy `strict` is judged by the clock itself, also while it runs; any
/// other source serves on the caller's word. Only the latest `kept` looks are kept.
pub fn watch(
    policy: SelectionPolicy,
    selected: SourceName,
    watch: ClockWatchOptions,
    kept: usize,
    mut each: impl FnMut(&WatchFacts) -> ControlFlow<()>,
) -> (WatchFacts, Option<i32>) {
    // Without handlers Ctrl-C just ends the program.
    let _ = signal::catch_stop();
    let mut observer = Observer::new(clock(policy, selected));
    let mut facts = WatchFacts::default();
    let every_ns = watch.every.max(SHORTEST).nanos_or_zero();
    let length_ns = watch.length.map_or(u64::MAX, Span::nanos_or_zero);
    for turn in 0u64.. {
        let at_ns = turn.saturating_mul(every_ns);
        if at_ns > length_ns || !observer.wait_until(at_ns) {
            break;
        }
        let sample = observer.sample();
        if facts.samples.len() >= kept.max(1) {
            facts.samples.remove(0);
        }
        facts.samples.push(sample);
        facts.events = observer.events();
        if each(&facts).is_break() {
            break;
        }
    }
    (facts, signal::stop_asked())
}

fn clock(policy: SelectionPolicy, selected: SourceName) -> WatchedClock {
    let own: Arc<dyn Timebase> = Arc::new(Native);
    let id = SourceId::from_name(selected).unwrap_or(SourceId::OS);
    let other = || ExtendedTimebase::new(source::probe(selected).ok()?);
    let base = if own.supports(id) { None } else { other() };
    let base: Arc<dyn Timebase> = base.map_or(own, |base| Arc::new(base));
    // A counter that all the evidence speaks for is judged by the clock itself, again and again.
    let judged = policy == SelectionPolicy::Strict && id != SourceId::OS;
    let start = if judged { Start::Judged } else { Start::With(id) };
    Clock::on(base, ClockSettings { start, ..ClockSettings::DEFAULT })
}

struct Observer {
    clock: WatchedClock,
    begin_ns: u64,
    /// The last pair of the processor's counter and `CLOCK_MONOTONIC`.
    pair: Option<Pair>,
    first: Option<Calibration>,
}

/// Tries of a comparison; the narrowest counts.
const TRIES: u32 = 16;

impl Observer {
    fn new(clock: WatchedClock) -> Observer {
        Observer { clock, begin_ns: monotonic_ns(), pair: None, first: None }
    }

    /// Maintains the clock until `at_ns` after the start; false if a signal came.
    fn wait_until(&self, at_ns: u64) -> bool {
        loop {
            let due_ns = self.clock.maintain().next_ns;
            if signal::stop_asked().is_some() {
                return false;
            }
            let passed_ns = monotonic_ns().saturating_sub(self.begin_ns);
            let Some(left_ns @ 1..) = at_ns.checked_sub(passed_ns) else { return true };
            let pause_ns = left_ns.min(due_ns.max(1)).min(ATTENTION_NS);
            std::thread::sleep(Duration::from_nanos(pause_ns));
        }
    }

    fn sample(&mut self) -> WatchSample {
        let (bounds, offset) = compare(&self.clock);
        let drift = self.drift();
        WatchSample {
            at_ns: monotonic_ns().saturating_sub(self.begin_ns),
            source: self.clock.source().to_string(),
            status: status_name(bounds.status).to_owned(),
            offset_ns: offset.ns,
            offset_error_ns: offset.error_ns,
            error_bound_ns: bounds.error_ns(),
            violated: offset.ns.unsigned_abs() > offset.error_ns.saturating_add(bounds.error_ns()),
            drift_ppb: drift.map(|drift| drift.0),
            drift_error_ppb: drift.map(|drift| drift.1),
        }
    }

    /// The counter's rate since the last look against that in the first interval, and its error.
    fn drift(&mut self) -> Option<(i64, u64)> {
        let pair = processor_pair()?;
        let found = self.pair.replace(pair).and_then(|last| Calibration::between(last, pair))?;
        let Some(first) = self.first else {
            self.first = Some(found);
            return None;
        };
        let ppb = (found.rate.hertz() / first.rate.hertz() - 1.0) * 1e9;
        Some((ppb.round() as i64, found.rate_error_ppb.saturating_add(first.rate_error_ppb)))
    }

    fn events(&self) -> Vec<WatchEvent> {
        let events = self.clock.events();
        let event = |event: hourglass_clock::timekeeping::Event| WatchEvent {
            at_ns: event.at_ns.saturating_sub(self.begin_ns),
            text: event.what.to_string(),
            failed_over: event.what.kind().fails_over(),
        };
        events.into_iter().map(event).collect()
    }
}

fn processor_pair() -> Option<Pair> {
    #[cfg(target_arch = "x86_64")]
    return source::probe(SourceName::Tsc).ok().map(|_| Pair::read(&hourglass_clock::Tsc));
    #[cfg(target_arch = "aarch64")]
    return Some(Pair::read(&hourglass_clock::Cntvct));
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

struct Offset {
    ns: i64,
    error_ns: u64,
}

/// Brackets a read of the clock between two of `CLOCK_MONOTONIC`, some times; the narrowest counts.
fn compare(clock: &WatchedClock) -> (Bounds, Offset) {
    let once = || {
        let before = monotonic_ns();
        let bounds = clock.now_bounded();
        let after = monotonic_ns();
        let width = after.saturating_sub(before);
        let middle = before.saturating_add(width / 2);
        let apart = i128::from(bounds.middle()) - i128::from(middle);
        let ns = i64::try_from(apart).unwrap_or(i64::MAX);
        // Both ends are rounded down, and so is the middle.
        (bounds, Offset { ns, error_ns: width.div_ceil(2).saturating_add(1) })
    };
    let mut best = once();
    for _ in 1..TRIES {
        let next = once();
        if next.1.error_ns < best.1.error_ns {
            best = next;
        }
    }
    best
}

fn monotonic_ns() -> u64 {
    Native.reference_ns(ReferenceClock::Monotonic)
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::OsClock => "os_clock",
        Status::Settling => "settling",
        Status::Steady => "steady",
        Status::FailedOver => "failed_over",
        Status::Assumed => "assumed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_looks_as_often_as_it_was_asked_and_finds_the_clock_within_its_bound() {
        let how = ClockWatchOptions {
            every: Span::from_millis(20),
            length: Some(Span::from_millis(100)),
        };
        let mut samples = 0;
        let (facts, signal) =
            watch(SelectionPolicy::Strict, SourceName::MONOTONIC, how, 5, |facts| {
                samples += 1;
                assert_eq!(facts.samples.len(), samples.min(5));
                ControlFlow::Continue(())
            });
        assert_eq!((facts.samples.len(), samples, signal), (5, 6, None));
        assert!(facts.samples.iter().all(|sample| !sample.violated), "{facts:?}");
        assert!(facts.samples.is_sorted_by_key(|sample| sample.at_ns));
    }

    /// Any policy but the strict one is taken at its word.
    #[test]
    fn the_source_chosen_serves() {
        let clock = clock(SelectionPolicy::Permissive, SourceName::MONOTONIC);
        clock.maintain();
        assert_eq!(clock.source(), SourceId::OS);
        let simulated = super::clock(SelectionPolicy::Forced(SourceName::Sim), SourceName::Sim);
        simulated.maintain();
        // It stands still, and is found out.
        assert_eq!(simulated.source(), SourceId::OS);
        assert!(simulated.trust().reason.contains("did not advance"));
    }
}
