//! The priority of the thread that arms, read once a thread.
//!
//! A system call for each arming would cost more than the arming.

use std::cell::Cell;

use hourglass_sys::sched::{self, Attributes};

/// Not read yet; no priority is above 100.
const UNKNOWN: u8 = u8::MAX;
/// Of deadline threads, which precede all others.
const DEADLINE: u8 = 100;

thread_local! {
    static OWN: Cell<u8> = const { Cell::new(UNKNOWN) };
}

/// Reads the calling thread's real-time priority anew, for timers that it arms from now on: 1 to 99,
/// 100 for a deadline thread, 0 without. To be called when a thread's policy has changed after it
/// armed a timer for the first time.
pub fn refresh_priority() -> u8 {
    let priority = match sched::read(0) {
        Ok(Some(Attributes::Fifo(priority) | Attributes::RoundRobin(priority))) => priority,
        Ok(Some(Attributes::Deadline { .. })) => DEADLINE,
        _ => 0,
    };
    OWN.set(priority);
    priority
}

pub(super) fn own() -> u8 {
    match OWN.get() {
        UNKNOWN => refresh_priority(),
        known => known,
    }
}
