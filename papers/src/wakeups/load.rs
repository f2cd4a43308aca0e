//! Load: threads that keep CPUs busy while something is measured.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread::{affinity, set_affinity};

/// Threads that never sleep, of the time-sharing class; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct CpuHogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    running: Arc<AtomicUsize>,
}

const ROUND: u32 = 10_000;

/// Longest wait for the threads of the load: a busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(1);

impl CpuHogs {
    pub(crate) fn none() -> CpuHogs {
        CpuHogs::on(&[])
    }

    /// One on every CPU that this process may use. Returns once they run.
    pub(crate) fn on_every_cpu() -> CpuHogs {
        CpuHogs::on(&affinity().unwrap_or_default())
    }

    pub(super) fn on(cpus: &[u32]) -> CpuHogs {
        let stop = Arc::new(AtomicBool::new(false));
        let running = Arc::new(AtomicUsize::new(0));
        let nice = i8::try_from(sched::nice()).unwrap_or(0);
        let hog = |&cpu: &u32| {
            let (stop, running) = (Arc::clone(&stop), Arc::clone(&running));
            let hog = thread::Builder::new().name(format!("load-{cpu}"));
            hog.spawn(move || spin(cpu, nice, &stop, &running)).ok()
        };
        let threads: Vec<_> = cpus.iter().filter_map(hog).collect();
        let hogs = CpuHogs { stop, threads, running };
        let begin = Instant::now();
        while hogs.count() < hogs.threads.len() && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        hogs
    }

    pub(crate) fn count(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }
}

impl Drop for CpuHogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // They do not panic.
            let _ = thread.join();
        }
    }
}

/// Keeps a CPU busy, unless it cannot have the time-sharing class: it must never hold a CPU that
/// others need.
fn spin(cpu: u32, nice: i8, stop: &AtomicBool, running: &AtomicUsize) {
    if sched::set(Attributes::Other(nice)).is_err() || set_affinity([cpu]).is_err() {
        return;
    }
    running.fetch_add(1, Ordering::AcqRel);
    let mut sum = 0_u64;
    while !stop.load(Ordering::Acquire) {
        for number in 0..ROUND {
            sum = black_box(sum.wrapping_add(u64::from(number)));
        }
    }
}
