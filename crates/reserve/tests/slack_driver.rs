//! The monitor's thread on this machine, with a stopper that only records its calls. Where the machine refuses
//! real-time priorities, the thread does without, and the test says so.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_reserve::progress::{Progress, ProgressPage, ProgressSource, WordProgress};
use hourglass_reserve::smt::driver::{Driver, MonitorConfig, StartError};
use hourglass_reserve::smt::enforcer::MonitoredReservation;
use hourglass_reserve::smt::jobs::JobReservation;
use hourglass_reserve::smt::monitor::{MonitorError, MonitorSettings, SiblingPolicy};
use hourglass_reserve::smt::stopper::Stopper;
use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;
use hourglass_time::Span;

const MS: u64 = 1_000_000;
/// A time in which any machine has done it.
const LONG: Duration = Duration::from_secs(20);

/// The calls of a stopper: the time, and whether it was to stop.
type Calls = Arc<Mutex<Vec<(u64, bool)>>>;

struct Notes {
    calls: Calls,
    refuses: bool,
}

impl Notes {
    fn note(&self, stop: bool) -> io::Result<()> {
        self.calls.lock().unwrap().push((now_ns(ClockId::Monotonic), stop));
        if self.refuses && stop { Err(io::Error::from_raw_os_error(1)) } else { Ok(()) }
    }
}

impl Stopper for Notes {
    fn name(&self) -> &'static str {
        "notes"
    }

    fn stop(&mut self) -> io::Result<()> {
        self.note(true)
    }

    fn resume(&mut self) -> io::Result<()> {
        self.note(false)
    }
}

fn notes() -> (Calls, Box<Notes>) {
    let calls = Calls::default();
    (Arc::clone(&calls), Box::new(Notes { calls, refuses: false }))
}

fn promised(reserved_ms: i64, period_ms: i64) -> JobReservation {
    let (reserved, period) = (Span::from_millis(reserved_ms), Span::from_millis(period_ms));
    JobReservation::new(&Reservation::new(reserved, period, ReservationKind::Hard).unwrap(), 0)
}

fn plan(policy: SiblingPolicy) -> MonitorConfig {
    let priority = match std::thread::spawn(|| sched::set(Attributes::Fifo(60))).join().unwrap() {
        Ok(()) => Some(60),
        Err(error) => {
            println!("without a real-time priority: {error}");
            None
        }
    };
    let settings = MonitorSettings { policy, margin_ns: MS / 2, ..MonitorSettings::default() };
    MonitorConfig { settings, cpus: Vec::new(), priority, timer_samples: 0 }
}

fn watched(progress: impl ProgressSource + 'static) -> Vec<MonitoredReservation> {
    vec![MonitoredReservation {
        reservation: promised(10, 20),
        progress: Box::new(progress),
        gate: None,
    }]
}

fn word() -> WordProgress {
    WordProgress::new(ProgressPage::create().unwrap())
}

/// A monitor of work that reports nothing.
fn silent(policy: SiblingPolicy, stopper: Box<Notes>) -> Driver {
    Driver::start(plan(policy), watched(word()), stopper).unwrap()
}

