//! Carries out what the monitor orders.
//!
//! Owns: co-runners and reserved work as they stand now, and for how long. Must not: decide; wait.

use std::io;

use crate::progress::ProgressSource;

use super::jobs::JobReservation;
use super::monitor::{
    CoRunnerLevel, Monitor, MonitorDecision, MonitorError, MonitorSettings, ReservationSet,
};
use super::stopper::Stopper;

/// How soon an order that could not be carried out is tried again.
const RETRY_NS: u64 = 1_000_000;

/// One reservation that is watched.
pub struct MonitoredReservation {
    /// The times of the reservation.
    pub reservation: JobReservation,
    /// How far its work is.
    pub progress: Box<dyn ProgressSource>,
    /// Stops its own work while that of another reservation of the core runs. Without it, they may
    /// run side by side, and only their sum is watched.
    pub gate: Option<Box<dyn Stopper>>,
}

/// A monitor that carries out its orders. Stopped co-runners run again when it is dropped.
pub(super) struct CoRunnerEnforcer {
    pub(super) monitor: Monitor,
    pub(super) stopper: Box<dyn Stopper>,
    gates: Vec<OwnWorkGate>,
    /// How co-runners stand; `None` after an order that failed, which may have been carried out in part.
    level: Option<CoRunnerLevel>,
    stopped_at: Option<u64>,
    /// The first order that failed, as errno.
    pub(super) errno: Option<i32>,
    pub(super) last: Option<MonitorDecision>,
}

struct OwnWorkGate {
    stopper: Option<Box<dyn Stopper>>,
    held: bool,
}

impl CoRunnerEnforcer {
    /// A monitor that lets all run until the first look.
    pub(super) fn new(
        settings: MonitorSettings,
        watched: Vec<MonitoredReservation>,
        stopper: Box<dyn Stopper>,
    ) -> Result<CoRunnerEnforcer, MonitorError> {
        let slow_ns = settings.slow_ns.filter(|_| stopper.is_graded());
        let (mut sources, mut gates) = (Vec::new(), Vec::new());
        for MonitoredReservation { reservation: promised, progress, gate } in watched {
            sources.push((promised, progress));
            gates.push(OwnWorkGate { stopper: gate, held: false });
        }
        Ok(CoRunnerEnforcer {
            monitor: Monitor::new(MonitorSettings { slow_ns, ..settings }, sources)?,
            stopper,
            gates,
            level: Some(CoRunnerLevel::Run),
            stopped_at: None,
            errno: None,
            last: None,
        })
    }

    /// Looks at `now`, stops and resumes, and says when to look next.
    pub(super) fn enforce(&mut self, now: u64) -> u64 {
        let order = self.monitor.check_slack(now);
        let done = self.carry_out(&order, now);
        self.last = Some(order);
        match done {
            Ok(()) => order.next_ns,
            Err(error) => {
                self.monitor.statistics.failed += 1;
                self.errno = self.errno.or(error.raw_os_error());
                order.next_ns.min(now.saturating_add(RETRY_NS))
            }
        }
    }

    /// Stops go first, so that no co-runner runs beside reserved work that excludes it.
    fn carry_out(&mut self, order: &MonitorDecision, now: u64) -> io::Result<()> {
        let rises = self.level.is_none_or(|level| order.level > level);
        let before = if rises { self.set_level(order.level, now) } else { Ok(()) };
        let gates = self.set_gates(order.runs, order.idle);
        let after = if rises { Ok(()) } else { self.set_level(order.level, now) };
        let again = match (order.began, order.level) {
            // The guardian's watchdog gets its heartbeat, and co-runners that came in between stop too.
            (true, CoRunnerLevel::Stop) if !rises => self.stopper.stop(),
            _ => Ok(()),
        };
        before.and(gates).and(after).and(again)
    }

    fn set_level(&mut self, level: CoRunnerLevel, now: u64) -> io::Result<()> {
        let Some(before) = self.level.replace(level) else {
            return self.change_level(level, now);
        };
        if level == before { Ok(()) } else { self.change_level(level, now) }
    }

    fn change_level(&mut self, level: CoRunnerLevel, now: u64) -> io::Result<()> {
        if level != CoRunnerLevel::Stop {
            self.monitor.co_runners(true);
        }
        let answer = match level {
            CoRunnerLevel::Run => self.stopper.resume(),
            CoRunnerLevel::Slow => self.stopper.slow(),
            CoRunnerLevel::Stop => self.stopper.stop(),
        };
        if let Err(error) = answer {
            self.level = None;
            return Err(error);
        }
        let counts = &mut self.monitor.statistics;
        if let Some(since) = self.stopped_at.take() {
            counts.stopped_ns += now.saturating_sub(since);
        }
        match level {
            CoRunnerLevel::Run => {}
            CoRunnerLevel::Slow => counts.slows += 1,
            CoRunnerLevel::Stop => {
                counts.stops += 1;
                self.stopped_at = Some(now);
                if let Some(took_ns) = self.stopper.took_ns() {
                    self.monitor.stopped_in(took_ns);
                }
                self.monitor.co_runners(false);
            }
        }
        Ok(())
    }

