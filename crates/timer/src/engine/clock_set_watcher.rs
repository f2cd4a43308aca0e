//! A thread that sleeps until the wall clock is set.
//!
//! Owns: noticing that, and the end of a suspension.
//! Must not: decide what it means for timers.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use hourglass_sys::eventfd::{ClockSetWatch, EventFd, either_readable};

use super::times::read_all;
use super::{ClockBase, ClockReadings};
use crate::event::{DeviceError, Kick};
use crate::start_thread::start_thread;

const NAME: &str = "clock watcher";

#[derive(Debug)]
pub(super) struct Watcher {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// From now on each setting of the wall clock counts in `sets`, and kicks; the end of a
    /// suspension kicks.
    pub(super) fn start(kick: Kick, sets: &Arc<AtomicU64>) -> Result<Watcher, DeviceError> {
        let failed = |e: std::io::Error| DeviceError::from_os(NAME, &e);
        let stop = Arc::new(EventFd::new().map_err(failed)?);
        // Before the thread starts: what happens from now on is seen.
        let watch = ClockSetWatch::new().map_err(failed)?;
        let before = read_all();
        let (sets, stopped) = (Arc::clone(sets), Arc::clone(&stop));
        let thread =
            start_thread("hourglass-clock", move || run(&watch, &stopped, before, &sets, &kick));
        Ok(Watcher { stop, thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.post();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

fn run(
    watch: &ClockSetWatch,
    stop: &EventFd,
    before: ClockReadings,
    sets: &AtomicU64,
    kick: &Kick,
) {
    let mut before = before;
    loop {
        match either_readable(watch.as_fd(), stop.as_fd(), None) {
            Ok((_, true)) => return,
            Ok((true, false)) if watch.was_set() => {
                let now = read_all();
                if is_set(&before, &now) {
                    sets.fetch_add(1, Ordering::Release);
                }
                before = now;
                kick.kick();
            }
            // A signal's handler ran, or another thread read it.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Whether the wall clock was set between two readings: only then does it move against
/// `CLOCK_BOOTTIME`, which goes on in suspend as it does. By less than the readings took is not
/// seen.
fn is_set(before: &ClockReadings, now: &ClockReadings) -> bool {
    let ahead = |now: &ClockReadings| {
        now.ns(ClockBase::Realtime).saturating_sub(now.ns(ClockBase::Boottime))
    };
    ahead(now).abs_diff(ahead(before)) > before.gap_ns().saturating_add(now.gap_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_no_setting() {
        let before = ClockReadings::new([1_000, 1_000, 501_000, 538_000]).with_gap(60);
        let suspended = ClockReadings::new([2_000, 82_000, 582_050, 619_000]).with_gap(60);
        assert!(!is_set(&before, &suspended));
        let set = ClockReadings::new([2_000, 2_000, 501_800, 538_800]).with_gap(60);
        assert!(is_set(&before, &set));
    }
}
