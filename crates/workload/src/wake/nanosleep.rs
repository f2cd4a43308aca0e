//! `clock_nanosleep` to an absolute time: the native timer of Linux.

use std::fmt;
use std::io;
use std::sync::Arc;

use hourglass_time::Span;

use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUpMethod, bare, slack};

/// The native timers with whatever slack the thread has; 50 us for time-sharing threads.
pub(super) const NATIVE: MethodEntry = MethodEntry {
    name: "NATIVE",
    synopsis: "NATIVE[:SLACK]",
    about: "clock_nanosleep with the default timer slack of 50us, or with SLACK (default)",
    aliases: &["NANOSLEEP"],
    parse: |parameter| {
        let slack = slack(NATIVE.synopsis, parameter)?;
        Ok(Arc::new(Nanosleep { name: NATIVE.name, slack, shown: slack.is_some() }))
    },
};

/// High-resolution timers, which the paper's kernels had to be patched for.
pub(super) const HR: MethodEntry = MethodEntry {
    name: "HR",
    synopsis: "HR",
    about: "high-resolution timers: clock_nanosleep with a timer slack of 1ns",
    aliases: &[],
    parse: |parameter| {
        bare(HR.synopsis, parameter)?;
        Ok(Arc::new(Nanosleep { name: HR.name, slack: Some(FINEST), shown: false }))
    },
};

/// The least slack; 0 would mean the default.
pub(super) const FINEST: Span = Span::from_nanos(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Nanosleep {
    name: &'static str,
    slack: Option<Span>,
    shown: bool,
}

impl Nanosleep {
    pub(super) const NATIVE: Nanosleep = Nanosleep { name: NATIVE.name, slack: None, shown: false };
}

impl fmt::Display for Nanosleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.slack {
            Some(slack) if self.shown => write!(f, ":{slack}"),
            _ => Ok(()),
        }
    }
}

impl WakeUpMethod for Nanosleep {
    fn open(&self, _thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        set_slack(self, self.slack)?;
        Ok(OpenWakeUp::native(|alarm| {
            // An interrupted sleep is an early return, which the caller takes care of.
            let _ = hourglass_sys::wait::nanosleep_until(alarm.due_ns);
        }))
    }
}

/// Gives the calling thread a timer slack, if one was asked for.
pub(super) fn set_slack(method: &dyn WakeUpMethod, slack: Option<Span>) -> Result<(), Unavailable> {
    let Some(slack) = slack else { return Ok(()) };
    hourglass_sys::thread::set_timer_slack(slack.nanos_or_zero()).map_err(|error| {
        kernel_refused(method, &error, "use NATIVE, which leaves the slack as it is")
    })
}

pub(super) fn kernel_refused(
    method: &dyn WakeUpMethod,
    error: &io::Error,
    remedy: &str,
) -> Unavailable {
    Unavailable { method: method.to_string(), reason: error.to_string(), remedy: remedy.to_owned() }
}
