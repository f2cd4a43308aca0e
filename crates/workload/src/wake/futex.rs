//! A futex wait with an absolute timeout, as condition variables and interruptible sleeps do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hourglass_time::Span;

use super::nanosleep::set_slack;
use super::{
    MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUp, WakeUpMethod, WakeUpTime, slack,
};

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
        Ok(OpenWakeUp { wake_up: Box::new(FutexWait(AtomicU32::new(0))), emulated: None })
    }
}

/// A word without a waker.
struct FutexWait(AtomicU32);

impl WakeUp for FutexWait {
    fn wait(&mut self, alarm: WakeUpTime) {
        let _ = hourglass_sys::wait::futex_until(&self.0, 0, alarm.due_ns);
    }
}
