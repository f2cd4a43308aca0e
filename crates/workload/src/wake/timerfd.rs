//! A timer read through a file descriptor, as event loops do. It knows no timer slack.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use hourglass_sys::wait::TimerFd;

use super::nanosleep::kernel_refused;
use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, bare};

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "TIMERFD",
    synopsis: "TIMERFD",
    about: "an absolute timerfd and a blocking read; no timer slack",
    aliases: &[],
    parse: |parameter| {
        bare(ENTRY.synopsis, parameter)?;
        Ok(Arc::new(TimerFdWakeUp))
    },
};

#[derive(Clone, Copy, Debug)]
struct TimerFdWakeUp;

impl fmt::Display for TimerFdWakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENTRY.name)
    }
}

impl WakeUpMethod for TimerFdWakeUp {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        let timer = TimerFd::new().map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::Unsupported => {
                    "use NATIVE or FUTEX; a filter of system calls forbids it"
                }
                _ => "raise the limit on open files",
            };
            kernel_refused(self, &error, remedy)
        })?;
        Ok(OpenWakeUp::native(move |alarm| {
            let _ = timer.wait_until(alarm.due_ns);
        }))
    }
}
