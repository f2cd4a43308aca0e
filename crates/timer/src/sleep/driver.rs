//! Sleeping without a thread of one's own: futures for any executor, and the thread that wakes them.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hourglass_clock::timekeeping::Timebase;
use hourglass_clock::{Clock, process};
use hourglass_sys::no_stop::NoStopGuard;
use hourglass_time::{Instant, Monotonic, Span};

use super::grid::{Grid, MissedTicks, PeriodError, Tick};
use super::interrupt::Interrupter;
use super::kernel::KernelSleep;
use super::settings::{SleepPolicy, SleeperSettings};
use super::sleeper::Sleeper;
use crate::start_thread::start_thread;

/// One thread that wakes the tasks of any executor when their time has come.
///
/// # How precise that is
/// Not as precise as a [`Sleeper`], which is the thread that waits. Here a thread is woken by the
/// kernel (late by tens of microseconds, or precisely with [`SleepPolicy::Learned`] in the settings), and
/// has to wake the executor's thread, which the kernel does again, which then gets to the task when
/// it gets to it: some 50 us late when all is idle, and without a bound when it is not. Never early:
/// a future is ready when the clock is at its deadline. For precision let a thread of its own sleep,
/// and send a message.
///
/// Handles are cheap to clone. The thread ends with the last handle and future. A forked child has no
/// such thread: what it inherits is never woken, and it starts a driver of its own.
#[derive(Clone, Debug)]
pub struct Driver<C = &'static Clock>(Arc<Core<C>>);

/// What handles and futures share; its end is the thread's.
struct Core<C> {
    clock: C,
    shared: Arc<DriverShared>,
}

struct DriverShared {
    table: Mutex<Timetable>,
    interrupter: Interrupter,
}

