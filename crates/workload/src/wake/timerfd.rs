//! A timer read through a file descriptor, as event loops do. It knows no timer slack.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use hourglass_sys::wait::TimerFd;

use super::nanosleep::kernel_refused;
use super::{Alarm, Entry, Method, Opened, Sleeper, Unavailable, WakeUp, bare};

pub(super) const ENTRY: Entry = Entry {
    name: "TIMERFD",
    synopsis: "TIMERFD",
    about: "an absolute timerfd and a blocking read; no timer slack",
    aliases: &[],
    parse: |parameter| {
        bare(ENTRY.synopsis, parameter)?;
        Ok(Arc::new(ByTimerFd))
    },
};

#[derive(Clone, Copy, Debug)]
struct ByTimerFd;

impl fmt::Display for ByTimerFd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENTRY.name)
    }
}

impl Method for ByTimerFd {
    fn open(&self, _thread: &Sleeper) -> Result<Opened, Unavailable> {
        let timer = TimerFd::new().map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::Unsupported => {
                    "use NATIVE or FUTEX; a filter of system calls forbids it"
                }
                _ => "raise the limit on open files",
            };
            kernel_refused(self, &error, remedy)
        })?;
        Ok(Opened { wake_up: Box::new(Waiting(timer)), emulated: None })
    }
}

struct Waiting(TimerFd);

impl WakeUp for Waiting {
    fn wait(&mut self, alarm: Alarm) {
        let _ = self.0.wait_until(alarm.due_ns);
    }
}
