//! Threads that work beside a measured one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use hourglass_sys::thread::set_affinity;

/// Threads that take turns until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BackgroundThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BackgroundThreads {
    pub(crate) fn start(
        &mut self,
        name: &str,
        cpu: u32,
        mut turn: impl FnMut() + Send + 'static,
    ) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let live = move || {
            if set_affinity([cpu]).is_ok() {
                while !stop.load(Ordering::Relaxed) {
                    turn();
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(live)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Whether it panicked does not matter any more.
            let _ = thread.join();
        }
    }
}

pub(crate) fn spin(length: Duration) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

pub(crate) fn work_and_rest(work: Duration, rest: Duration) {
    spin(work);
    std::thread::sleep(rest);
}
