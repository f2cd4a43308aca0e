//! Instructions that a thread retired, counted by the processor (`perf_event_open(2)`).
//!
//! Owns: the counter. Must not: say what an instruction is worth.

use std::io;

use thiserror::Error;

use crate::perf::{self, Count, PerfAttributes, PerfUnavailable};

/// `PERF_TYPE_HARDWARE` and `PERF_COUNT_HW_INSTRUCTIONS`.
const HARDWARE: u32 = 0;
const INSTRUCTIONS: u64 = 1;
/// `pinned`, `exclude_kernel`, `exclude_hv`: always on the processor or in error, never shared with
/// other counters in turns.
const FLAGS: u64 = 1 << 2 | 1 << 5 | 1 << 6;

/// Why instructions cannot be counted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CounterUnavailable {
    /// The processor shows no counters, as in most virtual machines (ENOENT).
    #[error(
        "this machine shows no hardware counters (ENOENT), as most virtual machines; give the guest a PMU, or report progress in a word"
    )]
    NoCounters,
    /// The thread has ended, or never was.
    #[error("no such thread")]
    Gone,
    #[error(transparent)]
    Refused(#[from] PerfUnavailable),
}

/// `inherit`: threads and processes made from now on count as well.
const INHERIT: u64 = 1 << 1;

/// Counts what one thread retires in user mode, from when it was made, and what it forks where that is asked for.
#[derive(Debug)]
pub struct Instructions(Count);

impl Instructions {
    /// Begins counting for thread `tid`, 0 being the calling one, with all that it makes from now on if
    /// `with_children`.
    ///
    /// # Errors
    /// [`CounterUnavailable`].
    pub fn open(tid: u32, with_children: bool) -> Result<Instructions, CounterUnavailable> {
        let flags = if with_children { FLAGS | INHERIT } else { FLAGS };
        match Count::open(tid, PerfAttributes::counting(HARDWARE, INSTRUCTIONS, flags)) {
            Ok(count) => Ok(Instructions(count)),
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                    CounterUnavailable::NoCounters
                }
                Some(libc::ESRCH) => CounterUnavailable::Gone,
                _ => CounterUnavailable::Refused(perf::refused(&error)),
            }),
        }
    }

    /// How many so far: a system call, some 300 ns.
    ///
    /// # Errors
    /// `UnexpectedEof` where the processor has no counter left for this one.
    pub fn read(&self) -> io::Result<u64> {
        self.0.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_skip::{Requirement, skip};

    /// Counters count at least the known work; without counters the error has the cause.
    #[test]
    fn instructions_are_counted_or_refused_by_name() {
        let counter = match Instructions::open(0, true) {
            Ok(counter) => counter,
            Err(refusal) => {
                skip(Requirement::COUNTERS, &refusal);
                assert!(
                    !matches!(refusal, CounterUnavailable::Gone),
                    "the calling thread is there"
                );
                return;
            }
        };
        let before = counter.read().unwrap();
        for step in 0..10_000u64 {
            std::hint::black_box(step);
        }
        assert!(counter.read().unwrap() >= before + 10_000);
    }

    #[test]
    fn a_thread_that_never_was_is_reported() {
        let refusal = Instructions::open(u32::MAX >> 1, false).unwrap_err();
        assert!(!refusal.to_string().is_empty());
        assert!(
            !matches!(refusal, CounterUnavailable::Refused(PerfUnavailable::Other(0))),
            "{refusal}"
        );
    }
}
