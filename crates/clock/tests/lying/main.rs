//! A TSC and a CPUID that lie: what the choice of a source and a whole clock make of it.

#![cfg(target_arch = "x86_64")]

mod clock;
mod source;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is made up is one set for the process.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
