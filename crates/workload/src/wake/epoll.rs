//! The timeout of an event loop (`epoll_pwait2`). It is relative, and its slack is the thread's
//! or a thousandth of the timeout, whichever is more.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use hourglass_sys::wait::Epoll;
use hourglass_time::Span;

use super::nanosleep::{kernel_refused, set_slack};
use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, slack};

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "EPOLL",
    synopsis: "EPOLL[:SLACK]",
    about: "the timeout of epoll_pwait2, as event loops have it (Linux 5.11)",
    aliases: &[],
    parse: |parameter| Ok(Arc::new(EpollWakeUp { slack: slack(ENTRY.synopsis, parameter)? })),
};

#[derive(Clone, Copy, Debug)]
struct EpollWakeUp {
    slack: Option<Span>,
}

impl fmt::Display for EpollWakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slack {
            Some(slack) => write!(f, "{}:{slack}", ENTRY.name),
            None => f.write_str(ENTRY.name),
        }
    }
}

impl WakeUpMethod for EpollWakeUp {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        set_slack(self, self.slack)?;
        let epoll = Epoll::new().map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::Unsupported => "use TIMERFD, or Linux 5.11 or later",
                _ => "raise the limit on open files",
            };
            kernel_refused(self, &error, remedy)
        })?;
        Ok(OpenWakeUp::native(move |alarm| {
            let _ = epoll.wait_for(alarm.due_ns.saturating_sub(alarm.now_ns));
        }))
    }
}
