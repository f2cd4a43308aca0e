//! The timeout of an event loop (`epoll_pwait2`). It is relative, and its slack is the thread's
//! or a thousandth of the timeout, whichever is more.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use hourglass_sys::wait::Epoll;
use hourglass_time::Span;

use super::nanosleep::{kernel_refused, set_slack};
use super::{Alarm, Entry, Method, Opened, Sleeper, Unavailable, WakeUp, slack};

pub(super) const ENTRY: Entry = Entry {
    name: "EPOLL",
    synopsis: "EPOLL[:SLACK]",
    about: "the timeout of epoll_pwait2, as event loops have it (Linux 5.11)",
    aliases: &[],
    parse: |parameter| Ok(Arc::new(ByEpoll { slack: slack(ENTRY.synopsis, parameter)? })),
};

#[derive(Clone, Copy, Debug)]
struct ByEpoll {
    slack: Option<Span>,
}

impl fmt::Display for ByEpoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slack {
            Some(slack) => write!(f, "{}:{slack}", ENTRY.name),
            None => f.write_str(ENTRY.name),
        }
    }
}

impl Method for ByEpoll {
    fn open(&self, _thread: &Sleeper) -> Result<Opened, Unavailable> {
        set_slack(self, self.slack)?;
        let epoll = Epoll::new().map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::Unsupported => "use TIMERFD, or Linux 5.11 or later",
                _ => "raise the limit on open files",
            };
            kernel_refused(self, &error, remedy)
        })?;
        Ok(Opened { wake_up: Box::new(Waiting(epoll)), emulated: None })
    }
}

struct Waiting(Epoll);

impl WakeUp for Waiting {
    fn wait(&mut self, alarm: Alarm) {
        let _ = self.0.wait_for(alarm.due_ns.saturating_sub(alarm.now_ns));
    }
}
