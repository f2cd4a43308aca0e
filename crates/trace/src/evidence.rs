//! Evidence of a gap, sampled while it was recorded, and the kernel's trace events.
//!
//! Owns: the shape of evidence. What it means is the business of `trace`.

/// What a thread found out about the gap before an interval, right after it.
///
/// Three sources, none of which needs a privilege: whether the kernel cleared the thread's armed
/// critical section (rseq), what the kernel counted for the thread (`getrusage`), and the CPU
/// numbers of the two intervals. Counters are only asked where the critical section was cleared
/// or cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// Whether the kernel cleared the critical section: the thread was descheduled, migrated, or
    /// got a signal; an interrupt may do it too. `None` where it cannot tell: it was not armed, another user of
    /// rseq named another section in the thread, or the thread made a system call in which a switch
    /// does not clear it (Linux 6.19 and later).
    pub cleared: Option<bool>,
    /// What the kernel counted since it was asked last. `None` where it was not asked.
    pub counted: Option<CounterDeltas>,
}

/// Counts of a thread from one question to the next; 255 stands for more, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CounterDeltas {
    /// Context switches forced on the thread (`ru_nivcsw`).
    pub involuntary: u8,
    /// Context switches by its own wait or yield (`ru_nvcsw`).
    pub voluntary: u8,
    /// Page faults, minor and major (`ru_minflt + ru_majflt`).
    pub faults: u8,
}

impl Evidence {
    /// None.
    pub const NONE: Evidence = Evidence { cleared: None, counted: None };

    pub fn is_none(&self) -> bool {
        *self == Evidence::NONE
    }

    pub fn and(self, other: Evidence) -> Evidence {
        let cleared = match (self.cleared, other.cleared) {
            (Some(a), Some(b)) => Some(a || b),
            (a, b) => a.or(b),
        };
        let counted = match (self.counted, other.counted) {
            (Some(a), Some(b)) => Some(CounterDeltas {
                involuntary: a.involuntary.saturating_add(b.involuntary),
                voluntary: a.voluntary.saturating_add(b.voluntary),
                faults: a.faults.saturating_add(b.faults),
            }),
            (a, b) => a.or(b),
        };
        Evidence { cleared, counted }
    }
}

hourglass_documents::named_enum! {
    /// What a kernel event tells; [`KernelEvent::a`], [`KernelEvent::b`] and [`KernelEvent::value`]
    /// mean something else for each, as said here. What is not said is 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum KernelEventKind {
        /// `sched_switch`: thread `a` left the CPU, thread `b` took it; `value` is the state in which
        /// `a` left: 0 runnable (preempted or yielded), else the kernel's bits, waiting. Records of one
        /// thread's switches do not say who the other was: [`KernelEvent::UNTOLD`].
        Switch = 0,
        /// `sched_waking`: thread `a` is being made runnable for CPU `b`; the lower half of `value` has the
        /// kernel's flags of the moment (8 in an interrupt, 16 in a softirq), the upper half the thread on the CPU that
        /// woke it. 0 where they are not known.
        Waking = 1,
        /// `sched_migrate_task`: thread `a` goes to CPU `b` from CPU `value`.
        Migrate = 2,
        /// `irq_handler_entry`: a device interrupt of line `a`.
        IrqEntry = 3,
        /// `irq_handler_exit` of line `a`.
        IrqExit = 4,
        /// `softirq_entry` of vector `a` (0 high tasklets, 1 timer, 2 network out, 3 network in,
        /// 4 block, 5 poll, 6 tasklets, 7 scheduler, 8 hrtimer, 9 RCU).
        SoftirqEntry = 5,
        /// `softirq_exit` of vector `a`.
        SoftirqExit = 6,
        /// Entry of a processor's own interrupt of [`Vector`] code `a`; `b` is the processor's number
        /// of it, where it has one.
        VectorEntry = 7,
        /// Exit of a processor's own interrupt of [`Vector`] code `a`.
        VectorExit = 8,
        /// `hrtimer_expire_entry`: the timer `value` (an opaque name) expired.
        HrtimerEntry = 9,
        /// `hrtimer_expire_exit` of the timer `value`.
        HrtimerExit = 10,
        /// `hrtimer_start`: the timer `value` was armed; see [`KernelEvent::expiry_ns`].
        HrtimerStart = 11,
        /// A page fault of the running thread at address `value`; `a` is 1 where the thread was in
        /// user space.
        PageFault = 12,
        /// `signal_deliver`: signal `a` was given to the running thread.
        Signal = 13,
        /// Here `value` events of this CPU were lost; 0 if their number is unknown.
        Lost = 14,
        /// Thread `a` of the run (by its number there) wrote a mark into the trace: it had just woken
        /// `value` ns late, later than ever before in the run.
        Mark = 15,
        /// `sys_enter`: thread `a` begins a system call in which it may wait, [`WaitCall`] code `b`; `value` is what it
        /// waits for.
        Call = 16,
    }
}

