//! A thread that asks sources about UTC for a clock.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::{Chronyd, ClockBound, Ptp4l, UtcSource};
use crate::timekeeping::{Clock, KernelClockState, Timebase, UtcStatement, UtcStatementError};

/// Time between two rounds; a statement counts for five of them.
const EVERY: Duration = Duration::from_secs(1);

/// A thread that asks sources every second what they say of the wall clock, and hands the narrowest bound to a clock
/// ([`Clock::vouch_utc`]), until this value is dropped: [`Clock::utc_bounded`] then answers by it, or by the kernel's bound if that is
/// narrower, and by nothing while chronyd denies what it told the kernel, or runs and does not answer ([`Chronyd::REFUSED`]). It needs no privileges; ptp4l tells some things to root alone, and says so ([`UtcKeeper::status`]). The first
/// round is over when it has started. What was handed over is withdrawn at the end.
#[derive(Debug)]
pub struct UtcKeeper {
    stop: Arc<AtomicBool>,
    status: Arc<Mutex<UtcKeeperStatus>>,
    withdraw: Withdrawal,
    thread: Option<JoinHandle<()>>,
}

/// What came of the last round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UtcKeeperStatus {
    /// The source whose statement was handed over, if there is one.
    pub source: Option<&'static str>,
    /// What it said.
    pub said: Option<UtcStatement>,
    /// Why the others did not vouch, in the order in which they were asked; or why the clock refused the statement.
    pub refused: Vec<(&'static str, String)>,
}

struct Withdrawal(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Withdrawal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Withdrawal")
    }
}

impl UtcKeeper {
    /// Asks all sources of this machine, chronyd, ClockBound's daemon and ptp4l, for the clock of this process
    /// ([`crate::process::clock`]), which sleepers take.
    ///
    /// # Errors
    /// No threads left.
    pub fn start() -> io::Result<UtcKeeper> {
        UtcKeeper::with(crate::process::clock(), UtcKeeper::sources())
    }

    /// All sources of this machine but the kernel.
    #[must_use]
    pub fn sources() -> Vec<Box<dyn UtcSource>> {
        vec![Box::new(Chronyd::own()), Box::new(ClockBound::OWN), Box::new(Ptp4l::OWN)]
    }

    /// Asks these sources for a clock: an `Arc` of one, or a reference to a static one.
    ///
    /// # Errors
    /// No threads left.
    pub fn with<B, C>(clock: C, sources: Vec<Box<dyn UtcSource>>) -> io::Result<UtcKeeper>
    where
        B: Timebase + 'static,
        C: std::ops::Deref<Target = Clock<B>> + Clone + Send + Sync + 'static,
    {
        let stop = Arc::new(AtomicBool::new(false));
        let first = asked(&*clock, &sources);
        let status = Arc::new(Mutex::new(first));
        let (its_stop, its_status, its_clock) = (stop.clone(), status.clone(), clock.clone());
        let thread = Builder::new().name("hourglass-utc".to_owned()).spawn(move || {
            loop {
                std::thread::park_timeout(EVERY);
                if its_stop.load(Ordering::Acquire) {
                    return;
                }
                let found = asked(&*its_clock, &sources);
                *its_status.lock().unwrap_or_else(PoisonError::into_inner) = found;
            }
        });
        let withdraw = Withdrawal(Box::new(move || clock.withdraw_utc()));
        match thread {
            Ok(thread) => Ok(UtcKeeper { stop, status, withdraw, thread: Some(thread) }),
            Err(error) => {
                (withdraw.0)();
                Err(error)
            }
        }
    }

    /// What came of the last round.
    #[must_use]
    pub fn status(&self) -> UtcKeeperStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for UtcKeeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
        (self.withdraw.0)();
    }
}

/// One round.
fn asked<B: Timebase>(clock: &Clock<B>, sources: &[Box<dyn UtcSource>]) -> UtcKeeperStatus {
    let mut status = UtcKeeperStatus::default();
    let mut supersedes_kernel = false;
    // What it told the kernel bounds nothing.
    let mut none = None;
    let mut best: Option<(KernelClockState, &'static str, UtcStatement)> = None;
    for source in sources {
        let before = match clock.kernel_clock_state() {
            Ok(before) => before,
            Err(error) => {
                status.refused.push((source.name(), error.to_string()));
                continue;
            }
        };
        match source.ask().said {
            Ok(said) => {
                let said = since(said, before.read_ns());
                supersedes_kernel |= said.supersedes_kernel;
                let is_narrower = |best: &UtcStatement| {
                    (said.error_ns, said.growth_ppb) < (best.error_ns, best.growth_ppb)
                };
                if best.as_ref().is_none_or(|(_, _, best)| is_narrower(best)) {
                    best = Some((before, source.name(), said));
                }
            }
            Err(reason) => {
                let is_of_kernel = source.name() == Chronyd::NAME;
                if is_of_kernel && Chronyd::REFUSED.contains(&reason.as_str()) {
                    supersedes_kernel = true;
                    none = Some(before);
                }
                status.refused.push((source.name(), reason));
            }
        }
    }
    if let Some((before, name, said)) = best {
        let said = UtcStatement { supersedes_kernel, ..said };
        match clock.vouch_utc(&before, said) {
            Ok(()) => (status.source, status.said) = (Some(name), Some(said)),
            Err(error) => {
                let last_counts =
                    matches!(error, UtcStatementError::RateChanged | UtcStatementError::Busy);
                if supersedes_kernel && !last_counts {
                    none = Some(before);
                }
                status.refused.push((name, error.to_string()));
            }
        }
    }
    if let (None, Some(before)) = (status.source, none) {
        let (error_ns, at_ns) = (UtcStatement::NO_BOUND, before.read_ns());
        let said = UtcStatement { error_ns, growth_ppb: 0, at_ns, age_ns: 0, supersedes_kernel };
        if let Err(error) = clock.vouch_utc(&before, said) {
            status.refused.push((Chronyd::NAME, error.to_string()));
        }
    }
    status
}

/// A source vouches for the clock from its statement on, slewed as it is: also for the moment when its state was read.
fn since(said: UtcStatement, at_ns: u64) -> UtcStatement {
    let later_ns = at_ns.saturating_sub(said.at_ns);
    UtcStatement {
        error_ns: said.error_ns(later_ns),
        at_ns: said.at_ns.max(at_ns),
        age_ns: said.age_ns.saturating_add(later_ns),
        ..said
    }
}

#[cfg(test)]
#[path = "tests/keeper.rs"]
mod tests;
