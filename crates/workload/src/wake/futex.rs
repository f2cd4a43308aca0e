//! A futex wait with an absolute timeout, as condition variables and interruptible sleeps do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hourglass_time::Span;

use super::nanosleep::set_slack;
use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, slack};

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "FUTEX",
    synopsis: "FUTEX[:SLACK]",
    about: "a futex wait with an absolute timeout",
    aliases: &[],
    parse: |parameter| Ok(Arc::new(FutexWakeUp { slack: slack(ENTRY.synopsis, parameter)? })),
};

#[derive(Clone, Copy, Debug)]
struct FutexWakeUp {
    slack: Option<Span>,
}

impl fmt::Display for FutexWakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slack {
            Some(slack) => write!(f, "{}:{slack}", ENTRY.name),
            None => f.write_str(ENTRY.name),
        }
    }
}

impl WakeUpMethod for FutexWakeUp {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        set_slack(self, self.slack)?;
        // A word without a waker.
        let word = AtomicU32::new(0);
        Ok(OpenWakeUp::native(move |alarm| {
            let _ = hourglass_sys::wait::futex_until(&word, 0, alarm.due_ns);
        }))
    }
}
