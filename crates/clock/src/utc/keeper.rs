//! A thread that asks sources about UTC for a clock.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::{Chronyd, ClockBound, Ptp4l, UtcDenial, UtcSource};
use crate::timekeeping::{Clock, KernelClockState, Timebase, UtcStatement, UtcStatementError};

/// Time between two rounds; a statement counts for five of them.
const EVERY: Duration = Duration::from_secs(1);

/// A thread that asks sources every second what they say of the wall clock, and hands the narrowest bound to a clock
/// ([`Clock::vouch_utc`]), until this value is dropped: [`Clock::utc_bounded`] then answers by it, or by the kernel's bound if that is
/// narrower, and by nothing while chronyd is there and does not vouch ([`UtcDenial::Kernel`]). It needs no privileges; ptp4l tells some
/// things to root alone, and says so ([`UtcKeeper::status`]). The first round is over when it has started. A source that wrote its
/// statement before that (ClockBound's daemon) counts from its next one on: nobody looked at the clock before. What was handed
/// over is withdrawn at the end of the last keeper of a clock.
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
        let mut rounds = Rounds::default();
        // Before it asks: another one that ends meanwhile would withdraw what this one hands over.
        clock.enter_utc_keeper();
        let first = rounds.ask(&clock, &sources);
        let status = Arc::new(Mutex::new(first));
        let (its_stop, its_status, its_clock) = (stop.clone(), status.clone(), clock.clone());
        let thread = Builder::new().name("hourglass-utc".to_owned()).spawn(move || {
            loop {
                std::thread::park_timeout(EVERY);
                if its_stop.load(Ordering::Acquire) {
                    return;
                }
                let found = rounds.ask(&its_clock, &sources);
                *its_status.lock().unwrap_or_else(PoisonError::into_inner) = found;
            }
        });
        let withdraw = Withdrawal(Box::new(move || clock.leave_utc_keeper()));
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

/// What is kept from round to round.
#[derive(Debug, Default)]
struct Rounds {
    /// How the kernel's clock stood at the last ones, for statements of a time before this one: of what happened to the clock since
    /// such a time, only who looked at it before knows.
    states: VecDeque<KernelClockState>,
    /// The source whose statement the clock has.
    vouched_by: Option<&'static str>,
}

/// A statement counts for 5 s: more than that, of rounds of four sources.
const KEPT_STATES: usize = 24;

/// A statement, and how the kernel's clock stood at the latest before it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    source: &'static str,
    said: UtcStatement,
    before: KernelClockState,
    now_ns: u64,
}

impl Candidate {
    /// The bound now, then how fast it grows.
    fn width(&self) -> (u64, u64) {
        let since_ns = self.now_ns.saturating_sub(self.said.at_ns);
        (self.said.error_ns(since_ns), self.said.growth_ppb)
    }
}

impl Rounds {
    /// How the clock stood at the latest before `at_ns`.
    fn before(&self, at_ns: u64) -> Option<KernelClockState> {
        self.states.iter().rfind(|state| state.read_ns() <= at_ns).copied()
    }

    fn remember(&mut self, state: KernelClockState) {
        if self.states.len() == KEPT_STATES {
            self.states.pop_front();
        }
        self.states.push_back(state);
    }

    /// One round.
    fn ask<B: Timebase>(
        &mut self,
        clock: &Clock<B>,
        sources: &[Box<dyn UtcSource>],
    ) -> UtcKeeperStatus {
        let mut status = UtcKeeperStatus::default();
        let (mut supersedes_kernel, mut is_denied) = (false, false);
        // What it told the kernel bounds nothing.
        let mut none = None;
        let mut best: Option<Candidate> = None;
        for source in sources {
            let now = match clock.kernel_clock_state() {
                Ok(now) => now,
                Err(error) => {
                    status.refused.push((source.name(), error.to_string()));
                    continue;
                }
            };
            self.remember(now);
            let answer = source.ask();
            match answer.said {
                Ok(said) => {
                    let Some(before) = self.before(said.at_ns) else {
                        status.refused.push((source.name(), UtcStatementError::Age.to_string()));
                        continue;
                    };
                    supersedes_kernel |= said.supersedes_kernel;
                    let (source, now_ns) = (source.name(), now.read_ns());
                    let found = Candidate { source, said, before, now_ns };
                    if best.is_none_or(|best| found.width() < best.width()) {
                        best = Some(found);
                    }
                }
                Err(reason) => {
                    let is_of_it = self.vouched_by == Some(source.name());
                    is_denied |= is_of_it && answer.denies != UtcDenial::Nothing;
                    if answer.denies == UtcDenial::Kernel {
                        supersedes_kernel = true;
                        none = Some(now);
                    }
                    status.refused.push((source.name(), reason));
                }
            }
        }
        if let Some(found) = best {
            let said = UtcStatement { supersedes_kernel, ..found.said };
            match clock.vouch_utc(&found.before, said) {
                Ok(()) => (status.source, status.said) = (Some(found.source), Some(said)),
                Err(error) => {
                    let last_counts =
                        matches!(error, UtcStatementError::RateChanged | UtcStatementError::Busy);
                    if !last_counts {
                        is_denied |= self.vouched_by == Some(found.source);
                        none = none.or(self.states.back().copied().filter(|_| supersedes_kernel));
                    }
                    status.refused.push((found.source, error.to_string()));
                }
            }
        }
        self.settle(clock, &mut status, none.map(|state| (state, supersedes_kernel)), is_denied);
        status
    }

    /// Of a round in which no statement was taken: withdraws the last one where it is denied, and the kernel's bound with it.
    fn settle<B: Timebase>(
        &mut self,
        clock: &Clock<B>,
        status: &mut UtcKeeperStatus,
        none: Option<(KernelClockState, bool)>,
        is_denied: bool,
    ) {
        if status.source.is_some() {
            self.vouched_by = status.source;
        } else if let Some((state, supersedes_kernel)) = none {
            self.vouched_by = None;
            let (error_ns, at_ns) = (UtcStatement::NO_BOUND, state.read_ns());
            let said =
                UtcStatement { error_ns, growth_ppb: 0, at_ns, age_ns: 0, supersedes_kernel };
            if let Err(error) = clock.vouch_utc(&state, said) {
                status.refused.push((Chronyd::NAME, error.to_string()));
            }
        } else if is_denied {
            self.vouched_by = None;
            clock.withdraw_utc();
        }
    }
}

#[cfg(test)]
#[path = "tests/keeper.rs"]
mod tests;
