//! Mach's absolute wait.

/// `mach_timebase_info_data_t`: ns for a tick of the clock.
#[repr(C)]
struct Timebase {
    numerator: u32,
    denominator: u32,
}

/// `CLOCK_THREAD_CPUTIME_ID` of macOS.
const THREAD_CPU: u32 = 16;

unsafe extern "C" {
    fn mach_absolute_time() -> u64;
    fn mach_timebase_info(info: *mut Timebase) -> i32;
    fn mach_wait_until(deadline: u64) -> i32;
    fn clock_gettime_nsec_np(clock: u32) -> u64;
}

/// A thread's way to wait.
#[derive(Clone, Debug)]
pub struct Alarm {
    /// A nanosecond has `denominator / numerator` ticks.
    denominator: u32,
    /// Never 0.
    numerator: u32,
}

impl Alarm {
    /// Asks for the length of a tick.
    #[must_use]
    pub fn new() -> Alarm {
        let mut base = Timebase { numerator: 1, denominator: 1 };
        // SAFETY: the kernel writes one struct of this layout to a live local.
        unsafe { mach_timebase_info(&raw mut base) };
        Alarm { denominator: base.denominator.max(1), numerator: base.numerator.max(1) }
    }

    /// Waits `length_ns`, and longer by the latency of the kernel; a signal may end it before.
    pub fn wait(&mut self, length_ns: u64) {
        let ticks =
            u128::from(length_ns) * u128::from(self.denominator) / u128::from(self.numerator);
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        // SAFETY: takes and returns numbers.
        let now = unsafe { mach_absolute_time() };
        // SAFETY: takes and returns numbers.
        unsafe { mach_wait_until(now.saturating_add(ticks)) };
    }

    /// CPU time of the calling thread, ns.
    #[must_use]
    pub fn cpu_time_ns(&self) -> Option<u64> {
        // SAFETY: takes and returns numbers; the clock is one that every macOS since 10.12 has.
        Some(unsafe { clock_gettime_nsec_np(THREAD_CPU) })
    }

    /// The CPU that the thread runs on: 0, since the system does not want to say.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        0
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm::new()
    }
}
