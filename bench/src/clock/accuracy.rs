//! Whether bounds hold, and how wide they are: readings of our clocks between readings of the
//! kernel's, and the other way round, for as long as wanted.
//!
//! The kernel's clock is read by `clock_gettime` itself; nothing of ours scales it.

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{
    Bounds, ClockSettings, EventKind, MaintenanceThread, PageReader, SourceId, Start, Status,
};
use hourglass_sys::clock::{ClockId, now_ns};

use super::counter;
use crate::document::Row;
use crate::stats::ValueCounts;

/// Readings of ours in a burst; one of the kernel's stands before each and one behind the last.
const BURST: usize = 128;

/// Bursts after which the thread moves to another CPU.
const STAY: u64 = 64;

/// Pauses between bursts, us: short ones too, since what was just begun anew is calibrated over
/// short times. 2.6 ms on average, so that no CPU is taken.
const PAUSES_US: [u64; 8] = [13_000, 0, 0, 20, 100, 500, 2_000, 5_000];

/// Bounds count from here on, ns after the first reading.
const SETTLED_NS: u64 = 1_000_000_000;

/// What the 99th percentile of the bounds is meant to be at most, ns.
const GOAL_NS: f64 = 250.0;

pub(super) struct AccuracyResult {
    pub(super) rows: Vec<Row>,
    pub(super) comparisons: u64,
}

struct ReadingBurst {
    /// The kernel's clock, and then ours.
    pairs: [(u64, Bounds); BURST],
    last_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) comparisons: u64,
    outside: u64,
    /// Bounds that a counter's calibration claims, ns.
    by_counter: ValueCounts,
    /// Bounds of readings that the OS clock served, ns.
    by_os: ValueCounts,
}

pub(super) struct ClockCase<'a> {
    name: &'static str,
    /// Fills a burst without indirection between the readings.
    fill: Box<dyn Fn(&mut ReadingBurst) + 'a>,
    /// Called with the time since the start in ns, between bursts.
    disturb: Box<dyn FnMut(u64) + 'a>,
    pub(super) tally: Tally,
}

/// The cases `bound_p99` and `violations`. The thread goes round all of `cpus`. Sources are forced
/// only where the counter `is_trusted`.
pub(super) fn measure(seconds: u64, cpus: &[u32], is_trusted: bool) -> Result<AccuracyResult> {
    let by_reader = Clock::new();
    let (helper, page) = helped()?;
    let by_hand = Clock::new();
    let folder = tempfile::tempdir()?;
    let failing = FailoverClock::new(folder.path())?;
    let mut kept = vec![
        ClockCase::new("hourglass", || by_reader.now_bounded()),
        ClockCase::new("hourglass/helper", || helper.clock().now_bounded()),
        ClockCase::new("hourglass/page", || page.now_bounded()),
    ];
    if is_trusted {
        let switched = ClockCase::new("hourglass/by_hand", || by_hand.now_bounded());
        kept.push(switched.disturbed(|since_ns| switch_by_hand(&by_hand, since_ns)));
        let failed = ClockCase::new("hourglass/failed_over", || failing.clock.now_bounded());
        kept.push(failed.disturbed(|since_ns| failing.disturb(since_ns)));
    }
    watch(&mut kept, seconds, cpus);
    let mut rows: Vec<Row> = kept.iter().flat_map(ClockCase::bound_rows).collect();
    rows.extend(kept.iter().flat_map(|kept| kept.violation_rows("violations")));
    if is_trusted {
        let failovers = failing.clock.count(EventKind::KernelChangedSource) as f64;
        rows.push(Row::alone("violations/failovers", "hourglass/failed_over", failovers, "count"));
    }
    let comparisons = kept.iter().map(|kept| kept.tally.comparisons).sum();
    Ok(AccuracyResult { rows, comparisons })
}

pub(super) fn helped() -> Result<(MaintenanceThread, PageReader)> {
    let unread = ClockSettings { readers_refit: false, ..ClockSettings::DEFAULT };
    let helper = MaintenanceThread::start(Arc::new(Clock::with(unread)))
        .context("no thread for the helper")?;
    let descriptor = helper.clock().share().context("the page cannot be shared")?;
    let page = PageReader::open(&File::from(descriptor))?;
    Ok((helper, page))
}