    /// Holds all reserved work but that of `runs` and of those that rest; `None` lets all run.
    fn set_gates(&mut self, runs: Option<usize>, rests: ReservationSet) -> io::Result<()> {
        let mut answer = Ok(());
        let wanted = |index: usize| runs.is_some_and(|runs| runs != index) && !rests.has(index);
        for pass in [true, false] {
            for (index, gate) in self.gates.iter_mut().enumerate() {
                let hold = wanted(index);
                let (Some(stopper), true) = (&mut gate.stopper, hold == pass && hold != gate.held)
                else {
                    continue;
                };
                let done = if hold { stopper.stop() } else { stopper.resume() };
                match done {
                    Ok(()) => gate.held = hold,
                    Err(error) => answer = Err(error),
                }
            }
        }
        answer
    }

    /// Resumes all; nothing is watched any more.
    pub(super) fn end(&mut self, now: u64) -> io::Result<()> {
        let gates = self.set_gates(None, ReservationSet::default());
        let level = self.set_level(CoRunnerLevel::Run, now);
        level.and(gates)
    }
}

impl Drop for CoRunnerEnforcer {
    fn drop(&mut self) {
        // The guardian resumes those that cannot be resumed now.
        let _ = self.end(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smt::monitor::NullProgress;
    use crate::testing::hard;

    /// Takes as long as a test says, and refuses the given number of orders to resume.
    struct Slow {
        took_ns: u64,
        refusals: u32,
    }

    impl Stopper for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn stop(&mut self) -> io::Result<()> {
            self.took_ns *= 3;
            Ok(())
        }

        fn took_ns(&self) -> Option<u64> {
            Some(self.took_ns)
        }

        fn resume(&mut self) -> io::Result<()> {
            let refuses = self.refusals > 0;
            self.refusals -= u32::from(refuses);
            if refuses { Err(io::Error::from_raw_os_error(1)) } else { Ok(()) }
        }
    }

    fn enforcer(took_ns: u64, refusals: u32) -> CoRunnerEnforcer {
        let watched = vec![MonitoredReservation {
            reservation: JobReservation::new(&hard(40_000, 100_000), 0),
            progress: Box::new(NullProgress),
            gate: None,
        }];
        let settings = MonitorSettings {
            margin_ns: 3_000_000,
            stop_ns: 1_000_000,
            ..MonitorSettings::default()
        };
        CoRunnerEnforcer::new(settings, watched, Box::new(Slow { took_ns, refusals })).unwrap()
    }

    /// A stop that takes longer than any before adds the difference to the margin, so that the next stop is earlier.
    #[test]
    fn the_margin_is_never_below_what_was_seen() {
        const MS: u64 = 1_000_000;
        let mut enforcer = enforcer(MS, 0);
        // Slack of 60 ms less the margin: co-runners run until 57 ms.
        assert_eq!(enforcer.enforce(0), 57 * MS);
        enforcer.enforce(57 * MS);
        // 3 ms and not 1.
        assert_eq!(
            (enforcer.monitor.settings.margin_ns, enforcer.monitor.settings.stop_ns),
            (5 * MS, 3 * MS)
        );
        assert_eq!(enforcer.enforce(100 * MS), 155 * MS);
        enforcer.enforce(155 * MS);
        assert_eq!(enforcer.monitor.settings.margin_ns, 11 * MS);
        assert_eq!(enforcer.monitor.statistics.stop_max_ns, 9 * MS);
        assert!(enforcer.monitor.is_covered());
        for period in 2..4 {
            enforcer.enforce(period * 100 * MS);
            enforcer.enforce(period * 100 * MS + 59 * MS);
        }
        // 81 ms: more than the slack of any period.
        assert_eq!(enforcer.monitor.statistics.stop_max_ns, 81 * MS);
        assert!(!enforcer.monitor.is_covered());
    }

    /// A co-runner that is not resumed is resumed again soon, and that is counted.
    #[test]
    fn who_is_not_resumed_is_resumed_again() {
        const MS: u64 = 1_000_000;
        let mut enforcer = enforcer(1, 2);
        enforcer.enforce(0);
        enforcer.enforce(57 * MS);
        let mut now = 100 * MS;
        for failed in [1, 2] {
            let next = enforcer.enforce(now);
            assert_eq!((next, enforcer.monitor.statistics.failed), (now + RETRY_NS, failed));
            now = next;
        }
        assert!(enforcer.enforce(now) > now + RETRY_NS);
        assert_eq!((enforcer.monitor.statistics.failed, enforcer.errno), (2, Some(1)));
    }
}
