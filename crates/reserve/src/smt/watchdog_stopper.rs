//! A thaw for co-runners whose monitor hangs: it must be heard of again, or the guardian resumes them.
//!
//! The guardian itself sees to a monitor that dies. This is for one that is alive and does not come
//! back: stopped by Ctrl-Z or a debugger, or kept off its CPU. While no guardian lives, none is stopped.

use std::io;

use hourglass_sys::clock::{ClockId, now_ns};

use super::stopper::Stopper;
use crate::guardian::Guardian;

/// A promise that never breaks: it costs the guardian a look each second, and the next one no
/// system call.
const NEVER: u64 = u64::MAX;

/// A stopper that stops nothing while no guardian lives.
pub(crate) struct GuardedStopper {
    stopper: Box<dyn Stopper>,
    guardian: Guardian,
    /// How long the guardian waits for the next order before it resumes; `None` needs no heartbeat.
    patience_ns: Option<u64>,
    /// Duration of the last order to stop, ns.
    took_ns: Option<u64>,
}

impl GuardedStopper {
    /// For work that is reserved itself and waits for another one's turn: a monitor that stays away holds up its own
    /// work alone.
    pub(crate) fn new(stopper: Box<dyn Stopper>, guardian: &Guardian) -> GuardedStopper {
        GuardedStopper { stopper, guardian: guardian.clone(), patience_ns: None, took_ns: None }
    }

    /// `guardian` resumes what `stopper` stopped if no order has come for `patience_ns`, and up to a second more. A
    /// monitor gives one in each period at least.
    pub(crate) fn with_heartbeat(
        stopper: Box<dyn Stopper>,
        guardian: &Guardian,
        patience_ns: u64,
    ) -> io::Result<GuardedStopper> {
        guardian.promise(NEVER)?;
        let plain = GuardedStopper::new(stopper, guardian);
        Ok(GuardedStopper { patience_ns: Some(patience_ns), ..plain })
    }

    fn promise(&self, until_ns: u64) -> io::Result<()> {
        self.patience_ns.map_or(Ok(()), |_| self.guardian.promise(until_ns))
    }
}

impl Stopper for GuardedStopper {
    fn name(&self) -> &'static str {
        self.stopper.name()
    }

    fn stop(&mut self) -> io::Result<()> {
        let begun = now_ns(ClockId::Monotonic);
        // Without a guardian they would stay stopped if this process were killed.
        self.guardian.must_live()?;
        self.stopper.stop()?;
        let now = now_ns(ClockId::Monotonic);
        self.took_ns = Some(now.saturating_sub(begun));
        // After the order, which is urgent; should this process die between them, the guardian knows.
        self.promise(now.saturating_add(self.patience_ns.unwrap_or(0)))
    }

    fn is_frozen(&mut self) -> io::Result<bool> {
        self.stopper.is_frozen()
    }

    fn took_ns(&self) -> Option<u64> {
        self.took_ns
    }

    fn is_graded(&self) -> bool {
        self.stopper.is_graded()
    }

    fn slow(&mut self) -> io::Result<()> {
        self.stopper.slow()?;
        self.promise(NEVER)
    }

    fn resume(&mut self) -> io::Result<()> {
        self.stopper.resume()?;
        self.promise(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::members::state_of;
    use crate::smt::stopper::{StopperKind, StopperRequest, open};
    use crate::testing::{self, Program};
    use hourglass_sys::pidfd::PidFd;
    use std::time::{Duration, Instant};

    fn soon(pid: u32, wanted: char) {
        testing::soon("its state", || state_of(pid) == Some(wanted));
    }

    fn stopper(patience_ns: u64) -> (Program, Guardian, GuardedStopper) {
        let (child, guardian) = (Program::sleeping(), Guardian::start().unwrap());
        let wanted = StopperRequest::processes([child.pid()]);
        let stopper = open(StopperKind::Sigstop, &wanted, &guardian).unwrap();
        let stopper = GuardedStopper::with_heartbeat(stopper, &guardian, patience_ns).unwrap();
        (child, guardian, stopper)
    }

    /// A process that is stopped while no guardian lives stays so if the monitor is killed then.
    #[test]
    fn nothing_is_stopped_without_a_guardian() {
        let (child, guardian, mut stopper) = stopper(60_000_000_000);
        let mut refused = 0;
        let begun = Instant::now();
        // Killed just before each order, until one finds none of them there.
        while refused == 0 && begun.elapsed() < Duration::from_secs(10) {
            for pid in guardian.pids() {
                // One of those replaced may have ended by itself.
                let _ = PidFd::open(pid).and_then(|guard| guard.kill());
            }
            match stopper.stop() {
                Ok(()) => stopper.resume().unwrap(),
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains("guardian was killed"), "{error}");
                    assert_ne!(state_of(child.pid()), Some('T'));
                }
            }
            while guardian.pids().len() < 2 || !guardian.is_alive() {
                std::thread::yield_now();
            }
        }
        if refused == 0 {
            hourglass_skip::skip(
                hourglass_skip::Requirement::CHANCE,
                "each order found another guardian already",
            );
        }
    }

    #[test]
    fn a_monitor_that_hangs_keeps_nothing_stopped() {
        let (child, guardian, mut stopper) = stopper(20_000_000);
        stopper.stop().unwrap();
        // Nothing more is heard of the monitor. A sleeper looks the same before the stop has reached it.
        testing::soon("a broken promise", || guardian.broken() == 1);
        soon(child.pid(), 'S');
        // It comes back after all, and stops and resumes as before.
        stopper.patience_ns = Some(60_000_000_000);
        stopper.stop().unwrap();
        soon(child.pid(), 'T');
        stopper.resume().unwrap();
        soon(child.pid(), 'S');
        assert_eq!(guardian.broken(), 1);
    }
}