/// Bursts of every clock in turn, with [`PAUSES_US`] between them; on every CPU for a while.
pub(super) fn watch(kept: &mut [ClockCase<'_>], seconds: u64, cpus: &[u32]) {
    let mut burst = ReadingBurst::new();
    let begun_ns = monotonic_ns();
    let length_ns = seconds.saturating_mul(1_000_000_000);
    for turn in 0u64.. {
        let since_ns = monotonic_ns().saturating_sub(begun_ns);
        if since_ns >= length_ns {
            return;
        }
        let place = turn / STAY % cpus.len().max(1) as u64;
        if let (0, Some(cpu)) = (turn % STAY, cpus.get(place as usize)) {
            // Where that is not allowed, the kernel moves the thread when it likes.
            let _ = hourglass_sys::thread::set_affinity([*cpu]);
        }
        for kept in &mut *kept {
            (kept.disturb)(since_ns);
            (kept.fill)(&mut burst);
            kept.tally.judge(&burst, since_ns >= SETTLED_NS);
        }
        let pause = PAUSES_US[(turn % PAUSES_US.len() as u64) as usize];
        if pause > 0 {
            std::thread::sleep(Duration::from_micros(pause));
        }
    }
}

fn monotonic_ns() -> u64 {
    now_ns(ClockId::Monotonic)
}

impl ReadingBurst {
    fn new() -> ReadingBurst {
        let nothing = Bounds { earliest: 0, latest: 0, status: Status::OsClock };
        ReadingBurst { pairs: [(0, nothing); BURST], last_ns: 0 }
    }

    #[inline(always)]
    fn fill(&mut self, read: impl Fn() -> Bounds) {
        for pair in &mut self.pairs {
            *pair = (monotonic_ns(), read());
        }
        self.last_ns = monotonic_ns();
    }
}

fn is_outside(before_ns: u64, bounds: &Bounds, after_ns: u64) -> bool {
    bounds.latest < before_ns || bounds.earliest > after_ns
}

fn is_outside_between(before: &Bounds, reference_ns: u64, after: &Bounds) -> bool {
    reference_ns < before.earliest || reference_ns > after.latest
}

impl Tally {
    fn judge(&mut self, burst: &ReadingBurst, settled: bool) {
        let after = burst.pairs.iter().skip(1).map(|(ns, _)| *ns).chain([burst.last_ns]);
        for ((before_ns, bounds), after_ns) in burst.pairs.iter().zip(after) {
            self.count(is_outside(*before_ns, bounds, after_ns));
        }
        for pair in burst.pairs.windows(2) {
            if let [(_, before), (reference_ns, after)] = pair {
                self.count(is_outside_between(before, *reference_ns, after));
            }
        }
        for (_, bounds) in burst.pairs.iter().filter(|_| settled) {
            match bounds.status {
                Status::Settling | Status::Steady | Status::Assumed => {
                    self.by_counter.add(bounds.error_ns())
                }
                Status::OsClock | Status::FailedOver => self.by_os.add(bounds.error_ns()),
            }
        }
    }

    fn count(&mut self, outside: bool) {
        self.comparisons += 1;
        self.outside += u64::from(outside);
    }

    /// The bounds that a counter claimed; where none served, those of the OS clock.
    fn bounds(&self) -> &ValueCounts {
        if self.by_counter.total() > 0 { &self.by_counter } else { &self.by_os }
    }
}

impl<'a> ClockCase<'a> {
    pub(super) fn new(name: &'static str, read: impl Fn() -> Bounds + Copy + 'a) -> ClockCase<'a> {
        ClockCase {
            name,
            fill: Box::new(move |burst| burst.fill(read)),
            disturb: Box::new(|_| {}),
            tally: Tally::default(),
        }
    }

    pub(super) fn disturbed(mut self, disturb: impl FnMut(u64) + 'a) -> ClockCase<'a> {
        self.disturb = Box::new(disturb);
        self
    }

    fn bound_rows(&self) -> Vec<Row> {
        let bounds = self.tally.bounds();
        let row = |case: &str, value: Option<u64>| {
            Row::alone(case, self.name, value.unwrap_or(0) as f64, "ns")
        };
        let p99 = row("bound_p99", bounds.percentile(99));
        let p99 = if self.name == "hourglass" { p99.at_most(GOAL_NS) } else { p99 };
        vec![p99, row("bound_p50", bounds.percentile(50)), row("bound_max", bounds.max())]
    }

    pub(super) fn violation_rows(&self, case: &str) -> [Row; 2] {
        let row = |case: &str, value: u64| Row::alone(case, self.name, value as f64, "count");
        [
            row(case, self.tally.outside).at_most(0.0),
            row(&format!("{case}/comparisons"), self.tally.comparisons),
        ]
    }

    pub(super) fn width_rows(&self, case: &str) -> [Row; 2] {
        let mut widths = self.tally.by_counter.clone();
        widths.merge(&self.tally.by_os);
        let row = |case: &str, value: Option<u64>| {
            Row::alone(case, self.name, value.unwrap_or(0) as f64, "ns")
        };
        [
            row(&format!("{case}/p50"), widths.percentile(50)),
            row(&format!("{case}/p99"), widths.percentile(99)),
        ]
    }
}

/// The counter and the OS clock in turn, a tenth of a second each.
fn switch_by_hand(clock: &Clock, since_ns: u64) {
    const EVERY_NS: u64 = 100_000_000;
    let source =
        if (since_ns / EVERY_NS).is_multiple_of(2) { counter::SOURCE } else { SourceId::OS };
    if clock.source() != source {
        // A counter that cannot be read stays unread; the suite asked before.
        let _ = clock.set_source(source);
    }
}

/// A clock that reads a made-up `/sys`, which says time and again that the kernel left its clock source.
struct FailoverClock {
    clock: Clock,
    path: PathBuf,
    last: Cell<u64>,
}

impl FailoverClock {
    fn new(root: &Path) -> Result<FailoverClock> {
        let path = root.join("sys/devices/system/clocksource/clocksource0/current_clocksource");
        std::fs::create_dir_all(path.parent().context("the path has a parent")?)?;
        let settings = ClockSettings {
            start: Start::With(counter::SOURCE),
            look_every_ns: 0,
            root: Some(root.to_owned()),
            ..ClockSettings::DEFAULT
        };
        let failing = FailoverClock { clock: Clock::with(settings), path, last: Cell::new(0) };
        failing.tell(0);
        Ok(failing)
    }

    /// Every 0.6 s the counter is taken up again; 0.2 s later the made-up kernel leaves it.
    fn disturb(&self, since_ns: u64) {
        const EVERY_NS: u64 = 600_000_000;
        const LEFT_NS: u64 = 200_000_000;
        let (period, phase_ns) = (since_ns / EVERY_NS, since_ns % EVERY_NS);
        if phase_ns >= LEFT_NS {
            self.tell(period + 1);
        } else if self.clock.source() != counter::SOURCE {
            // A counter that cannot be read stays unread; the suite asked before.
            let _ = self.clock.set_source(counter::SOURCE);
        }
    }

    /// Writes another made-up name, if it was not written last. A full disk shows in the failovers counted.
    fn tell(&self, number: u64) {
        if number == 0 || self.last.replace(number) != number {
            let _ = std::fs::write(&self.path, format!("made_up_{number}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(earliest: u64, latest: u64) -> Bounds {
        Bounds { earliest, latest, status: Status::Steady }
    }

    /// `CLOCK_MONOTONIC` was not before `earliest` at the end of the call nor after `latest` at its
    /// beginning: the promise of [`Bounds`], to the nanosecond.
    #[test]
    fn a_reading_is_outside_if_it_breaks_the_promise() {
        let promised = bounds(100, 120);
        assert!(!is_outside(120, &promised, 130), "just not too late");
        assert!(is_outside(121, &promised, 130), "it was already later");
        assert!(!is_outside(80, &promised, 100), "just not too early");
        assert!(is_outside(80, &promised, 99), "it was not yet so late");
        assert!(!is_outside(0, &promised, u64::MAX), "an interruption proves nothing");
    }

    #[test]
    fn the_kernels_reading_between_two_of_ours() {
        let (before, after) = (bounds(100, 120), bounds(130, 150));
        assert!(!is_outside_between(&before, 100, &after));
        assert!(is_outside_between(&before, 99, &after));
        assert!(!is_outside_between(&before, 150, &after));
        assert!(is_outside_between(&before, 151, &after));
    }

    /// The comparison itself, on clocks that are made wrong: the OS clock with a bound of 10 ns,
    /// 1 ms early and 1 ms late, are caught every time.
    #[test]
    fn a_wrong_clock_is_outside_in_every_comparison() {
        for off_ns in [1_000_000i64, -1_000_000] {
            // A burst that is interrupted for a millisecond proves nothing, so the best of some.
            assert_eq!((0..20).map(|_| outside_of_a_burst(off_ns)).max(), Some(255), "{off_ns} ns");
        }
    }

    #[test]
    fn a_right_clock_is_never_outside() {
        assert!((0..100).all(|_| outside_of_a_burst(0) == 0));
    }

    fn outside_of_a_burst(off_ns: i64) -> u64 {
        let mut burst = ReadingBurst::new();
        burst.fill(|| {
            let ns = monotonic_ns().saturating_add_signed(off_ns);
            bounds(ns - 10, ns + 10)
        });
        let mut tally = Tally::default();
        tally.judge(&burst, true);
        assert_eq!((tally.comparisons, tally.by_counter.total()), (255, 128));
        tally.outside
    }

    #[test]
    fn bounds_are_those_of_the_counter() {
        let mut burst = ReadingBurst::new();
        burst.pairs[0].1 = bounds(100, 500);
        let mut tally = Tally::default();
        tally.judge(&burst, false);
        assert_eq!(tally.bounds().total(), 0, "the first second does not count");
        tally.judge(&burst, true);
        assert_eq!((tally.bounds().total(), tally.bounds().max()), (1, Some(200)));
    }

    #[test]
    fn the_failing_clock_fails_over_and_comes_back() {
        if !counter::is_readable() || counter::SOURCE == SourceId::OS {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let failing = FailoverClock::new(folder.path()).unwrap();
        for period in 0..2u64 {
            let begun_ns = period * 600_000_000;
            failing.disturb(begun_ns);
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(5));
                failing.clock.maintain();
            }
            assert_eq!(failing.clock.source(), counter::SOURCE);
            failing.disturb(begun_ns + 300_000_000);
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(5));
                failing.clock.maintain();
            }
            assert_eq!(failing.clock.source(), SourceId::OS, "{:?}", failing.clock.events());
        }
        assert_eq!(failing.clock.count(EventKind::KernelChangedSource), 2);
    }
}
