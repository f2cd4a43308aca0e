//! Who runs while a program's own loop does: a thread beside it that samples, on CPUs that the loop may not use.
//!
//! Owns: that thread, from the loop's start to its end. Must not: run on a CPU of the loop, take a signal of the
//! program, make the program wait for it for longer than [`PATIENCE`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, Thread};
use std::time::Duration;

use hourglass_sys::sched::{self, Attributes, MayFork};
use hourglass_sys::{signal, thread as os};

use crate::concurrent_threads::RunTimeSampler;
use crate::workload_file::online_cpus;

const EVERY: Duration = Duration::from_millis(100);
/// The CPU on which it samples may be a busy real-time thread's by the end.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct LoopObserver {
    ended: Arc<AtomicBool>,
    thread: Thread,
    sampled: Receiver<RunTimeSampler>,
}

impl LoopObserver {
    /// Of the calling thread's loop; `None` where there can be no thread beside it.
    pub(crate) fn of_this_thread() -> Option<LoopObserver> {
        let tid = os::id();
        let ended = Arc::new(AtomicBool::new(false));
        let (give, sampled) = mpsc::channel();
        let over = Arc::clone(&ended);
        let spawn = || {
            let named = thread::Builder::new().name("hg-observer".to_owned());
            named.spawn(move || {
                let sampler = sample_beside(tid, &over);
                // Fails if this was late, or the loop was dropped.
                let _ = give.send(sampler);
            })
        };
        let may_fork = MayFork::enter();
        let thread = signal::with_all_blocked(spawn).ok()?.thread().clone();
        drop(may_fork);
        Some(LoopObserver { ended, thread, sampled })
    }

    /// The loop is over. `None` if there was no CPU on which to sample.
    pub(crate) fn finish(self) -> Option<RunTimeSampler> {
        self.end();
        self.sampled.recv_timeout(PATIENCE).ok().filter(RunTimeSampler::has_sampled)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// A loop that is given up without its end leaves no thread behind.
impl Drop for LoopObserver {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample_beside(tid: u32, ended: &AtomicBool) -> RunTimeSampler {
    let mut sampler = RunTimeSampler::default();
    // The loop's own policy was handed on.
    let ordinary = sched::set(Attributes::Other(0)).is_ok();
    while ordinary && !ended.load(Ordering::Relaxed) {
        if stay_off(tid) {
            sampler.look_if_due();
        }
        thread::park_timeout(EVERY);
    }
    if ordinary && stay_off(tid) {
        sampler.sample();
    }
    sampler
}

/// Leaves the CPUs of thread `tid`. Whether there is another one.
fn stay_off(tid: u32) -> bool {
    let (Some(online), Ok(taken)) = (online_cpus(), os::affinity_of(tid)) else { return false };
    let free: Vec<u32> = online.iter().filter(|cpu| !taken.contains(cpu)).collect();
    !free.is_empty() && os::set_affinity(free).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorder that its program drops without an end.
    #[test]
    fn a_loop_that_is_given_up_leaves_no_thread() {
        let observer = LoopObserver::of_this_thread().unwrap();
        let ended = Arc::downgrade(&observer.ended);
        drop(observer);
        // The thread has the other one until it ends.
        while ended.upgrade().is_some() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
