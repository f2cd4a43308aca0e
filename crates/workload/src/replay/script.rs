//! What a thread does, with the names of what it shares resolved to places.
//!
//! Owns: the forms. Must not: execute them.

use hourglass_documents::{CpuSet, ExecutionTime, Policy};
use hourglass_tasks::JobTrigger;
use hourglass_time::Span;

use super::arrivals::JobArrivals;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReplayStep {
    Run(Span),
    /// Receive a part of what the job's execution time leaves beside its critical sections.
    Rest(AmountPart),
    /// Execute until this time has passed.
    RunFor(Span),
    Sleep(Span),
    /// Block until the next expiry of a timer.
    Timer {
        timer: usize,
        period_ns: u64,
        absolute: bool,
    },
    Lock(usize),
    Unlock(usize),
    /// Lock, receive `length`, unlock; `count` times.
    Section {
        lock: usize,
        length: Span,
        count: u32,
    },
    Wait {
        event: usize,
        lock: usize,
    },
    Signal(usize),
    Broadcast(usize),
    Barrier(usize),
    Suspend(usize),
    Yield,
    Take(usize),
    Post(usize),
    /// Write this many bytes of memory.
    Memory(u64),
    /// Read `bytes` of a buffer of this size, over and over.
    Read {
        bytes: u64,
        buffer: u64,
    },
    /// Write `bytes` of a buffer of this size, over and over.
    Write {
        bytes: u64,
        buffer: u64,
    },
    Chase {
        hops: u64,
        ring: usize,
    },
    /// Write this many bytes to a device.
    Io(u64),
    /// Let the next thread begin that waits for this start.
    Fork(usize),
    /// Wait until this start was made more often than `number`.
    Forked {
        start: usize,
        number: u32,
    },
    StartAfter(Span),
}

/// A part of an amount; both halves together are all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmountPart {
    Whole,
    FirstHalf,
    SecondHalf,
}

impl AmountPart {
    pub(super) fn of(self, amount: Span) -> Span {
        let half = Span::from_nanos(amount.nanos() / 2);
        match self {
            AmountPart::Whole => amount,
            AmountPart::FirstHalf => half,
            AmountPart::SecondHalf => Span::from_nanos(amount.nanos() - half.nanos()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Script {
    Jobs(JobSpec),
    Phases(Phases),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobSpec {
    /// When they arrive; in a chain, those of its first task.
    pub(super) arrivals: JobArrivals,
    /// The longest delay of a release, drawn evenly for each job.
    pub(super) jitter: Span,
    /// Tasks whose job of the same number is waited for.
    pub(super) after: Vec<usize>,
    /// The priority that a job takes when it begins.
    pub(super) raised: Option<u8>,
    pub(super) execution: ExecutionTime,
    pub(super) in_sections: Span,
    pub(super) acts: Vec<ReplayStep>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phases {
    /// How often all are gone through; for ever without a number.
    pub(super) loops: Option<u64>,
    pub(super) phases: Vec<ReplayPhase>,
    pub(super) beginning: JobTrigger,
    pub(super) rings: Vec<RingSize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingSize {
    pub(super) buffer: u64,
    pub(super) stride: u64,
    pub(super) sequential: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReplayPhase {
    pub(super) loops: Option<u64>,
    pub(super) policy: Option<Policy>,
    pub(super) cpus: Option<CpuSet>,
    pub(super) acts: Vec<ReplayStep>,
}
