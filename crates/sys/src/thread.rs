//! Threads, mostly the calling one: its number, its CPUs, its timer slack, its use of the processor.

use std::io;
use std::os::unix::fs::FileExt;

use crate::checked;

/// Highest CPU number that affinity calls here can name, plus one.
const CPU_LIMIT: usize = libc::CPU_SETSIZE as usize;

/// The kernel's number of the calling thread.
#[must_use]
pub fn id() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::gettid() as u32 }
}

/// Gives up the processor; 0.2 us if no other thread wants it.
#[inline]
pub fn yield_now() {
    // SAFETY: no arguments, no memory.
    unsafe { libc::sched_yield() };
}

/// The CPUs on which the calling thread may run, ascending.
///
/// # Errors
/// EINVAL on machines with more than 1024 CPU numbers.
pub fn affinity() -> io::Result<Vec<u32>> {
    affinity_of(0)
}

/// As [`affinity`], for thread `tid`; 0 is the calling thread.
///
/// # Errors
/// As [`affinity`]; ESRCH if there is no such thread.
pub fn affinity_of(tid: u32) -> io::Result<Vec<u32>> {
    let set = set_of(tid)?;
    Ok(cpus_in(&set).collect())
}

/// CPUs 0 to 1023, one bit each, 64 in a word.
pub type CpuWords = [u64; CPU_LIMIT / 64];

/// As [`affinity_of`], without taking memory.
///
/// # Errors
/// As [`affinity_of`].
pub fn affinity_words_of(tid: u32) -> io::Result<CpuWords> {
    let set = set_of(tid)?;
    let mut words = CpuWords::default();
    for cpu in cpus_in(&set) {
        if let Some(word) = words.get_mut((cpu / 64) as usize) {
            *word |= 1 << (cpu % 64);
        }
    }
    Ok(words)
}

/// The CPU that thread `tid` is kept to; `None` if it may use several, or there is no such thread. Takes no
/// memory.
#[must_use]
pub fn only_cpu_of(tid: u32) -> Option<u32> {
    let set = set_of(tid).ok()?;
    let mut cpus = cpus_in(&set);
    cpus.next().filter(|_| cpus.next().is_none())
}

fn set_of(tid: u32) -> io::Result<libc::cpu_set_t> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size of the live local that it is given.
    checked(unsafe {
        libc::sched_getaffinity(tid as libc::pid_t, size_of::<libc::cpu_set_t>(), &raw mut set)
    })?;
    Ok(set)
}

fn cpus_in(set: &libc::cpu_set_t) -> impl Iterator<Item = u32> {
    // SAFETY: the index stays below CPU_SETSIZE, the number of bits in the set.
    let contains = |cpu: usize| unsafe { libc::CPU_ISSET(cpu, set) };
    (0..CPU_LIMIT).filter(move |cpu| contains(*cpu)).map(|cpu| cpu as u32)
}

/// Restricts the calling thread to `cpus`; numbers from 1024 on are not passed on.
///
/// # Errors
/// EINVAL if none of them is online and allowed; EBUSY for a deadline thread.
pub fn set_affinity(cpus: impl IntoIterator<Item = u32>) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// As [`set_affinity`], for thread `tid`; 0 is the calling thread. The number must still be its own.
///
/// # Errors
/// As [`set_affinity`]; ESRCH if there is no such thread.
pub fn set_affinity_of(tid: u32, cpus: impl IntoIterator<Item = u32>) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.into_iter().filter(|cpu| (*cpu as usize) < CPU_LIMIT) {
        // SAFETY: the index was just checked against the number of bits in the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: the set is a live local of the size given.
    checked(unsafe {
        libc::sched_setaffinity(tid as libc::pid_t, size_of::<libc::cpu_set_t>(), &raw const set)
    })
    .map(|_| ())
}

/// Sets how late the kernel may wake the calling thread to save power, in ns (`PR_SET_TIMERSLACK`).
/// Real-time threads have none whatever is set.
///
/// # Errors
/// What the kernel answers; does not happen for positive values.
pub fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: takes its argument by value.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong) }).map(|_| ())
}

/// The calling thread's timer slack, ns (`PR_GET_TIMERSLACK`); 0 for a real-time thread on newer
/// kernels. `None` if the kernel does not say.
#[must_use]
pub fn timer_slack() -> Option<u64> {
    // As a raw call, since the library's function answers an int, and slack may be more.
    // SAFETY: takes no memory.
    let ns = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(ns).ok()
}

/// Kernel counts of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Context switches by its own wait.
    pub voluntary: u64,
    /// Context switches forced on it, and those of its yields.
    pub involuntary: u64,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that waited for input.
    pub major_faults: u64,
}

impl Counters {
    /// Context switches, of its own and forced.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.voluntary.wrapping_add(self.involuntary)
    }
}

/// Counters of the calling thread (`getrusage(RUSAGE_THREAD)`): a system call, some 150 ns.
#[must_use]
pub fn counters() -> Counters {
    let usage = usage();
    Counters {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

fn usage() -> libc::rusage {
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the live local; an answer that is not 0 leaves it as it was.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage
}

/// Counts in the schedstat of a thread (`/proc/thread-self/schedstat`), ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// On a CPU.
    pub run_ns: u64,
    /// Runnable, waiting for a CPU.
    pub wait_ns: u64,
}

/// The schedstat of the thread that opened it, to be read again and again.
#[derive(Debug)]
pub struct SchedStatFile(std::fs::File);

impl SchedStatFile {
    /// That of the calling thread.
    ///
    /// # Errors
    /// What open(2) says: kernels without `CONFIG_SCHED_INFO` have none.
    pub fn open() -> io::Result<SchedStatFile> {
        std::fs::File::open("/proc/thread-self/schedstat").map(SchedStatFile)
    }

    /// One system call; allocates nothing. `None` if the text has another form.
    #[must_use]
    pub fn read(&self) -> Option<SchedStat> {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        SchedStat::read(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// Reads the calling thread's schedstat; `None` on kernels that keep none.
#[must_use]
pub fn schedstat() -> Option<SchedStat> {
    SchedStatFile::open().ok()?.read()
}

impl SchedStat {
    /// Reads a thread's schedstat; `None` if the text has another form.
    #[must_use]
    pub fn read(text: &str) -> Option<SchedStat> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        Some(SchedStat { run_ns: numbers.next()?.ok()?, wait_ns: numbers.next()?.ok()? })
    }
}

/// Time of the calling thread in user and system mode, ns in whole microseconds, by `getrusage(RUSAGE_THREAD)`. Kernels
/// that count by ticks count in steps of a tick.
#[must_use]
pub fn rusage_time_ns() -> u64 {
    let (user, system) = rusage_split_ns();
    user.saturating_add(system)
}

/// [`rusage_time_ns`] in two parts: user and system mode. Kernels that count the sum precisely divide it by what their
/// ticks hit, so that short times may be all on one side.
#[must_use]
pub fn rusage_split_ns() -> (u64, u64) {
    let usage = usage();
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_read_back() {
        let before = timer_slack().unwrap();
        set_timer_slack(1).unwrap();
        assert_eq!(timer_slack(), Some(1));
        // 0 means the default, which a thread takes from its parent.
        set_timer_slack(0).unwrap();
        assert_eq!(timer_slack(), Some(before));
    }

    #[test]
    fn used_time_grows() {
        let begun = rusage_time_ns();
        let mut sum = 0u64;
        while rusage_time_ns() == begun {
            sum = sum.wrapping_add(1);
        }
        assert!(sum < u64::MAX);
    }
}