/// The wakers, by the times at which they are woken.
#[derive(Debug, Default)]
struct Timetable {
    /// By time, and among equals in the order in which they came.
    wakers: BTreeMap<DriverEntry, Waker>,
    entries: u64,
    looks_at_ns: u64,
    stop: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DriverEntry {
    deadline_ns: u64,
    number: u64,
}

impl Driver {
    /// On the clock of the process, waiting in the kernel only.
    pub fn start() -> io::Result<Driver> {
        Driver::with(process::clock(), SleeperSettings::with_policy(SleepPolicy::KernelOnly))
    }
}

impl<B, C> Driver<C>
where
    B: Timebase,
    C: Deref<Target = Clock<B>> + Clone + Send + 'static,
{
    /// On any clock on this machine's `CLOCK_MONOTONIC`; its thread sleeps as `settings` say.
    pub fn with(clock: C, settings: SleeperSettings) -> io::Result<Driver<C>> {
        let mut sleeper = Sleeper::on(clock.clone(), KernelSleep::new(), settings);
        let shared = Arc::new(DriverShared {
            table: Mutex::new(Timetable::default()),
            interrupter: sleeper.interrupter(),
        });
        let own = Arc::clone(&shared);
        start_thread("hourglass-driver", move || {
            sleeper.take_slack();
            own.drive(&mut sleeper);
        })?;
        Ok(Driver(Arc::new(Core { clock, shared })))
    }

    /// A future that is ready at an absolute time.
    pub fn sleep_until(&self, deadline: impl Into<Instant<Monotonic>>) -> SleepUntil<C> {
        SleepUntil::new(self.clone(), deadline.into().since_zero().nanos_or_zero())
    }

    /// A future that is ready after `length` from now (not from when it is first polled).
    pub fn sleep_for(&self, length: Span) -> SleepUntil<C> {
        let deadline_ns = self.now_ns().saturating_add(length.nanos_or_zero());
        SleepUntil::new(self.clone(), deadline_ns)
    }

    /// Ticks in every period from now on; the first is due after one.
    ///
    /// # Errors
    /// [`PeriodError::NotPositive`].
    pub fn interval(&self, period: Span, missed: MissedTicks) -> Result<Interval<C>, PeriodError> {
        Ok(Interval::new(self.clone(), Grid::every(self.now_ns(), period, missed)?))
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>> Driver<C> {
    fn now_ns(&self) -> u64 {
        self.0.clock.now_ordered()
    }
}

impl<C> Driver<C> {
    fn add(&self, deadline_ns: u64, waker: Waker) -> DriverEntry {
        let shared = &self.0.shared;
        let mut table = shared.table();
        let entry = table.add(deadline_ns, waker);
        let looks_later = deadline_ns < table.looks_at_ns;
        if looks_later {
            // The kick below makes the thread look then; until that later timers need none.
            table.looks_at_ns = deadline_ns;
        }
        drop(table);
        if looks_later {
            shared.interrupter.interrupt();
        }
        entry
    }

    /// Has another waker woken in its place; `false` if it was woken already.
    fn replace(&self, entry: DriverEntry, waker: &Waker) -> bool {
        let mut table = self.0.shared.table();
        let Some(own) = table.wakers.get_mut(&entry) else { return false };
        if own.will_wake(waker) {
            return true;
        }
        drop(table);
        // Cloning and dropping a waker is its executor's code: nothing is locked meanwhile.
        let mut waker = waker.clone();
        let mut table = self.0.shared.table();
        let own = table.wakers.get_mut(&entry);
        let still_there = own.map(|own| std::mem::swap(own, &mut waker)).is_some();
        drop(table);
        drop(waker);
        still_there
    }

    fn remove(&self, entry: DriverEntry) {
        let waker = self.0.shared.table().wakers.remove(&entry);
        // Dropped here, with nothing locked: it may be the last of its task.
        drop(waker);
    }
}

impl<C> Drop for Core<C> {
    fn drop(&mut self) {
        self.shared.table().stop = true;
        // Does not wait for the thread's end: it may be that thread which drops the last future.
        self.shared.interrupter.interrupt();
    }
}

impl<C> fmt::Debug for Core<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("waiting", &self.shared.table().wakers.len()).finish()
    }
}

impl DriverShared {
    fn table(&self) -> NoStopGuard<MutexGuard<'_, Timetable>> {
        NoStopGuard::new(|| self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn drive<B: Timebase, C: Deref<Target = Clock<B>>>(
        &self,
        sleeper: &mut Sleeper<C, KernelSleep>,
    ) {
        loop {
            // First, so that a change after the look at the table ends the sleep.
            sleeper.clear();
            let now = sleeper.now_ns();
            let mut table = self.table();
            if table.stop {
                return;
            }
            let Some(waker) = table.take_due(now) else {
                let next = table.next_ns();
                table.looks_at_ns = next;
                drop(table);
                let _ = sleeper.sleep_until_ns(next);
                continue;
            };
            drop(table);
            // A waker that panics is its executor's affair; the others are still to be woken.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Timetable {
    fn add(&mut self, deadline_ns: u64, waker: Waker) -> DriverEntry {
        let entry = DriverEntry { deadline_ns, number: self.entries };
        self.entries += 1;
        self.wakers.insert(entry, waker);
        entry
    }

    fn take_due(&mut self, now_ns: u64) -> Option<Waker> {
        let first = self.wakers.first_entry()?;
        (first.key().deadline_ns <= now_ns).then(|| first.remove())
    }

    /// When the next one is due, ns; without one the end of time.
    fn next_ns(&self) -> u64 {
        self.wakers.first_key_value().map_or(u64::MAX, |(entry, _)| entry.deadline_ns)
    }
}

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
    fn new(driver: Driver<C>, deadline_ns: u64) -> SleepUntil<C> {
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
    fn new(driver: Driver<C>, grid: Grid) -> Interval<C> {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;

    struct WakeOrderProbe {
        own: AtomicU64,
        order: Arc<AtomicU64>,
    }

    impl Wake for WakeOrderProbe {
        fn wake(self: Arc<Self>) {
            self.own.store(self.order.fetch_add(1, Ordering::AcqRel) + 1, Ordering::Release);
        }
    }

    #[test]
    fn the_due_ones_come_in_order_of_time_then_of_arrival() {
        let order = Arc::new(AtomicU64::new(0));
        let noted =
            |_| Arc::new(WakeOrderProbe { own: AtomicU64::new(0), order: Arc::clone(&order) });
        let all: Vec<Arc<WakeOrderProbe>> = (0..5).map(noted).collect();
        let mut table = Timetable::default();
        let deadlines = [50, 10, 30, 10, 20];
        let entries: Vec<DriverEntry> = deadlines
            .iter()
            .zip(&all)
            .map(|(ns, own)| table.add(*ns, Arc::clone(own).into()))
            .collect();
        table.wakers.remove(&entries[4]);
        assert_eq!(table.next_ns(), 10);
        assert!(table.take_due(9).is_none());
        while let Some(waker) = table.take_due(30) {
            waker.wake();
        }
        let woken: Vec<u64> = all.iter().map(|own| own.own.load(Ordering::Acquire)).collect();
        assert_eq!((woken, table.next_ns()), (vec![0, 1, 3, 2, 0], 50));
    }
}
