//! A thread that keeps a clock.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::clock::Clock;
use super::event::EventKind;
use super::native::Native;
use super::timebase::Timebase;

/// A thread that maintains a clock until this value is dropped, so that no reader ever has to.
///
/// Bounds hold without one too: it spares readers the calibration, and keeps [`Clock::now`] near the
/// kernel's clock where no thread reads bounds. After a change of the kernel's rate it calibrates after 1 ms,
/// 2 ms and so on again; a bounded read that finds the change first takes the OS clock until then.
/// It sleeps between calibrations and takes some 20 us for one. Where its CPU must not be
/// disturbed, start it from a thread whose affinity leaves that CPU out: it inherits it.
#[derive(Debug)]
pub struct MaintenanceThread<B: Timebase + 'static = Native> {
    clock: Arc<Clock<B>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The longest and the shortest sleep, ns.
const SLEEP_NS: std::ops::RangeInclusive<u64> = 200_000..=1_000_000_000;

impl<B: Timebase + 'static> MaintenanceThread<B> {
    /// Starts the thread.
    ///
    /// # Errors
    /// No threads left.
    pub fn start(clock: Arc<Clock<B>>) -> io::Result<MaintenanceThread<B>> {
        let stop = Arc::new(AtomicBool::new(false));
        let (its_clock, its_stop) = (Arc::clone(&clock), Arc::clone(&stop));
        let thread = Builder::new().name("hourglass-clock".to_owned()).spawn(move || {
            let mut examined = None;
            while !its_stop.load(Ordering::Acquire) {
                let next_ns = its_clock.maintain().next_ns;
                let adopted = its_clock.count(EventKind::Adopted);
                if examined != Some(adopted) && its_clock.is_to_be_examined() {
                    examined = Some(adopted);
                    its_clock.examine();
                }
                let sleep_ns = next_ns.clamp(*SLEEP_NS.start(), *SLEEP_NS.end());
                std::thread::park_timeout(Duration::from_nanos(sleep_ns));
            }
        })?;
        Ok(MaintenanceThread { clock, stop, thread: Some(thread) })
    }

    /// The clock that it keeps.
    #[must_use]
    pub fn clock(&self) -> &Clock<B> {
        &self.clock
    }
}

impl<B: Timebase + 'static> Drop for MaintenanceThread<B> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing left to stop.
            let _ = thread.join();
        }
    }
}
