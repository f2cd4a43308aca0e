//! Work that reports nothing and sleeps: nothing is stopped for it (Inoue et al., section 4.1: a process that yields is
//! not dispatched again), and what it loses by sleeping is its own. On simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::progress::ProgressSource;
use crate::smt::jobs::JobReservation;
use crate::smt::monitor::{CoRunnerLevel, Monitor, MonitorSettings, SiblingPolicy};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_time::Span;

const MS: u64 = 1_000_000;

/// Work of which nothing is known but whether it sleeps.
struct Silent(Arc<AtomicBool>);

impl ProgressSource for Silent {
    fn name(&self) -> &'static str {
        "cpu_time"
    }

    fn begin(&mut self, _: u64) {}

    fn done_ns(&mut self) -> u64 {
        0
    }

    fn is_idle(&mut self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// 20 of every 100 ms; 5 ms are kept back.
fn watched(policy: SiblingPolicy, count: usize) -> (Monitor, Arc<AtomicBool>) {
    let (reserved, period) = (Span::from_millis(20), Span::from_millis(100));
    let reservation = Reservation::new(reserved, period, ReservationKind::Hard).unwrap();
    let sleeps = Arc::new(AtomicBool::new(true));
    let each =
        || (JobReservation::new(&reservation, 0), Box::new(Silent(Arc::clone(&sleeps))) as _);
    let settings = MonitorSettings { policy, margin_ns: 5 * MS, ..MonitorSettings::default() };
    let monitor = Monitor::new(settings, (0..count).map(|_| each()).collect()).unwrap();
    (monitor, sleeps)
}

/// Disabled siblings are those of work that runs (section 4.2): it is looked at each hundredth of the period.
#[test]
fn nothing_is_disabled_beside_work_that_sleeps() {
    let (mut monitor, sleeps) = watched(SiblingPolicy::Disable, 1);
    let order = monitor.check_slack(0);
    assert_eq!((order.level, order.next_ns), (CoRunnerLevel::Run, MS));
    sleeps.store(false, Ordering::Relaxed);
    let order = monitor.check_slack(MS);
    assert_eq!(order.level, CoRunnerLevel::Stop);
    // As soon as it sleeps again; once more sooner where slack ends before.
    sleeps.store(true, Ordering::Relaxed);
    let order = monitor.check_slack(order.next_ns);
    assert_eq!(order.level, CoRunnerLevel::Run);
    let order = monitor.check_slack(74 * MS + MS / 2);
    assert_eq!((order.level, order.next_ns), (CoRunnerLevel::Run, 75 * MS));
    assert_eq!(monitor.statistics.idle, 0, "it could still have what is reserved");
}

/// Asleep when slack ends it cannot have what is reserved any more, by its own will: idle, whatever it does then.
#[test]
fn who_sleeps_until_it_is_too_late_is_idle() {
    for policy in [SiblingPolicy::Monitor, SiblingPolicy::Disable] {
        let (mut monitor, sleeps) = watched(policy, 1);
        monitor.check_slack(0);
        let order = monitor.check_slack(75 * MS);
        assert_eq!((order.level, order.next_ns), (CoRunnerLevel::Run, 76 * MS), "{policy:?}");
        sleeps.store(false, Ordering::Relaxed);
        assert_eq!(
            monitor.check_slack(76 * MS).level,
            CoRunnerLevel::Stop,
            "{policy:?}: it gets what is left"
        );
        monitor.check_slack(100 * MS);
        let counts = monitor.statistics;
        assert_eq!((counts.jobs, counts.idle, counts.missed), (1, 1, 0), "{policy:?}");
        // The next one wants it all the time.
        monitor.check_slack(175 * MS);
        monitor.check_slack(200 * MS);
        let counts = monitor.statistics;
        assert_eq!((counts.jobs, counts.idle, counts.missed), (2, 1, 1), "{policy:?}");
    }
}

/// Of several reservations all but one are held, which looks like sleep: that says nothing. Work that was not
/// held and sleeps leaves its turn to the next.
#[test]
fn who_is_held_does_not_rest() {
    let (mut monitor, sleeps) = watched(SiblingPolicy::Disable, 2);
    let order = monitor.check_slack(0);
    assert_eq!(
        (order.level, order.runs),
        (CoRunnerLevel::Run, None),
        "both sleep, and neither was held"
    );
    sleeps.store(false, Ordering::Relaxed);
    let order = monitor.check_slack(order.next_ns);
    assert_eq!((order.level, order.runs), (CoRunnerLevel::Stop, Some(0)));
    sleeps.store(true, Ordering::Relaxed);
    let order = monitor.check_slack(order.next_ns);
    assert_eq!(
        (order.level, order.runs),
        (CoRunnerLevel::Stop, Some(1)),
        "the second one was held"
    );
}
