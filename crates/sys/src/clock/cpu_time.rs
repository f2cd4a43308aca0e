//! Processor time of others: of any process, and of any thread.
//!
//! The kernel brings the sum of a thread up to date when the thread leaves its CPU and at the tick (4 ms at 250 Hz).
//! The value of a thread that runs on another CPU may be behind by that time; a scheduling call on it, or a reader on
//! its own CPU, brings it up to date. It is never ahead.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::try_now_ns;

/// `CPUCLOCK_SCHED` of the kernel's clock numbers, which are negative process numbers.
const SCHED: libc::clockid_t = 2;

/// The processor time of one process: all its threads, also those that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTime(libc::clockid_t);

impl ProcessTime {
    /// Of process `pid`, by the number of its first thread; any user may read it.
    #[must_use]
    pub fn for_task(pid: u32) -> ProcessTime {
        ProcessTime((!(pid as libc::clockid_t)) << 3 | SCHED)
    }

    /// Reads it, ns: a system call, some 300 ns.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such process, or the number is that of a thread.
    pub fn read_ns(self) -> io::Result<u64> {
        try_now_ns(self.0)
    }
}

/// `CPUCLOCK_PERTHREAD_MASK`.
const THREAD: libc::clockid_t = 4;

/// The processor time of a thread of this process, ns, up to this moment also while it runs on another
/// CPU: a system call, some 300 ns.
///
/// # Errors
/// `InvalidInput` if this process has no such thread.
pub fn own_thread_ns(tid: u32) -> io::Result<u64> {
    try_now_ns((!(tid as libc::clockid_t)) << 3 | THREAD | SCHED)
}

/// The kernel's counts for one thread, read again and again from an open file.
#[derive(Debug)]
pub struct ThreadTime(File);

/// The counts of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStatCounts {
    /// On a CPU, ns.
    pub run_ns: u64,
    /// Runnable without a CPU, ns; a wait that still goes on is not in it.
    pub wait_ns: u64,
    /// Times that it got a CPU.
    pub slices: u64,
}

impl ThreadTime {
    /// Of thread `tid` of whatever process.
    ///
    /// # Errors
    /// `NotFound` if there is no such thread, or the kernel keeps no such counts.
    pub fn for_task(tid: u32) -> io::Result<ThreadTime> {
        File::open(format!("/proc/{tid}/schedstat")).map(ThreadTime)
    }

    /// Reads them: a system call, some 400 ns.
    ///
    /// # Errors
    /// ESRCH if the thread has ended.
    pub fn read(&self) -> io::Result<SchedStatCounts> {
        // Three numbers of 64 bits, two blanks and the end of the line.
        let mut text = [0u8; 64];
        let count = self.0.read_at(&mut text, 0)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "schedstat is not understood");
        let text = std::str::from_utf8(&text[..count]).map_err(|_| unknown())?;
        let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
        let mut next = || numbers.next().ok_or_else(unknown);
        Ok(SchedStatCounts { run_ns: next()?, wait_ns: next()?, slices: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClockId, now_ns};
    use super::*;

    #[test]
    fn the_own_process_is_read_as_the_kernel_says() {
        let before = now_ns(ClockId::ProcessCpu);
        let read = ProcessTime::for_task(std::process::id()).read_ns().unwrap();
        assert!(before <= read && read <= now_ns(ClockId::ProcessCpu));
    }

    /// Read by another thread while it runs, the time of a thread goes on in steps far below a tick.
    #[test]
    fn a_thread_that_runs_is_read_to_the_moment() {
        use std::sync::atomic::{AtomicBool, Ordering};
        static ENOUGH: AtomicBool = AtomicBool::new(false);
        let (tell, receiver) = std::sync::mpsc::channel();
        let spinner = std::thread::spawn(move || {
            tell.send(crate::thread::id()).unwrap();
            while !ENOUGH.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let tid = receiver.recv().unwrap();
        let begun = std::time::Instant::now();
        let mut last = own_thread_ns(tid).unwrap();
        let mut least = u64::MAX;
        while least > 500_000 && begun.elapsed().as_secs() < 20 {
            let now = own_thread_ns(tid).unwrap();
            assert!(now >= last);
            if now > last {
                least = least.min(now - last);
            }
            last = now;
        }
        ENOUGH.store(true, Ordering::Relaxed);
        spinner.join().unwrap();
        assert!(least <= 500_000, "{least}");
        // The kernel wakes who joins a little before the thread is gone.
        let gone = || own_thread_ns(tid).is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput);
        while !gone() {
            assert!(begun.elapsed().as_secs() < 40, "a thread that has ended is still read");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// A child that spins is seen to use the processor, a dead one is not there.
    #[test]
    fn another_process_is_read_until_it_ends() {
        let spin = ["-c", "while :; do :; done"];
        let mut child = std::process::Command::new("sh").args(spin).spawn().unwrap();
        let clock = ProcessTime::for_task(child.id());
        let thread = ThreadTime::for_task(child.id()).unwrap();
        let begun = std::time::Instant::now();
        while clock.read_ns().unwrap() < 20_000_000 && begun.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let (used, counted) = (clock.read_ns().unwrap(), thread.read().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(used >= 20_000_000 && counted.slices > 0, "{used}, {counted:?}");
        // The process's time has that of threads which ended before the shell began: under an
        // emulator there are such.
        assert!(counted.run_ns >= 10_000_000, "{used}, {counted:?}");
        assert_eq!(clock.read_ns().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(thread.read().is_err());
    }
}