/// Waits until the driver has seen `jobs` jobs and made `stops` stops; fails after a time in which any machine has.
fn wait_for(driver: &Driver, jobs: u64, stops: u64) {
    for _ in 0..2_000 {
        let seen = driver.report().statistics;
        if seen.jobs >= jobs && seen.stops >= stops {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{:?}", driver.report());
}

/// A word that never moves: co-runners have the slack of each period and no more, and are resumed in each new one and
/// at the end.
#[test]
fn without_progress_co_runners_have_the_slack_only() {
    let (calls, stopper) = notes();
    let driver = silent(SiblingPolicy::Monitor, stopper);
    let first = driver.promised()[0].first_ns();
    wait_for(&driver, 5, 4);
    let report = driver.stop();
    let calls = calls.lock().unwrap();
    assert!(report.covered && report.statistics.jobs >= 5, "{report:?}");
    // The last job has not ended, and is not counted yet.
    assert!(report.progress_errors.unmoved >= 5, "{report:?}");
    let document = report.to_document(&[1]);
    assert!(document.protected && document.stopper.as_deref() == Some("notes"));
    assert_eq!((document.progress.as_str(), document.policy.as_str()), ("word", "monitor"));
    assert!(!report.to_document(&[]).protected, "no sibling, no protection");
    assert_eq!(calls.last().map(|(_, stop)| *stop), Some(false), "everybody runs at the end");
    // Slack is 10 ms less the margin of 0.5 ms. Now and then the machine may hold the thread up until the
    // next period.
    let stopped = calls.iter().filter(|(_, stop)| *stop);
    let mut into: Vec<u64> = stopped.map(|(at, _)| (at - first) % (20 * MS)).collect();
    into.sort_unstable();
    assert!(into[into.len() / 2] >= 9_500_000, "stopped {into:?} ns into the period");
    assert!(report.cpu_ns < report.elapsed_ns && report.elapsed_ns >= 100 * MS);
}

/// A program that is done soon: nothing is stopped under `monitor`; `disable` stops from the begin of each job until
/// the program reports that it is done.
#[test]
fn work_that_is_done_leaves_the_processor_to_others() {
    for (policy, stops) in [(SiblingPolicy::Monitor, false), (SiblingPolicy::Disable, true)] {
        let (calls, stopper) = notes();
        let word = word();
        let mut progress = Progress::on(ProgressPage::open(&word.page().path()).unwrap());
        let path = word.page().path();
        let driver = Driver::start(plan(policy), watched(word), stopper).unwrap();
        let promised = driver.promised()[0];
        ProgressPage::open(&path).unwrap().set_grid(promised.first_ns(), promised.period_ns());
        let stopped_since = |ns| calls.lock().unwrap().iter().any(|(at, stop)| *stop && *at >= ns);
        // Done after some 1 ms of each period, well before the slack of 9.5 ms is used up.
        let mut in_time = 0;
        for _ in 0..6 {
            let now = now_ns(ClockId::Monotonic);
            let release = progress.next_release_ns(now).unwrap();
            std::thread::sleep(Duration::from_nanos(release - now + MS));
            let patience = Instant::now();
            while stops && !stopped_since(release) {
                assert!(patience.elapsed() < LONG, "{:?}", driver.report());
                std::thread::sleep(Duration::from_millis(1));
            }
            progress.report(1, 2);
            progress.report(2, 2);
            in_time += u64::from(now_ns(ClockId::Monotonic) - release < 9 * MS);
        }
        let begun = (now_ns(ClockId::Monotonic) - promised.first_ns()) / (20 * MS) + 1;
        let statistics = driver.stop().statistics;
        if stops {
            assert!(statistics.stops >= 1, "{statistics:?}");
        } else {
            // Periods in which the machine held this thread up, or that are without a job: stopping was right.
            assert!(statistics.stops <= begun - in_time, "{statistics:?}, {in_time} of {begun}");
        }
    }
}

/// The bug of a prototype: a monitor that goes to a CPU filled with real-time work before it has its
/// priority gets there and no further.
#[test]
fn priority_comes_before_the_cpu() {
    let plan = plan(SiblingPolicy::Monitor);
    let mut others = thread::affinity().unwrap();
    let cpu = others.pop();
    let (Some(cpu), Some(_), Some(_)) = (cpu, others.first(), plan.priority) else {
        return skip(Requirement::REAL_TIME, "no real-time priority, or one CPU only");
    };
    // This thread must not wait for the hog itself.
    thread::set_affinity(others).unwrap();
    let (running, enough) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let hog = std::thread::spawn({
        let (running, enough) = (Arc::clone(&running), Arc::clone(&enough));
        move || {
            sched::set(Attributes::Fifo(50)).unwrap();
            thread::set_affinity([cpu]).unwrap();
            let end = now_ns(ClockId::Monotonic) + 2_000 * MS;
            while !enough.load(Ordering::Relaxed) && now_ns(ClockId::Monotonic) < end {
                running.store(true, Ordering::Relaxed);
            }
            now_ns(ClockId::Monotonic)
        }
    });
    while !running.load(Ordering::Relaxed) && !hog.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (_, stopper) = notes();
    let plan = MonitorConfig { cpus: vec![cpu], ..plan };
    let driver = Driver::start(plan, watched(word()), stopper).unwrap();
    enough.store(true, Ordering::Relaxed);
    let ended = hog.join().unwrap();
    // It chose the first period that began after it ran.
    let ran = driver.promised()[0].first_ns() - 20 * MS;
    assert!(ran < ended, "the monitor ran only when the other had ended");
    assert_eq!(driver.stop().statistics.failed, 0);
}

/// Two reservations of one core: the work of the later deadline is held from the begin of a period until
/// that of the earlier one is done, or has missed its deadline, for which a busy machine may hold this thread up.
#[test]
fn work_of_one_core_runs_one_after_the_other() {
    let span = Span::from_millis;
    let first = Reservation::new(span(5), span(50), ReservationKind::Hard).unwrap();
    let first = first.with_deadline(span(25)).unwrap();
    let words = [(); 2].map(|()| word());
    let [mut first_work, mut second_work] = [0, 1]
        .map(|word: usize| Progress::on(ProgressPage::open(&words[word].page().path()).unwrap()));
    let (held, gate) = notes();
    let begin = now_ns(ClockId::Monotonic);
    let second = Reservation::new(span(10), span(50), ReservationKind::Hard).unwrap();
    let promised = [first, second].map(|reservation| JobReservation::new(&reservation, begin));
    let gates: [Option<Box<dyn Stopper>>; 2] = [None, Some(gate)];
    let watched = promised.into_iter().zip(words).zip(gates);
    let watched = watched
        .map(|((promised, word), gate)| MonitoredReservation {
            reservation: promised,
            progress: Box::new(word),
            gate,
        })
        .collect();
    let driver = Driver::start(plan(SiblingPolicy::Monitor), watched, notes().1).unwrap();
    let begin = driver.promised()[0].first_ns();
    let mut next = begin;
    let mut done = Vec::new();
    for _ in 0..5 {
        let now = now_ns(ClockId::Monotonic);
        std::thread::sleep(Duration::from_nanos(next.saturating_sub(now) + 3 * MS));
        let before = now_ns(ClockId::Monotonic);
        first_work.report(1, 1);
        done.push((before, now_ns(ClockId::Monotonic)));
        std::thread::sleep(Duration::from_millis(9));
        second_work.report(1, 1);
        next += 50 * MS;
    }
    let end = now_ns(ClockId::Monotonic);
    assert_eq!(driver.stop().statistics.failed, 0);
    let held = held.lock().unwrap();
    assert!(held.len() >= 2, "it was never held");
    for pair in held.windows(2).filter(|pair| pair[0].1 && !pair[1].1 && pair[1].0 < end) {
        let (from, to) = (pair[0].0, pair[1].0);
        let between = done.iter().any(|(before, after)| *before <= to && *after >= from);
        let missed = (to - begin) / (50 * MS) > (from - begin) / (50 * MS)
            || (to - begin) % (50 * MS) >= 25 * MS;
        assert!(between || missed, "resumed {} ns after it was held, unfinished", to - from);
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_its_remedy() {
    let refused =
        |plan: MonitorConfig, watched| Driver::start(plan, watched, notes().1).unwrap_err();
    let nothing = refused(plan(SiblingPolicy::Monitor), Vec::new());
    assert_eq!(nothing, StartError::Unwatchable(MonitorError::Nothing));
    let nowhere = MonitorConfig { cpus: vec![1_023], ..plan(SiblingPolicy::Monitor) };
    let nowhere = refused(nowhere, watched(word()));
    assert!(matches!(nowhere, StartError::Cpus { errno: 22, .. }), "{nowhere}");
    let highest = MonitorConfig { priority: Some(100), ..plan(SiblingPolicy::Monitor) };
    let highest = refused(highest, watched(word())).to_string();
    assert!(highest.contains("SCHED_FIFO priority 100"), "{highest}");
}

/// A stopper that fails is tried again, and no protection is claimed.
#[test]
fn orders_that_fail_are_reported() {
    let (calls, mut stopper) = notes();
    stopper.refuses = true;
    let driver = silent(SiblingPolicy::Disable, stopper);
    let patience = Instant::now();
    while driver.report().statistics.failed < 4 && patience.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
    let report = driver.stop();
    assert_eq!((report.statistics.stops, report.errno), (0, Some(1)));
    assert!(report.statistics.failed >= 4, "{report:?}");
    assert!(!report.to_document(&[1]).protected);
    let calls = calls.lock().unwrap();
    assert!(calls.iter().filter(|(_, stop)| *stop).count() >= 4);
    // It may have been carried out in part.
    assert_eq!(calls.last().map(|(_, stop)| *stop), Some(false));
}

/// A stop that lasts for several periods is ordered again in each, as a heartbeat. It counts as one stop. A host that
/// holds the monitor up for a whole period leaves that out: the best of three.
#[test]
fn a_stop_that_lasts_is_renewed_in_each_period() {
    let renewed = |_| {
        let (calls, stopper) = notes();
        let driver = silent(SiblingPolicy::Disable, stopper);
        wait_for(&driver, 4, 1);
        let seen = driver.stop().statistics;
        let orders = calls.lock().unwrap().iter().filter(|(_, stop)| *stop).count() as u64;
        assert_eq!(seen.stops, 1, "{seen:?}");
        assert!(orders >= 2 && seen.stopped_ns >= 60 * MS, "{orders} orders, {seen:?}");
        orders >= seen.jobs
    };
    assert!((0..3).any(renewed));
}

/// The lateness of timers is measured and added to the margin.
#[test]
fn the_margin_has_the_lateness_of_timers() {
    let plan = MonitorConfig { timer_samples: 200, ..plan(SiblingPolicy::Ignore) };
    let (calls, stopper) = notes();
    let driver = Driver::start(plan, watched(word()), stopper).unwrap();
    let report = driver.stop();
    assert_eq!(report.lateness.samples, 200);
    assert!(report.lateness.p50_ns <= report.lateness.p999_ns && report.lateness.p999_ns > 0);
    assert_eq!(report.margin_ns, MS / 2 + report.lateness.p999_ns);
    assert!(!report.covered && calls.lock().unwrap().is_empty(), "ignore stops no co-runner");
}
