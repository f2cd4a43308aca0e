//! A futex wait with an absolute timeout, as condition variables and interruptible sleeps do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hourglass_time::Span;

use super::nanosleep::set_slack;
use super::{Alarm, Entry, Method, Opened, Sleeper, Unavailable, WakeUp, slack};

pub(super) const ENTRY: Entry = Entry {
    name: "FUTEX",
    synopsis: "FUTEX[:SLACK]",
    about: "a futex wait with an absolute timeout",
    aliases: &[],
    parse: |parameter| Ok(Arc::new(ByFutex { slack: slack(ENTRY.synopsis, parameter)? })),
};

#[derive(Clone, Copy, Debug)]
struct ByFutex {
    slack: Option<Span>,
}

impl fmt::Display for ByFutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slack {
            Some(slack) => write!(f, "{}:{slack}", ENTRY.name),
            None => f.write_str(ENTRY.name),
        }
    }
}

impl Method for ByFutex {
    fn open(&self, _thread: &Sleeper) -> Result<Opened, Unavailable> {
        set_slack(self, self.slack)?;
        Ok(Opened { wake_up: Box::new(Waiting(AtomicU32::new(0))), emulated: None })
    }
}

/// A word that nobody wakes.
struct Waiting(AtomicU32);

impl WakeUp for Waiting {
    fn wait(&mut self, alarm: Alarm) {
        let _ = hourglass_sys::wait::futex_until(&self.0, 0, alarm.due_ns);
    }
}
