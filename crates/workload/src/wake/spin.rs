//! Busy waiting: never late by the kernel's doing, at the price of the whole CPU.

use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

use hourglass_sys::clock::{ClockId, now_ns};

use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, bare};

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "SPIN",
    synopsis: "SPIN",
    about: "polls the clock; takes all of the CPU",
    aliases: &[],
    parse: |parameter| {
        bare(ENTRY.synopsis, parameter)?;
        Ok(Arc::new(Spin))
    },
};

/// Longest time between two looks at whether the run was ended.
const SLICE_NS: u64 = 10_000_000;

#[derive(Clone, Copy, Debug)]
struct Spin;

impl fmt::Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENTRY.name)
    }
}

impl WakeUpMethod for Spin {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        Ok(OpenWakeUp::native(|alarm| {
            spin_until(alarm.due_ns.min(alarm.now_ns.saturating_add(SLICE_NS)));
        }))
    }

    fn busy_waits(&self) -> bool {
        true
    }
}

pub(super) fn spin_until(due_ns: u64) {
    while now_ns(ClockId::Monotonic) < due_ns {
        spin_loop();
    }
}
