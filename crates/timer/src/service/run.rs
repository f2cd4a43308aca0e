//! Running an action, wherever it runs.
//!
//! Owns: what happens around it: the panic that ends with it, the time that it took, the threads
//! that wait for its end, and what is torn down with it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::action::Expiration;
use super::remote::ActionEnd;
use super::statistics::{LONG_NS, count};
use super::table::{TimerEntry, TimerTable};
use crate::engine::ClockBase;

thread_local! {
    /// Whose action this thread runs: the address of its timer.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

fn address(entry: &TimerEntry) -> usize {
    std::ptr::from_ref(entry).addr()
}

pub(super) fn is_own(entry: &TimerEntry) -> bool {
    OWN.get() == address(entry)
}

pub(super) fn is_in_action() -> bool {
    OWN.get() != 0
}

/// Runs the action of a timer whose state says that it runs, and ends it; returns whether it is to
/// be queued again. `account` gets the time that it took, ns, before its end is visible.
pub(super) fn run(
    table: &TimerTable,
    index: u32,
    entry: &TimerEntry,
    expiration: &Expiration,
    account: impl FnOnce(u64),
) -> bool {
    entry.fired.fetch_add(1, Ordering::Relaxed);
    let begun = table.clock.now_ns(ClockBase::Monotonic);
    let outer = OWN.replace(address(entry));
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut action = entry.action.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(action) = action.as_mut() {
            action.run(expiration);
        }
    }));
    let took = table.clock.now_ns(ClockBase::Monotonic).saturating_sub(begun);
    account(took.max(0).unsigned_abs());
    if let Err(payload) = ran {
        // Dropping that is the user's code too. If it panics, so may what that drops: it is leaked.
        if let Err(other) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(other);
        }
        entry.panics.fetch_add(1, Ordering::Relaxed);
        count(&table.counters.panics, 1);
        entry.slot.disarm_stale();
    }
    if entry.slot.state().dead() {
        // Terminated by itself, or by a thread that waits for the end: until that, the place is its own.
        // Dropping is the user's code too.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| entry.retire())) {
            std::mem::forget(payload);
        }
    }
    // Only now: what was just dropped may have been the last handle of this very timer.
    OWN.set(outer);
    finish(table, index, entry, entry.slot.end())
}

/// What the end of an action, or one that was not run any more, leaves to do; whether it is to be
/// queued again. The place may be another timer's right after.
pub(super) fn finish(table: &TimerTable, index: u32, entry: &TimerEntry, ended: ActionEnd) -> bool {
    if ended.awaited {
        entry.open_gate();
    }
    if ended.orphan {
        table.release(index);
    }
    ended.requeue
}

/// Counts how long an immediate action held up the engine.
pub(super) fn account(table: &TimerTable, took_ns: u64) {
    let counters = &table.counters;
    if took_ns > LONG_NS {
        count(&counters.long_actions, 1);
    }
    counters.longest_action_ns.fetch_max(took_ns, Ordering::Relaxed);
}
