//! The scheduling class of the thread that is woken.

use std::io;
use std::path::Path;

use hourglass_machine::advice::{RefusedOperation, why_refused};
use hourglass_machine::facts::HostReader;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;

/// The priority of the paper's test thread ("Hrtimers and Beyond", section 8.1).
const PRIORITY: u8 = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ThreadClass {
    Fifo,
    /// What it had before, without timer slack.
    Other {
        why: String,
    },
}

impl ThreadClass {
    /// Takes the calling thread to `SCHED_FIFO` 80 if it may. If not, its timer slack becomes 1 ns,
    /// since real-time threads have none.
    pub(super) fn real_time() -> ThreadClass {
        match sched::set(Attributes::Fifo(PRIORITY)) {
            Ok(()) => ThreadClass::Fifo,
            Err(error) => {
                // The slack it has is as good as any where this is refused.
                let _ = thread::set_timer_slack(1);
                ThreadClass::Other { why: why_not_real_time(&error, PRIORITY) }
            }
        }
    }

    pub(crate) fn refused(&self) -> Option<&str> {
        match self {
            ThreadClass::Fifo => None,
            ThreadClass::Other { why } => Some(why),
        }
    }

    pub(crate) fn words(&self) -> &'static str {
        match self {
            ThreadClass::Fifo => "SCHED_FIFO with priority 80",
            ThreadClass::Other { .. } => {
                "SCHED_OTHER without timer slack, since SCHED_FIFO was refused"
            }
        }
    }
}

pub(crate) fn why_not_real_time(error: &io::Error, priority: u8) -> String {
    let host = HostReader::new(Path::new("/")).read();
    let refused = RefusedOperation::RealTime { priority };
    let (reason, remedy) = why_refused(refused, error.raw_os_error().unwrap_or(0), &host);
    format!("{reason}; {remedy}")
}
