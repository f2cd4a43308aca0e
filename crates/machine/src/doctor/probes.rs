//! What the kernel answers when it is asked: real-time policies, the idle latency.
//!
//! Must not: leave anything behind. Each policy is given to a thread of its own, which has nothing
//! to do and ends at once.

use crate::idle_latency;
use hourglass_sys::sched::{self, Attributes};

use super::input::ProbeResults;

/// The lowest real-time priority.
const LOWEST: u8 = 1;

/// A reservation that fits beside almost any other, ns.
const BUDGET_NS: u64 = 1_000_000;
const PERIOD_NS: u64 = 100_000_000;

/// Tries it all. Takes well under a millisecond.
pub(super) fn trials() -> ProbeResults {
    let deadline = Attributes::Deadline {
        runtime_ns: BUDGET_NS,
        deadline_ns: PERIOD_NS,
        period_ns: PERIOD_NS,
        reclaim: false,
        overrun_signal: false,
    };
    ProbeResults {
        real_time: granted(Attributes::Fifo(LOWEST)),
        deadline: granted(deadline),
        idle_latency: Some(idle_latency::may_hold()),
    }
}

/// Whether a thread is given a policy; or the error number.
fn granted(attributes: Attributes) -> Option<Result<(), i32>> {
    let thread = std::thread::Builder::new().spawn(move || sched::set(attributes)).ok()?;
    let answer = thread.join().ok()?;
    match answer {
        Ok(()) => Some(Ok(())),
        Err(error) => Some(Err(error.raw_os_error()?)),
    }
}
