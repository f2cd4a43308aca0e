//! Sleeping without a thread: futures for any executor.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;

use super::driver::{Driver, DriverEntry};
use super::grid::{Grid, Tick};

/// A future that is ready when the clock is at its deadline, and gives by how much it was late when
/// it was polled, ns. See [`Driver`] for how precise that is.
///
/// Dropping it cancels it. It may move between tasks; the last one to poll it is woken.
#[must_use = "futures do nothing unless polled"]
pub struct SleepUntil<C> {
    driver: Driver<C>,
    deadline_ns: u64,
    entry: Option<DriverEntry>,
}

impl<C> SleepUntil<C> {
    pub(super) fn new(driver: Driver<C>, deadline_ns: u64) -> SleepUntil<C> {
        SleepUntil { driver, deadline_ns, entry: None }
    }

    /// When it is ready, ns on `CLOCK_MONOTONIC`'s scale.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    fn cancel(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.driver.remove(entry);
        }
    }
}

impl<C> Unpin for SleepUntil<C> {}

impl<B: Timebase, C: Deref<Target = Clock<B>>> Future for SleepUntil<C> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let this = &mut *self;
        if let Some(late_ns) = this.driver.now_ns().checked_sub(this.deadline_ns) {
            this.cancel();
            return Poll::Ready(late_ns);
        }
        let kept = this.entry.is_some_and(|entry| this.driver.replace(entry, context.waker()));
        if !kept {
            this.entry = Some(this.driver.add(this.deadline_ns, context.waker().clone()));
        }
        Poll::Pending
    }
}

impl<C> Drop for SleepUntil<C> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<C> fmt::Debug for SleepUntil<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepUntil").field("deadline_ns", &self.deadline_ns).finish_non_exhaustive()
    }
}

/// Ticks at equal distances, for tasks. See [`Driver`] for how precise that is.
#[derive(Debug)]
pub struct Interval<C> {
    grid: Grid,
    sleep: SleepUntil<C>,
}

impl<C: Clone> Interval<C> {
    pub(super) fn new(driver: Driver<C>, grid: Grid) -> Interval<C> {
        Interval { grid, sleep: SleepUntil::new(driver, grid.next_ns()) }
    }

    /// Ticks that were left out so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.grid.lost()
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>> + Clone> Interval<C> {
    /// The next tick. A call that is given up loses none.
    pub async fn tick(&mut self) -> Tick {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Whether the next tick is due; the task is woken when it is.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Tick> {
        match Pin::new(&mut self.sleep).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(late_ns) => {
                let tick = self.grid.take(self.sleep.deadline_ns.saturating_add(late_ns));
                self.sleep.deadline_ns = self.grid.next_ns();
                Poll::Ready(tick)
            }
        }
    }
}