impl KernelEventKind {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this code; `None` for a code of a later version.
    pub fn from_code(code: u8) -> Option<KernelEventKind> {
        KernelEventKind::ALL.get(usize::from(code)).copied()
    }
}

hourglass_documents::named_enum! {
    /// A system call in which a thread may wait.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum WaitCall {
        /// A sleep for a length.
        Sleep = 0,
        /// A sleep until a time.
        SleepUntil = 1,
        /// A futex, at the address that is the value.
        Futex = 2,
        /// A lock with priority inheritance, at the address that is the value.
        Lock = 3,
        /// The descriptor or the queue that is the value.
        Descriptor = 4,
        /// Several descriptors at once (`poll`, `select`).
        Several = 5,
        /// Any other call, of the kernel's number that is the value.
        Other = 6,
    }
}

impl WaitCall {
    /// The code in [`KernelEvent::b`].
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The call with this code; `None` for a code of a later version.
    pub fn from_code(code: u32) -> Option<WaitCall> {
        WaitCall::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

hourglass_documents::named_enum! {
    /// An interrupt of the processor itself (the `irq_vectors` events of x86, `ipi` elsewhere).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Vector {
        /// The CPU's own timer: the tick, and every high-resolution timer.
        LocalTimer = 0,
        /// Another CPU asks to look at what should run.
        Reschedule = 1,
        /// Another CPU asks to call a function.
        CallFunction = 2,
        /// Work to be done in interrupt context.
        IrqWork = 3,
        /// Anything else.
        Other = 4,
    }
}

impl Vector {
    /// The code in [`KernelEvent::a`].
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The vector with this code; [`Vector::Other`] for a code of a later version.
    pub fn from_code(code: u32) -> Vector {
        usize::try_from(code)
            .ok()
            .and_then(|at| Vector::ALL.get(at).copied())
            .unwrap_or(Vector::Other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// When, ns from the run's start.
    pub ns: i64,
    /// When, on the run's raw counter.
    pub ticks: u64,
    /// See [`KernelEventKind`].
    pub value: u64,
    pub cpu: u32,
    /// See [`KernelEventKind`].
    pub a: u32,
    /// See [`KernelEventKind`].
    pub b: u32,
    pub kind: KernelEventKind,
}

impl KernelEvent {
    /// Stands for a thread that was not named.
    pub const UNTOLD: u32 = u32::MAX;

    /// The time for which a timer was armed, on the timer's own clock, ns: `CLOCK_MONOTONIC` for
    /// all that sleeps on it. `a` has the lower half, `b` the upper. `None` for other kinds.
    pub fn expiry_ns(&self) -> Option<u64> {
        let armed = self.kind == KernelEventKind::HrtimerStart;
        armed.then(|| u64::from(self.b) << 32 | u64::from(self.a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gaps_that_are_one_have_the_evidence_of_both() {
        let counted = |involuntary| CounterDeltas { involuntary, ..CounterDeltas::default() };
        let of = |cleared, counted| Evidence { cleared, counted };
        let kept = of(Some(false), None);
        let taken = of(Some(true), Some(counted(200)));
        assert_eq!(kept.and(taken), taken);
        assert_eq!(taken.and(kept), taken);
        assert_eq!(taken.and(taken), of(Some(true), Some(counted(255))));
        assert_eq!(Evidence::NONE.and(Evidence::NONE), Evidence::NONE);
    }

    #[test]
    fn codes_are_stable() {
        for (code, kind) in (0u8..).zip(KernelEventKind::ALL) {
            assert_eq!((kind.code(), KernelEventKind::from_code(code)), (code, Some(kind)));
        }
        assert_eq!(KernelEventKind::from_code(17), None);
        for (code, call) in (0u32..).zip(WaitCall::ALL) {
            assert_eq!((call.code(), WaitCall::from_code(code)), (code, Some(call)));
        }
        for (code, vector) in (0u32..).zip(Vector::ALL) {
            assert_eq!((vector.code(), Vector::from_code(code)), (code, vector));
        }
        assert_eq!(Vector::from_code(99), Vector::Other);
    }
}
