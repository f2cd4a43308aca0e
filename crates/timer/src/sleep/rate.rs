//! A loop at a fixed rate.

use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_time::Span;

use super::KernelSleep;
use super::grid::{Grid, MissedTicks, PeriodError, Tick};
use super::mechanism::Mechanism;
use super::outcome::{Delay, SleepOutcome};
use super::sleeper::Sleeper;

/// Holds a loop to a rate, on an absolute grid: how long the loop's work takes, and by how much it
/// was late, does not shift what comes after.
///
/// ```
/// use hourglass_timer::Sleeper;
/// use hourglass_timer::sleep::Rate;
///
/// let mut rate = Rate::hz(Sleeper::new(), 2_000)?;
/// for _ in 0..4 {
///     let beat = rate.wait();
///     assert!(beat.slept.reached());
/// }
/// println!("{} overruns, {} ticks lost", rate.overruns(), rate.lost());
/// # Ok::<(), hourglass_timer::sleep::PeriodError>(())
/// ```
#[derive(Debug)]
pub struct Rate<C = &'static Clock, M = KernelSleep> {
    sleeper: Sleeper<C, M>,
    grid: Grid,
    overruns: u64,
}

/// What [`Rate::wait`] waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTick {
    /// The tick; `None` if an interrupt came first, and it is still to come.
    pub tick: Option<Tick>,
    /// Outcome of the sleep before the tick.
    pub slept: SleepOutcome,
}

impl RateTick {
    /// Whether the tick was due before it was waited for: the loop took longer than a period.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.tick.is_some() && self.slept.delay == Delay::AlreadyPast
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Rate<C, M> {
    /// `hz` times a second, from now on; the first tick is due after one period.
    ///
    /// # Errors
    /// [`PeriodError`] for rates other than 1 to 10^9.
    pub fn hz(sleeper: Sleeper<C, M>, hz: u64) -> Result<Rate<C, M>, PeriodError> {
        let grid = Grid::hz(sleeper.now_ns(), hz, MissedTicks::default())?;
        Ok(Rate { sleeper, grid, overruns: 0 })
    }

    /// Once in every period, from now on; the first tick is due after one.
    ///
    /// # Errors
    /// [`PeriodError::NotPositive`].
    pub fn every(sleeper: Sleeper<C, M>, period: Span) -> Result<Rate<C, M>, PeriodError> {
        let grid = Grid::every(sleeper.now_ns(), period, MissedTicks::default())?;
        Ok(Rate { sleeper, grid, overruns: 0 })
    }

    /// This rate with another answer to missed ticks than [`MissedTicks::Skip`].
    #[must_use]
    pub fn on_missed(mut self, missed: MissedTicks) -> Rate<C, M> {
        self.grid.set_missed(missed);
        self
    }

    /// Sleeps until the next tick, or an interrupt.
    pub fn wait(&mut self) -> RateTick {
        let slept = self.sleeper.sleep_until_ns(self.grid.next_ns());
        if slept.interrupted && !slept.reached() {
            return RateTick { tick: None, slept };
        }
        let beat = RateTick { tick: Some(self.grid.take(slept.woke_ns)), slept };
        self.overruns += u64::from(beat.is_overrun());
        beat
    }

    /// Ticks that were due before they were waited for.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Ticks that were skipped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.grid.lost()
    }

    /// The sleeper: to interrupt it, and to clear that.
    pub fn sleeper(&mut self) -> &mut Sleeper<C, M> {
        &mut self.sleeper
    }
}
